"""A process that runs a hub namespace, which tests use and kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

from processes import ended
from waiting import until

ROOT = Path(__file__).parents[4]
HOLDER_PROCESS = Path(__file__).with_name("hub_holder_process.py")
RUN_SECONDS = 240.0


class Holder:
    """The process, its hub namespace, and the sentences that it reported."""

    def __init__(self, region: str, folder: Path) -> None:
        self.said: list[str] = []
        self._namespace: dict[str, Any] = {}
        argv = [sys.executable, str(HOLDER_PROCESS), region, str(folder)]
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        assert self.process.wait(60) in (0, -9)
        self._listener.join()
        self.process.stdout.close()

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            if "say" in message:
                self.said.append(message["say"])
            else:
                self._namespace = message

    def wait_for(self, part: str, before: int = 0) -> int:
        """Wait for a sentence with a part after the first `before` sentences; return its number, from 1."""

        def found() -> int:
            assert self.process.poll() is None, self.said
            return next((number for number, one in enumerate(self.said[before:], before + 1) if part in one), 0)

        return until(found, f"it reports {part!r}")

    def run(self, *words: str, given: str | None = None, check: bool = True) -> str:
        """Return the output of a command in the namespace."""
        namespace = until(lambda: self._namespace, "the hub namespace exists")
        environment = {**os.environ, **namespace["environment"], "PYTHONPATH": str(ROOT)}
        argv = [*namespace["command"], *words]
        done = subprocess.run(argv, input=given, capture_output=True, text=True, env=environment, check=False, timeout=RUN_SECONDS)
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout

    def python(self, text: str, *words: str) -> str:
        """Return the output of a Python program in the namespace."""
        return self.run(sys.executable, "-c", text, *words)

    def inside(self) -> list[int]:
        """Return the ids of the processes in the namespace, as outside of it."""
        return in_network_of(int(until(lambda: self._namespace, "the hub namespace exists")["command"][-1]))

    def kill(self) -> None:
        """Kill only the holder with SIGKILL; wait until all processes in the namespace have ended."""
        inside = self.inside()
        assert len(inside) > 5
        self.process.kill()
        self.process.wait()
        until(lambda: all(map(ended, inside)), "all processes in the namespace have ended", 30)


def in_network_of(pid: int) -> list[int]:
    """Return the processes in a process's network namespace; none if it is this process's namespace."""
    own = network_of(pid)
    if own in (None, network_of(os.getpid())):
        return []
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal() and network_of(int(each.name)) == own]


def network_of(pid: int) -> str | None:
    """Return a process's network namespace, or None if it has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    except OSError:
        return None
