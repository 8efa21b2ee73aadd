"""Sees at once when an address changes hands: host-local keeps a file for each address that is taken, named after it.

The file's first line is the pod sandbox that has it: https://www.cni.dev/plugins/current/ipam/host-local/. It is made before the pod's
link, so that who is told of it by inotify(7) reads a counter to which the new pod has added nothing.
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
    """The reservations in folder, which need not be there yet, and is none where another plugin gives out the addresses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = self._libc.inotify_init1(_FLAGS)
        if self._handle < 0:
            raise OSError(ctypes.get_errno(), "inotify is not to be had; raise fs.inotify.max_user_instances")
        self._known: dict[str, tuple[tuple[int, int], str]] = {}
        self._follow()

    def fileno(self) -> int:
        """Descriptor that is readable when something has changed."""
        return int(self._handle)

    def drain(self) -> bool:
        """Take what has been told since the last time; says whether there was anything."""
        told = False
        while select.select([self._handle], [], [], 0)[0]:
            os.read(self._handle, _BUFFER)
            told = True
        if told:
            self._follow()
        return told

    def now(self) -> dict[str, str]:
        """Sandbox by address; empty text for a file that is not written yet. A file is read once."""
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
        """Let go of the descriptor."""
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
        """Watch the folder, or the nearest above it that is there; the kernel takes a watch that is there already for the same."""
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
