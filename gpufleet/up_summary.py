"""How an update of the embedded Azure is told: the changes as a tree, what they come to, and a paragraph for each kind of failure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from gpufleet.up_progress import span

if TYPE_CHECKING:
    from rehearsal.upward.up import Outcome


def print_outcome(console: Console, outcome: Outcome, seconds: float, folder: Path | None, *, everything: bool) -> None:
    """Print what was done, or without a folder what would be done; seconds are those that passed here."""
    for line in told(outcome, seconds, folder, everything=everything):
        console.print(line, markup=False, soft_wrap=True)


def told(outcome: Outcome, seconds: float, folder: Path | None, *, everything: bool) -> list[str]:
    """The lines of print_outcome."""
    from rehearsal.upward.diff_text import DONE, PLANNED, count_line, machine_line, tree_lines
    from rehearsal.upward.failure_text import paragraphs
    from rehearsal.upward.picture import changes

    found = changes(outcome.before, outcome.after)
    lines = tree_lines(found, outcome.before, outcome.after, everything=everything)
    if found:
        machines = machine_line(found)
        lines.append(f"resources: {count_line(found, outcome.after, PLANNED if folder is None else DONE)}")
        lines += [machines] if machines else []
        would = "would take" if folder is None else "took"
        lines.append(f"{would} {span(outcome.seconds)} of Azure's time ({seconds:.1f} s here)" + _where(folder))
    elif outcome.complete:
        lines.append(_nothing(outcome, seconds))
    failed = paragraphs(outcome)
    if failed and folder is None:
        failed.insert(0, "An update would end like this:")
    return [*lines, *(line for paragraph in failed for line in ("", paragraph))]


def _nothing(outcome: Outcome, seconds: float) -> str:
    """That everything is as the region file says, with the machines that are still to take their set's model."""
    machines = sum(item.machines or 0 for item in outcome.after.values())
    behind = sum(item.behind for item in outcome.after.values())
    left = f"; {behind:,} of them are out of date, which a rotation mends" if behind else ""
    resources = sum(bool(item.record.id) for item in outcome.after.values())
    return (
        f"{outcome.plan.name}: nothing to change: {resources:,} resources and {machines:,} machines are as planned{left} ({seconds:.1f} s)"
    )


def _where(folder: Path | None) -> str:
    return f"; kept in {folder}" if folder is not None else "; nothing was changed"
