"""Marker of a directory that gpufleet may write: its contents, so that no command writes into a user's own files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from components.errors import GpufleetError
from stacks.atomic_write import write_atomically

MARKER = "gpufleet-directory"


class ForeignDirectoryError(GpufleetError):
    """A directory with files that gpufleet did not write, or with other contents than the command needs."""


@dataclass(frozen=True)
class DirectoryContents:
    """What a directory contains; the marker's first line is `name`.

    A directory without a marker, which an earlier version wrote, is recognised by a name that matches `sign`. One that a command left
    unfinished has only names that match `own`.
    """

    name: str
    sign: re.Pattern[str]
    own: re.Pattern[str]


PART = r"\.gpufleet-directory\.\d+"
"""A marker that is being written."""
AZURE = DirectoryContents(
    "embedded Azure", sign=re.compile(r"state-\d{6}\.json|journal-\d{6}\.jsonl"), own=re.compile(rf"lock|state-\d{{6}}\.part|{PART}")
)
ENGINE = DirectoryContents(
    "Pulumi's engine", sign=re.compile("passphrase"), own=re.compile(rf"lock|home|state|project|inside|passphrase\.new|{PART}")
)


def claim(folder: Path, contents: DirectoryContents) -> None:
    """Check that a directory is empty, or has these contents; raise ForeignDirectoryError before anything is written."""
    marker = folder / MARKER
    if marker.is_file():
        found = marker.read_text(errors="replace").partition("\n")[0]
        if found != contents.name:
            raise ForeignDirectoryError(f"{folder} contains {found or 'no name'}, not {contents.name}; give another directory with --state")
        return
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if any(contents.sign.fullmatch(name) for name in names):
        return
    if foreign := [name for name in names if not contents.own.fullmatch(name)]:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise ForeignDirectoryError(
            f"{folder} contains {foreign[0]}{more}, which gpufleet did not write; give a new or an empty directory with --state"
        )


def mark(folder: Path, contents: DirectoryContents) -> None:
    """Write the marker into a directory that this process has locked, unless it exists. Raises OSError."""
    marker = folder / MARKER
    if marker.is_file():
        return
    # Like every file in the directory, for its owner alone.
    write_atomically(marker, f"{contents.name}\ngpufleet wrote this directory, and may change or delete its files.\n", mode=0o600)
