"""A process that holds a place inside the hub's network, as tests ask and kill it."""

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
    """The process: what it was told to run things by, and what it heard."""

    def __init__(self, region: str, folder: Path) -> None:
        self.said: list[str] = []
        self._place: dict[str, Any] = {}
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
            told = json.loads(line)
            if "say" in told:
                self.said.append(told["say"])
            else:
                self._place = told

    def hears(self, part: str, before: int = 0) -> int:
        """How many sentences there are once one of those after the first so many has a part."""

        def heard() -> int:
            assert self.process.poll() is None, self.said
            return next((number for number, one in enumerate(self.said[before:], before + 1) if part in one), 0)

        return until(heard, f"it says {part!r}")

    def run(self, *words: str, given: str | None = None, check: bool = True) -> str:
        """What a command inside prints."""
        place = until(lambda: self._place, "there is a place inside")
        environment = {**os.environ, **place["environment"], "PYTHONPATH": str(ROOT)}
        argv = [*place["command"], *words]
        done = subprocess.run(argv, input=given, capture_output=True, text=True, env=environment, check=False, timeout=RUN_SECONDS)
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout

    def python(self, text: str, *words: str) -> str:
        """What a program inside prints."""
        return self.run(sys.executable, "-c", text, *words)

    def inside(self) -> list[int]:
        """Processes that are inside, by their ids out here."""
        return in_network_of(int(until(lambda: self._place, "there is a place inside")["command"][-1]))

    def kill(self) -> None:
        """kill -9 of the holder alone; what was inside ends too."""
        inside = self.inside()
        assert len(inside) > 5
        self.process.kill()
        self.process.wait()
        until(lambda: all(map(ended, inside)), "all that was inside has ended", 30)


def in_network_of(pid: int) -> list[int]:
    """Processes in the network namespace of one; none as long as that is this process's own too."""
    own = network_of(pid)
    if own in (None, network_of(os.getpid())):
        return []
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal() and network_of(int(each.name)) == own]


def network_of(pid: int) -> str | None:
    """A process's network namespace; None where it is gone."""
    try:
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    except OSError:
        return None
