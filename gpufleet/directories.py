"""Directories of the command line: the project's out folder, and paths as they are printed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from stacks.load import ROOT

OUT = ROOT / "out"
"""Folder of all results. It does not depend on the working directory, so that a command finds what an earlier one stored."""


def short_path(path: Path) -> Path:
    """Return a path relative to the working directory if it is below it, else absolute."""
    try:
        resolved = path.resolve()
        return resolved.relative_to(Path.cwd()) if resolved.is_relative_to(Path.cwd()) else resolved
    except (OSError, RuntimeError):
        # Up to Python 3.12, a loop of links raises a RuntimeError; a deleted working directory raises an OSError.
        return path


class Directory(click.Path):
    """Type of an option for a directory, which may not exist yet."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path as it is printed; raise click.BadParameter for a file."""
        return short_path(Path(os.fsdecode(super().convert(value, param, ctx))))
