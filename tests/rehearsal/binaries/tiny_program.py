"""A program of a dozen lines that stands for the pinned programs, built by the same code in seconds; run as a script it prepares it.

python tiny_program.py FOLDER      pins of FOLDER/tiny, told in lines on standard output
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal.binaries.find import BinariesMissingError, prepare
from rehearsal.binaries.pins import Family, Pins, Program
from rehearsal.binaries.progress import line_reporter

ROOT = Path(__file__).parents[3]

GO = shutil.which("go")

needs_go = pytest.mark.skipif(GO is None, reason="there is no Go here")

SOURCE = """package main

import "syscall"

var version = "unstamped"

func main() { syscall.Write(1, []byte("tiny version "+version+"\\n")) }
"""
"""It imports as little as can be, as a cache that is empty has all of that compiled first."""


def tiny_pins(folder: Path, version: str = "1.2.3", stamp: str = "", cold_gigabytes: float = 0.1) -> Pins:
    """Pins of one program, the module of which is written into the folder; `stamp` is what it will say that it is."""
    module = folder / "tiny"
    module.mkdir(parents=True, exist_ok=True)
    (module / "go.mod").write_text("module tiny\n\ngo 1.21\n")
    (module / "main.go").write_text(SOURCE)
    family = Family("tiny", "tiny", f"v{version}", {"main.version": stamp or version}, cold_gigabytes)
    return Pins(folder, (family,), (Program("tiny", "tiny", "tiny", ("--version",), r"tiny version (\S+)", 1.0),))


def script(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def go_that(folder: Path, before_a_build: str) -> str:
    """A PATH on which go is the real one, with shell commands of the test's before (or in the place of) each build."""
    script(folder / "go", f'case "$1" in build) {before_a_build} ;; esac\nexec "{GO}" "$@"')
    return f"{folder}:{os.environ['PATH']}"


def preparing(folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Another process that prepares the tiny program of the folder, in a cache of the folder's own."""
    return subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "GPUFLEET_CACHE": str(folder / "cache"), "PYTHONUNBUFFERED": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


if __name__ == "__main__":
    try:
        found = prepare(tiny_pins(Path(sys.argv[1])), line_reporter(print))
    except BinariesMissingError as error:
        sys.exit(str(error))
    print(found.rows[0].source.value, found.rows[0].path)
