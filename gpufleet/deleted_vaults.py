"""How deleted vaults are told: which names they hold until when, and the command that frees them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rehearsal.local_up.deleted_vaults import HeldName


def held_lines(held: Sequence[HeldName], region: str, folder: Path) -> list[str]:
    """A line for those that a purge frees, with the command, and one for those that nothing frees before their day."""
    lines = []
    if free := [one for one in held if one.purgeable]:
        lines.append(f"{_holding(free)}; to free {_them(free)} now: {purge_command(region, folder)}")
    if kept := [one for one in held if not one.purgeable]:
        lines.append(f"{_holding(kept)}; this region cannot purge {_them(kept)}: wait until then, or begin anew with another --state")
    return lines


def purge_command(region: str, folder: Path) -> str:
    """The command that purges a region's deleted vaults and touches nothing else."""
    return shlex.join(["gpufleet", "destroy", region, "--state", str(folder), "--only-purge"])


def _holding(held: Sequence[HeldName]) -> str:
    names, until = ", ".join(one.name for one in held), max(one.until for one in held)
    if len(held) == 1:
        return f"1 deleted vault holds its name until {until} ({names})"
    return f"{len(held):,} deleted vaults hold their names until {until} ({names})"


def _them(held: Sequence[HeldName]) -> str:
    return "it" if len(held) == 1 else "them"
