"""Reads what a machine was told at boot out of the custom data that Azure gave it: files, and the units that it starts."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

HEADER = "#cloud-config\n"
KEYS = frozenset({"write_files", "runcmd"})
FILE_KEYS = frozenset({"path", "owner", "permissions", "content"})
RELOAD = ["systemctl", "daemon-reload"]
ENABLE = ["systemctl", "enable", "--now", "--no-block"]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class BootFilesError(ValueError):
    """Custom data that no machine of ours could boot from: where is the machine, why the reason."""

    def __init__(self, where: str, why: str) -> None:
        self.where, self.why = where, why
        self.remedy = "custom data is what components/boot/machine.py renders: compare the two"
        super().__init__(f"custom data of {where}: {why}; {self.remedy}")


@dataclass(frozen=True)
class BootFile:
    """One file of a machine: its path there, its text, its mode as a number, and its owner as user:group."""

    path: str
    content: str
    mode: int
    owner: str


@dataclass(frozen=True)
class BootFiles:
    """What one machine is told: every file, and the units that it enables, in the order in which it names them."""

    files: tuple[BootFile, ...]
    enabled: tuple[str, ...]

    def content(self, path: str) -> str:
        """Text of the file at a path; KeyError where there is none."""
        for one in self.files:
            if one.path == path:
                return one.content
        raise KeyError(path)


def read_boot(machine: str, custom_data: str) -> BootFiles:
    """Files and units of a machine's custom data, which is base64 of a cloud-init document; BootRefused."""
    try:
        text = base64.b64decode(custom_data, validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise BootFilesError(machine, f"it is not the base64 of a text ({error})") from None
    if not text.startswith(HEADER):
        raise BootFilesError(machine, f"it begins with {text[:20]!r}, and cloud-init reads only what begins with #cloud-config")
    try:
        document = yaml.load(text, LOADER)  # noqa: S506 (a safe loader, the faster one where libyaml is there)
    except yaml.YAMLError as error:
        raise BootFilesError(machine, f"it is no YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(document, dict) or set(document) != KEYS:
        raise BootFilesError(machine, f"it wants exactly {sorted(KEYS)}, and has {_named(document)}")
    return BootFiles(_files(machine, document["write_files"]), _enabled(machine, document["runcmd"]))


def _files(machine: str, entries: Any) -> tuple[BootFile, ...]:
    """write_files of a document."""
    if not isinstance(entries, list):
        raise BootFilesError(machine, f"write_files is no list but {_named(entries)}")
    files = tuple(_file(machine, number, entry) for number, entry in enumerate(entries))
    if twice := _twice(one.path for one in files):
        raise BootFilesError(machine, f"{twice} is written twice: the first content would be lost")
    return files


def _file(machine: str, number: int, entry: Any) -> BootFile:
    where = f"write_files[{number}]"
    if not isinstance(entry, dict) or set(entry) != FILE_KEYS:
        raise BootFilesError(machine, f"{where} wants exactly {sorted(FILE_KEYS)}, and has {_named(entry)}")
    path, mode = entry["path"], entry["permissions"]
    for name, value in entry.items():
        if not isinstance(value, str):
            raise BootFilesError(machine, f"{where}.{name} is {value!r}, and must be a text")
    if not path.startswith("/") or {"", ".", ".."} & set(path.split("/")[1:]):
        raise BootFilesError(machine, f"{where}.path is {path!r}, and must be an absolute path without . or ..")
    if not 3 <= len(mode) <= 4 or not set(mode) <= set("01234567"):
        raise BootFilesError(machine, f"{where}.permissions of {path} is {mode!r}, and must be three or four octal digits in quotes")
    return BootFile(path, entry["content"], int(mode, 8), entry["owner"])


def _enabled(machine: str, commands: Any) -> tuple[str, ...]:
    """Units that runcmd enables and starts; any other command would be one that nothing here could do."""
    if not isinstance(commands, list) or len(commands) != 2 or commands[0] != RELOAD:
        raise BootFilesError(machine, f"runcmd wants {RELOAD} and one enabling command, and is {commands!r:.200}")
    enable = commands[1]
    if not isinstance(enable, list) or enable[: len(ENABLE)] != ENABLE or not all(isinstance(word, str) for word in enable):
        raise BootFilesError(machine, f"runcmd[1] wants {ENABLE} and units, and is {enable!r:.200}")
    units = tuple(enable[len(ENABLE) :])
    if not units or any(unit.startswith("-") for unit in units):
        raise BootFilesError(machine, f"runcmd[1] names no units, or an option among them: {enable!r:.200}")
    if twice := _twice(units):
        raise BootFilesError(machine, f"runcmd enables {twice} twice")
    return units


def _twice(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]


def _named(value: Any) -> str:
    return str(sorted(map(str, value))) if isinstance(value, dict) else type(value).__name__
