"""CPU seconds of the processes that Pulumi's engine starts, by part."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import psutil

LOOKS_APART = 0.1
"""Seconds between two readings; CPU time after a process's last reading is not counted."""
PARTS: Mapping[str, tuple[str, ...]] = {
    "providers": ("rehearsal.pulumi_cli.providers.",),
    "keys and certificates": ("pulumi-resource-pulumi-python", "pulumi.dynamic", "dynamic/__main__"),
    "language host and program": ("pulumi-language-python",),
    "engine": ("/pulumi ",),
}
"""Parts by text in their command lines; the first match applies. The program runs below the language host, through uv."""


class Seconds:
    """CPU seconds by part; other processes (Azure, the clusters, this benchmark) are not counted."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[str, float]] = {}

    def look(self) -> None:
        """Read all child processes."""
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                with process.oneshot():
                    part = _part(" ".join([*process.cmdline(), ""]))
                    times = process.cpu_times()
                if part:
                    self._seen[process.pid] = (part, times.user + times.system)

    def by_part(self) -> dict[str, float]:
        """Return CPU seconds by part."""
        return {part: sum(seconds for one, seconds in self._seen.values() if one == part) for part in PARTS}


@contextmanager
def watched() -> Iterator[Seconds]:
    """Count CPU seconds while the context is active."""
    seconds, ended = Seconds(), threading.Event()

    def watch() -> None:
        while not ended.wait(LOOKS_APART):
            seconds.look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield seconds
    finally:
        ended.set()
        watcher.join()


def _part(command: str) -> str:
    return next((part for part, words in PARTS.items() if any(word in command for word in words)), "")
