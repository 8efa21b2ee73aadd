"""Decides what each part of Pulumi's own engine has cost: CPU seconds of the processes that a command starts, by what they are."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import psutil

LOOKS_APART = 0.1
"""Seconds between two looks: what a process does in its last moment before it ends is not seen."""
PARTS: Mapping[str, tuple[str, ...]] = {
    "providers": ("rehearsal.pulumi_cli.providers.",),
    "keys and certificates": ("pulumi-resource-pulumi-python", "pulumi.dynamic", "dynamic/__main__"),
    "language host and program": ("pulumi-language-python",),
    "engine": ("/pulumi ",),
}
"""By what stands in their command lines, the first that fits: the program runs below the language host, through uv."""


class Seconds:
    """CPU seconds so far, by part; what belongs to none (Azure, the clusters, this bench) is not counted."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[str, float]] = {}

    def look(self) -> None:
        """Look at every process that this one has started."""
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                with process.oneshot():
                    part = _part(" ".join([*process.cmdline(), ""]))
                    times = process.cpu_times()
                if part:
                    self._seen[process.pid] = (part, times.user + times.system)

    def by_part(self) -> dict[str, float]:
        """CPU seconds by part."""
        return {part: sum(seconds for one, seconds in self._seen.values() if one == part) for part in PARTS}


@contextmanager
def watched() -> Iterator[Seconds]:
    """Count what runs meanwhile."""
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
