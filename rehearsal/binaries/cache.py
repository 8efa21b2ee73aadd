"""Cache of built programs: only complete programs get their final name, and one process at a time builds."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rehearsal.binaries.pins import Pins

POLL = 0.5
"""Seconds between two attempts to take the lock."""


@dataclass(frozen=True)
class Cache:
    """Folders of the cache: `base` contains everything that gpufleet can recreate, `folder` the programs of these pins."""

    base: Path
    folder: Path

    @property
    def go(self) -> Path:
        """Return the folder of the Go toolchain and its caches, for machines without Go."""
        return self.base / "go"

    @property
    def stages(self) -> Path:
        return self.folder / "stages"

    @contextlib.contextmanager
    def aside(self) -> Iterator[Path]:
        """Yield a temporary folder on the same disk. Remove first what killed processes left there."""
        root = self.base / "engines" / "unfinished"
        _remove(root)
        root.mkdir(parents=True)
        path = Path(tempfile.mkdtemp(dir=root))
        try:
            yield path
        finally:
            _remove(root)

    @contextlib.contextmanager
    def held(self, waits: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
        """Hold the lock for building, which ends with the process. Yield a function that publishes the current step to other processes.

        While another process holds the lock, call `waits` with that process's current step twice a second.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.base / "engines" / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            while not _locked(descriptor):
                waits(os.pread(descriptor, 200, 0).decode(errors="replace").strip())
                time.sleep(POLL)

            def tell(text: str) -> None:
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"process {os.getpid()}: {text}".encode(), 0)

            tell("begins")
            yield tell
        finally:
            os.close(descriptor)

    def install(self, made: Path, name: str) -> Path:
        """Move a finished file or folder to its final name, atomically and durably."""
        files = [path for path in made.rglob("*") if path.is_file()] if made.is_dir() else [made]
        for path in (*files, *{file.parent for file in files if made.is_dir()}):
            _sync(path)
        final = self.folder / name
        if final.is_dir() and not final.is_symlink():
            _remove(final)
        made.replace(final)
        _sync(self.folder)
        return final

    def remove_go_caches(self) -> None:
        for folder in ("modules", "build"):
            _remove(self.go / folder)


def cache_of(pins: Pins) -> Cache:
    """Return the cache of these pins: below GPUFLEET_CACHE, else XDG_CACHE_HOME/gpufleet, else ~/.cache/gpufleet."""
    base = base_folder()
    return Cache(base, base / "engines" / pins.digest())


def base_folder() -> Path:
    """Return gpufleet's cache folder: GPUFLEET_CACHE, else XDG_CACHE_HOME/gpufleet, else ~/.cache/gpufleet."""
    if own := os.environ.get("GPUFLEET_CACHE"):
        return Path(own).absolute()
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # A relative one is to be ignored: https://specifications.freedesktop.org/basedir-spec/latest/
    return (xdg if xdg.is_absolute() else _home() / ".cache") / "gpufleet"


def _home() -> Path:
    return Path(os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
