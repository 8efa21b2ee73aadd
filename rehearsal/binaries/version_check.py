"""Version check of a program file: run it and compare the version that it prints with the pin."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

from rehearsal.binaries.pins import Program

PATIENCE = 30.0
"""Seconds for the version output. A program of 100 MB on a busy disk needs some of them; one that hangs needs all."""

LONGEST_OUTPUT = 60
"""Maximum length of a wrong version output in a message."""

STEERING = ("ETCD", "KUBE", "KWOK", "CNI_")
"""Prefixes of environment variables that change or prevent the version output of these programs."""


def version_mismatch(path: Path, program: Program, version: str) -> str:
    """Return why the file is not this program in this version; an empty string if it is."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(STEERING)}
    command = [str(path), *program.version_arguments]
    try:
        process = subprocess.Popen(  # noqa: S603 the file is the user's own, from PATH or from the cache
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment | {"KUBERC": "off"},
            start_new_session=True,
        )
    except OSError as error:
        return f"it cannot be run ({error.strerror or error})"
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"it prints no version within {PATIENCE:.0f} s"
    finally:
        _end(process)
    # CNI plugins print it on standard error, because their runtime reads standard output.
    said = out.decode(errors="replace") + err.decode(errors="replace")
    if process.returncode != 0:
        return f"it ends with {process.returncode} when run to print its version: {_cut(err.decode(errors='replace') or said)}"
    found = re.search(rf"^{program.version_pattern}$", said, re.MULTILINE)
    if found is None:
        return f"it prints no version in the form of {program.name}: {_cut(said)}"
    return "" if found[1] == version else f"it is {_cut(found[1])}, the pin is {version}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and its child processes, which may outlive it and keep its output open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= LONGEST_OUTPUT else line[: LONGEST_OUTPUT - 1] + "…")
