"""Run directory: a private folder and ports of one run, which are freed however the run ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from components.errors import GpufleetError
from rehearsal.local_cluster import reaper

MIN_FREE_BYTES = 2 * 2**30
"""Free space that a folder in memory must have: etcd's data, logs and keys of a cluster of full size."""
MAX_PATH_LENGTH = 64
"""Characters of a run's folder, so that sockets below it fit the 108 bytes of sun_path (unix(7))."""
REAPER_SECONDS = 90.0
FIRST_PORT, LAST_PORT, BLOCK = 20_000, 29_999, 100
"""Ports of runs: above those of well-known services, below Kubernetes' node ports (30000-32767,
https://kubernetes.io/docs/concepts/services-networking/service/#type-nodeport) and, as a rule, below the ephemeral range."""
LAST_OF_ALL = 65_535
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


class RunDirectoryError(GpufleetError):
    """A run cannot get a folder or ports."""


def parent_folder() -> Path:
    """Return the parent folder of runs. It is in memory, so that keys never reach a disk and etcd's fsync costs nothing.

    It is the first of $XDG_RUNTIME_DIR and /dev/shm that has MIN_FREE_BYTES free and allows execution (a container's /dev/shm often
    does neither), else the folder for temporary files.
    """
    for candidate in (os.environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm"):  # noqa: S108 - the private folder is made below it
        if not candidate or not os.access(candidate, os.W_OK | os.X_OK):
            continue
        space = os.statvfs(candidate)
        if space.f_bavail * space.f_frsize >= MIN_FREE_BYTES and not space.f_flag & os.ST_NOEXEC:
            return Path(candidate)
    return Path(tempfile.gettempdir())


class RunDirectory:
    """A private folder, ports and a marker of one run, which are freed when its process ends in any way.

    A reaper process waits for this process's end, kills the processes with the marker and removes the folder. If both are killed at once,
    the next run does that. A process that this one forks without exec keeps the run alive.
    """

    path: Path
    """The folder, with mode 0700 and a short path."""
    marker: str
    """Value of the environment variable reaper.MARKER, which every process of the run must have from its start."""

    def __init__(self, base: Path | None = None) -> None:
        """Create the folder and sweep those of ended processes; raise RunDirectoryError, or OSError if the base folder is not writable."""
        if sys.platform != "linux":
            raise RunDirectoryError(f"running programs of a cluster needs Linux, and this is {sys.platform}; use a Linux machine")
        parent = (base or parent_folder()) / f"gpufleet-{os.getuid()}"
        self.marker = secrets.token_hex(16)
        self._ports: dict[str, int] = {}
        self._before_end: list[Callable[[], None]] = []
        self._mutex = threading.Lock()
        self._ended = False
        self.path, self._lock_file, self._lock = _claim(parent, self.marker)
        try:
            self._block, self._reserved = _reserve_block()
            self._reader, self._writer = os.pipe()
            self._reaper = self._start_reaper()
        except BaseException:
            reaper.remove(self.path, self._lock_file)
            os.close(self._lock)
            raise
        threading.Thread(target=self._watch_reaper, name="reaper watcher", daemon=True).start()

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def reaper_pid(self) -> int:
        """Return the process id of the current reaper."""
        return self._reaper.pid

    def port(self, name: str) -> int:
        """Return a free loopback port for a name, the same during the run; raise RunDirectoryError if the block of ports is used up."""
        with self._mutex:
            if name not in self._ports:
                taken = set(self._ports.values())
                self._ports[name] = next((port for port in self._block if port not in taken and _free(port)), 0)
                if not self._ports[name]:
                    del self._ports[name]
                    raise RunDirectoryError(
                        f"{name}: none of the {len(self._block)} ports {self._block.start}-{self._block.stop - 1} is free; end other runs"
                    )
            return self._ports[name]

    def before_end(self, action: Callable[[], None]) -> None:
        """Register an action to run first when the run is closed, the latest first."""
        self._before_end.append(action)

    def close(self) -> None:
        """End the run: run the before_end actions, kill every process with the marker, remove the folder; do nothing the second time."""
        with self._mutex:
            if self._ended:
                return
            self._ended = True
        try:
            for action in reversed(self._before_end):
                action()
        finally:
            os.close(self._writer)
            os.close(self._reader)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._reaper.wait(REAPER_SECONDS)
            if self.path.exists():
                reaper.clean(self.marker, self.path, self._lock_file)
            self._reserved.close()
            os.close(self._lock)

    def _start_reaper(self) -> subprocess.Popen[bytes]:
        """Start a reaper, which shares the locks, so that no other run sweeps or takes the ports before it has finished.

        Its environment is empty: with the marker of an enclosing run it would be killed together with this process.
        """
        argv = [sys.executable, "-I", "-S", reaper.__file__, str(self.path), str(self._lock_file)]
        return subprocess.Popen(  # noqa: S603
            argv,
            stdin=self._reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
            pass_fds=(self._lock, self._reserved.fileno()),
        )

    def _watch_reaper(self) -> None:
        """Start another reaper if one ends before the run."""
        while True:
            self._reaper.wait()
            with self._mutex:
                if self._ended:
                    return
                self._reaper = self._start_reaper()


def _private(folder: Path) -> Path:
    """Return the folder of this user's runs; raise RunDirectoryError if another user owns it, or if its path is too long for sockets."""
    if len(str(folder)) > MAX_PATH_LENGTH - 10:
        raise RunDirectoryError(
            f"{folder} has {len(str(folder))} characters, more than the {MAX_PATH_LENGTH - 10} that leave room for sockets;"
            " set TMPDIR to a shorter folder"
        )
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RunDirectoryError(f"{folder} is not a folder that only its owner may enter; remove it, or set TMPDIR to your own folder")
    return folder


def _claim(parent: Path, marker: str) -> tuple[Path, Path, int]:
    """Sweep, and create a folder; return the folder, its lock file and the lock. The end of another run may remove the empty parent."""
    while True:
        _private(parent)
        with contextlib.suppress(FileNotFoundError), _locked(parent):
            _sweep(parent)
            return _new(parent, marker)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder during the context."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _new(parent: Path, marker: str) -> tuple[Path, Path, int]:
    """Create a folder and its lock file with the marker; return both and the lock."""
    name = secrets.token_hex(4)
    lock_file = parent / f"{name}.lock"
    lock = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, marker.encode())
    folder = parent / name
    folder.mkdir(mode=0o700)
    return folder, lock_file, lock


def _sweep(parent: Path) -> None:
    """Clean up runs whose process and reaper have ended, which have an unlocked lock file."""
    for lock_file in parent.glob("*.lock"):
        try:
            descriptor = os.open(lock_file, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            marker = lock_file.read_text().strip()
            if marker:
                reaper.clean(marker, lock_file.with_suffix(""), lock_file)
            else:
                reaper.remove(lock_file.with_suffix(""), lock_file)
        finally:
            os.close(descriptor)


def _reserve_block() -> tuple[range, socket.socket]:
    """Return ports that no other run on this machine has, and the socket whose name reserves them; raise RunDirectoryError.

    The name is abstract: it belongs to the network namespace, as ports do, and is free once all processes have closed the socket.
    """
    for first in _block_starts():
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            holder.bind(f"\0gpufleet-ports-{first}")
        except OSError:
            holder.close()
            continue
        return range(first, first + BLOCK), holder
    raise RunDirectoryError("every block of ports is taken by another run on this machine; end one of them")


def _block_starts() -> Iterator[int]:
    """Yield the first ports of the blocks outside the ephemeral range, which the kernel uses for outgoing connections."""
    low, high = (int(word) for word in EPHEMERAL.read_text().split())
    for first in range(FIRST_PORT, LAST_PORT + 1, BLOCK):
        if first + BLOCK <= low or first > high:
            yield first
    yield from range(max(high, LAST_PORT) + 1, LAST_OF_ALL - BLOCK + 1, BLOCK)


def _free(port: int) -> bool:
    """Return True if a program can listen on a loopback port."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
