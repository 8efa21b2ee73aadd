"""Writes a file whole or not at all, and only where it differs."""

from __future__ import annotations

import os
from pathlib import Path


def write_if_changed(path: Path, text: str, mode: int = 0o644) -> bool:
    """Makes a file's content text; whether it was another. A crash at any point leaves the old content or the new, on the disk too."""
    try:
        if path.read_text() == text:
            return False
    except (OSError, ValueError):
        # Missing or unreadable: it is written.
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    # The container runtime takes up .conf, .conflist and .json only, so a half-written file beside them is none of its networks.
    aside = path.with_name(f".{path.name}.next")
    with aside.open("w") as stream:
        stream.write(text)
        stream.flush()
        os.fchmod(stream.fileno(), mode)
        os.fsync(stream.fileno())
    aside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True


def remove_file(path: Path) -> bool:
    """Removes a file; whether it was there."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
