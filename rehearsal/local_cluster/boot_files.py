"""Boot files of a machine: the files and enabled units of its custom data, read as cloud-init does."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from components.errors import GpufleetError

HEADER = "#cloud-config\n"
KEYS = frozenset({"write_files", "runcmd"})
FILE_KEYS = frozenset({"path", "owner", "permissions", "content"})
RELOAD = ["systemctl", "daemon-reload"]
ENABLE = ["systemctl", "enable", "--now", "--no-block"]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BootFilesError(GpufleetError, ValueError):
    """Custom data that no machine of the fleet could boot from: the machine (where) and the reason (why)."""

    def __init__(self, where: str, why: str) -> None:
        self.where, self.why = where, why
        self.remedy = "custom data is what components/boot/machine.py renders: compare the two"
        super().__init__(f"custom data of {where}: {why}; {self.remedy}")


@dataclass(frozen=True)
class BootFile:
    """One file of a machine: path, content, mode as a number, and owner as user:group."""

    path: str
    content: str
    mode: int
    owner: str


@dataclass(frozen=True)
class BootFiles:
    """Custom data of one machine: every file, and the enabled units in their order."""

    files: tuple[BootFile, ...]
    enabled: tuple[str, ...]

    def content(self, path: str) -> str:
        """Return the content of the file at a path; raise KeyError."""
        for one in self.files:
            if one.path == path:
                return one.content
        raise KeyError(path)


def read_boot(machine: str, custom_data: str) -> BootFiles:
    """Return the files and units of custom data, which is base64 of a cloud-init document; raise BootFilesError."""
    try:
        text = base64.b64decode(custom_data, validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise BootFilesError(machine, f"it is not the base64 of a text ({error})") from None
    if not text.startswith(HEADER):
        raise BootFilesError(machine, f"it begins with {text[:20]!r}, and cloud-init requires #cloud-config")
    try:
        document = yaml.load(text, LOADER)  # noqa: S506 (a safe loader, the faster one if libyaml is installed)
    except yaml.YAMLError as error:
        raise BootFilesError(machine, f"it is no YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(document, dict) or set(document) != KEYS:
        raise BootFilesError(machine, f"it needs exactly {sorted(KEYS)}, and has {_described(document)}")
    return BootFiles(_files(machine, document["write_files"]), _enabled(machine, document["runcmd"]))


def _files(machine: str, entries: Any) -> tuple[BootFile, ...]:
    """Return the files of write_files."""
    if not isinstance(entries, list):
        raise BootFilesError(machine, f"write_files is no list but {_described(entries)}")
    files = tuple(_file(machine, number, entry) for number, entry in enumerate(entries))
    if duplicate := _first_duplicate(one.path for one in files):
        raise BootFilesError(machine, f"{duplicate} is written twice: the first content would be lost")
    return files


def _file(machine: str, number: int, entry: Any) -> BootFile:
    where = f"write_files[{number}]"
    if not isinstance(entry, dict) or set(entry) != FILE_KEYS:
        raise BootFilesError(machine, f"{where} needs exactly {sorted(FILE_KEYS)}, and has {_described(entry)}")
    path, mode = entry["path"], entry["permissions"]
    for name, value in entry.items():
        if not isinstance(value, str):
            raise BootFilesError(machine, f"{where}.{name} is {value!r}, and must be a string")
    if not path.startswith("/") or {"", ".", ".."} & set(path.split("/")[1:]):
        raise BootFilesError(machine, f"{where}.path is {path!r}, and must be an absolute path without . or ..")
    if not 3 <= len(mode) <= 4 or not set(mode) <= set("01234567"):
        raise BootFilesError(machine, f"{where}.permissions of {path} is {mode!r}, and must be three or four octal digits in quotes")
    return BootFile(path, entry["content"], int(mode, 8), entry["owner"])


def _enabled(machine: str, commands: Any) -> tuple[str, ...]:
    """Return the units that runcmd enables and starts; other commands are not supported here."""
    if not isinstance(commands, list) or len(commands) != 2 or commands[0] != RELOAD:
        raise BootFilesError(machine, f"runcmd needs {RELOAD} and one enabling command, and is {commands!r:.200}")
    enable = commands[1]
    if not isinstance(enable, list) or enable[: len(ENABLE)] != ENABLE or not all(isinstance(word, str) for word in enable):
        raise BootFilesError(machine, f"runcmd[1] needs {ENABLE} and units, and is {enable!r:.200}")
    units = tuple(enable[len(ENABLE) :])
    if not units or any(unit.startswith("-") for unit in units):
        raise BootFilesError(machine, f"runcmd[1] names no units, or an option among them: {enable!r:.200}")
    if duplicate := _first_duplicate(units):
        raise BootFilesError(machine, f"runcmd enables {duplicate} twice")
    return units


def _first_duplicate(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]


def _described(value: Any) -> str:
    return str(sorted(map(str, value))) if isinstance(value, dict) else type(value).__name__
