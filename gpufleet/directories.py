"""Directories of the command line: the project's out folder, and the type of an option for a directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from stacks.load import ROOT, short_path

OUT = ROOT / "out"
"""Folder of all results. It does not depend on the working directory, so that a command finds what an earlier one stored."""


class Directory(click.Path):
    """Type of an option for a directory, which may not exist yet."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path as it is printed; raise click.BadParameter for a file."""
        return short_path(Path(os.fsdecode(super().convert(value, param, ctx))))
