"""Address reservations, followed by inotify(7): host-local has one file per reserved address, named after it.

The file's first line is the pod's sandbox: https://www.cni.dev/plugins/current/ipam/host-local/. It is created before the pod's link, so
that a counter read at its event contains nothing of the new pod.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import select
from pathlib import Path

_EVENTS = 0x100 | 0x200 | 0x8 | 0x80 | 0x40
"""IN_CREATE, IN_DELETE, IN_CLOSE_WRITE, IN_MOVED_TO, IN_MOVED_FROM of linux/inotify.h."""
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_BUFFER = 65_536


class Reservations:
    """The reservations in folder, which need not exist yet; none where another plugin assigns the addresses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = self._libc.inotify_init1(_FLAGS)
        if self._handle < 0:
            raise OSError(ctypes.get_errno(), "inotify is not to be had; raise fs.inotify.max_user_instances")
        self._known: dict[str, tuple[tuple[int, int], str]] = {}
        self._follow()

    def fileno(self) -> int:
        """Return the descriptor that is readable when a file has changed."""
        return int(self._handle)

    def drain(self) -> bool:
        """Discard pending events; return whether there were any."""
        changed = False
        while select.select([self._handle], [], [], 0)[0]:
            os.read(self._handle, _BUFFER)
            changed = True
        if changed:
            self._follow()
        return changed

    def now(self) -> dict[str, str]:
        """Return the sandbox by address; empty for a file that is not written yet. Each file is read once."""
        found: dict[str, tuple[tuple[int, int], str]] = {}
        try:
            entries = list(os.scandir(self._folder))
        except OSError:
            entries = []
        for entry in entries:
            if (address := _address(entry.name)) and (file := self._read(entry, address)):
                found[address] = file
        self._known = found
        return {address: sandbox for address, (_, sandbox) in found.items()}

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._handle)

    def _read(self, entry: os.DirEntry[str], address: str) -> tuple[tuple[int, int], str] | None:
        try:
            status = entry.stat()
            mark = (status.st_ino, status.st_mtime_ns)
            known = self._known.get(address)
            if known and known[0] == mark and known[1]:
                return known
            return mark, Path(entry.path).read_text(errors="replace").partition("\n")[0].strip()
        except OSError:
            # It was freed since the folder was listed.
            return None

    def _follow(self) -> None:
        """Watch the folder, or its nearest existing parent; the kernel merges repeated watches."""
        before: Path | None = None
        while (nearest := next(folder for folder in (self._folder, *self._folder.parents) if self._watch(folder))) != before:
            before = nearest

    def _watch(self, folder: Path) -> bool:
        return bool(self._libc.inotify_add_watch(self._handle, os.fsencode(folder), _EVENTS) >= 0)


def _address(name: str) -> str | None:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return None
