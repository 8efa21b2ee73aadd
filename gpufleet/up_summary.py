"""How an update of the embedded Azure is told: the changes as a tree, what they come to, and a paragraph for each kind of failure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from gpufleet.up_progress import span

if TYPE_CHECKING:
    from rehearsal.local_up.up import Outcome


def print_outcome(console: Console, outcome: Outcome, seconds: float, folder: Path | None, *, everything: bool) -> None:
    """Print what was done, or without a folder what would be done; seconds are those that passed here."""
    for line in told(outcome, seconds, folder, everything=everything):
        console.print(line, markup=False, soft_wrap=True)


def print_destroyed(console: Console, outcome: Outcome, seconds: float, folder: Path, *, only_purge: bool) -> None:
    """Print what was deleted and purged."""
    if outcome.before != outcome.after or not outcome.complete:
        print_outcome(console, outcome, seconds, folder, everything=False)
    elif not outcome.purged:
        nothing = "no deleted vault to purge" if only_purge else "nothing to destroy"
        console.print(f"{outcome.plan.name}: {nothing} in {folder}", markup=False, soft_wrap=True)
    if outcome.purged:
        names = "its name is free" if outcome.purged == 1 else "their names are free"
        vaults = f"{outcome.purged:,} deleted vault{'' if outcome.purged == 1 else 's'}"
        console.print(f"{vaults} purged: {names}", markup=False, soft_wrap=True)


def told(outcome: Outcome, seconds: float, folder: Path | None, *, everything: bool) -> list[str]:
    """The lines of print_outcome."""
    from rehearsal.local_up.diff_text import DONE, PLANNED, count_line, machine_line, tree_lines
    from rehearsal.local_up.failure_text import paragraphs
    from rehearsal.local_up.snapshot import changes

    failed = {urn for update in outcome.updates for urn in update.failures}
    found = changes(outcome.before, outcome.after, failed)
    lines = tree_lines(found, outcome.before, outcome.after, everything=everything)
    if found:
        machines = machine_line(outcome.before, outcome.after)
        lines.append(f"resources: {count_line(found, outcome.after, PLANNED if folder is None else DONE, len(failed))}")
        lines += [machines] if machines else []
        would = "would take" if folder is None else "took"
        lines.append(f"{would} {span(outcome.seconds)} of Azure's time ({seconds:.1f} s here)" + _where(folder))
    elif outcome.complete:
        lines.append(_nothing(outcome, seconds))
    ending = paragraphs(outcome)
    if ending and folder is None:
        ending.insert(0, "An update would end like this:")
    return [*lines, *(line for paragraph in ending for line in ("", paragraph))]


def _nothing(outcome: Outcome, seconds: float) -> str:
    """That everything is as the region file says, with the machines that are still to take their set's model."""
    from rehearsal.local_up.diff_text import OUT_OF_DATE

    machines = sum(item.machines or 0 for item in outcome.after.values())
    behind = sum(item.behind for item in outcome.after.values())
    left = f"; {behind:,} of them are out of date ({OUT_OF_DATE})" if behind else ""
    resources = sum(bool(item.record.id) for item in outcome.after.values())
    return (
        f"{outcome.plan.name}: nothing to change: {resources:,} resources and {machines:,} machines are as planned{left} ({seconds:.1f} s)"
    )


def _where(folder: Path | None) -> str:
    return f"; kept in {folder}" if folder is not None else "; nothing was changed"
