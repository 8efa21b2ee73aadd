"""Programs on machines pass static checks."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from boot_machines import machines

FILES = Path(__file__).parents[2] / "components/boot/files"
PYTHON = sorted(FILES.glob("*.py"))
SHELL = sorted(FILES.glob("*.sh"))
OLDEST_PYTHON = (3, 10)
"""Python of Ubuntu 22.04, the oldest base image."""


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.name)
def test_a_python_program_needs_no_newer_python_and_only_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=OLDEST_PYTHON)
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module.partition(".")[0] for module in modules} <= sys.stdlib_module_names


@pytest.mark.parametrize("path", SHELL, ids=lambda path: path.name)
def test_shellcheck_finds_no_fault(path: Path) -> None:
    program = shutil.which("shellcheck")
    if program is None:
        pytest.skip("shellcheck is not installed (Debian package shellcheck)")
    done = subprocess.run((program, str(path)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", SHELL, ids=lambda path: path.name)
def test_a_shell_program_parses(path: Path) -> None:
    assert subprocess.run(("sh", "-n", str(path)), check=False).returncode == 0


def test_every_program_is_carried_by_some_machine_and_executable_there() -> None:
    carried = {item.content for boot in machines().values() for item in boot.files if item.path.startswith("/usr/local/sbin/")}
    assert carried == {path.read_text() for path in [*PYTHON, *SHELL]}
    modes = {item.mode for boot in machines().values() for item in boot.files if item.path.startswith("/usr/local/sbin/")}
    assert modes == {"0755"}


def test_the_images_container_images_are_imported_one_by_one_and_none_at_all_is_no_fault(tmp_path: Path) -> None:
    archives, tools, calls = tmp_path / "images", tmp_path / "tools", tmp_path / "calls"
    archives.mkdir()
    tools.mkdir()
    (tools / "ctr").write_text(f'#!/bin/sh\necho "$*" >>{calls}\n')
    (tools / "ctr").chmod(0o755)
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "GPUFLEET_IMAGES": str(archives)}
    command = ("sh", str(FILES / "preload_images.sh"))
    assert subprocess.run(command, env=environment, check=False).returncode == 0
    assert not calls.exists()
    for name in ("coredns", "pause"):
        (archives / f"{name}.tar").touch()
    assert subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL).returncode == 0
    assert calls.read_text().splitlines() == [f"--namespace k8s.io images import {archives}/{name}.tar" for name in ("coredns", "pause")]
