"""Decides whether a program file is the one that is pinned: it is run and asked its version."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

from rehearsal.binaries.pins import Program

PATIENCE = 30.0
"""Seconds for the answer: a program of 100 MB on a busy disk takes some, one that hangs never answers."""

LONGEST_ANSWER = 60
"""Characters of a wrong answer that are told."""

STEERING = ("ETCD", "KUBE", "KWOK", "CNI_")
"""Beginnings of environment variables that change what these programs answer, or let them refuse to."""


def version_mismatch(path: Path, program: Program, version: str) -> str:
    """Why the file is not this program of this version, in words; empty when it is."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(STEERING)}
    command = [str(path), *program.asked]
    try:
        asked = subprocess.Popen(  # noqa: S603 the file is the user's own, from PATH or from the cache
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
        out, err = asked.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"it says no version within {PATIENCE:.0f} s"
    finally:
        _end(asked)
    # CNI plugins say it on standard error, as standard output is their runtime's.
    said = out.decode(errors="replace") + err.decode(errors="replace")
    if asked.returncode != 0:
        return f"it ends with {asked.returncode} when asked its version: {_cut(err.decode(errors='replace') or said)}"
    found = re.search(rf"^{program.answer}$", said, re.MULTILINE)
    if found is None:
        return f"it says no version that {program.name} would say: {_cut(said)}"
    return "" if found[1] == version else f"it is {_cut(found[1])}, wanted is {version}"


def _end(asked: subprocess.Popen[bytes]) -> None:
    """End the program and whatever it started, which may outlive it and hold its output open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(asked.pid, signal.SIGKILL)
    asked.wait()
    for stream in (asked.stdout, asked.stderr):
        if stream is not None:
            stream.close()


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= LONGEST_ANSWER else line[: LONGEST_ANSWER - 1] + "…")
