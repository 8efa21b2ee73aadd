"""Output of an update of the embedded Azure: progress, the changes as a tree, failures, and deleted vaults."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from gpufleet.consoles import is_live, progress_console

if TYPE_CHECKING:
    from rehearsal.local_up.deleted_vaults import ReservedName
    from rehearsal.local_up.up import UpOutcome

STEP = 10
"""Resources between two updates of the live line."""


@contextmanager
def shown(verb: str) -> Iterator[Callable[[str, int, float], None]]:
    """Show progress on standard error: a live line on a terminal, elsewhere a line per stack.

    Yields a callback of stack, number of resources and seconds of model time.
    """
    console = progress_console()
    if not is_live(console):
        yield lambda stack, count, _seconds: None if count else console.print(f"{verb}: {stack}", markup=False)
        return
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True) as bars:
        task = bars.add_task(verb, total=None)

        def tell(stack: str, count: int, seconds: float) -> None:
            if count % STEP == 0:
                bars.update(task, description=f"{verb} {stack}: {count:,} resources, {span(seconds)} of Azure's time")

        yield tell


def span(seconds: float) -> str:
    """Format a time: seconds up to two minutes, then minutes, then hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def held_lines(held: Sequence[ReservedName], region: str, folder: Path) -> list[str]:
    """Return a line for the vaults that a purge frees, with the command, and one for those with purge protection."""
    lines = []
    if free := [one for one in held if one.purgeable]:
        lines.append(f"{_holding(free)}; to free {_them(free)} now: {purge_command(region, folder)}")
    if kept := [one for one in held if not one.purgeable]:
        lines.append(f"{_holding(kept)}; this region cannot purge {_them(kept)}: wait until then, or use another --state")
    return lines


def purge_command(region: str, folder: Path) -> str:
    """Return the command that purges a region's deleted vaults and nothing else."""
    return shlex.join(["gpufleet", "destroy", region, "--state", str(folder), "--only-purge"])


def _holding(held: Sequence[ReservedName]) -> str:
    names, until = ", ".join(one.name for one in held), max(one.until for one in held)
    if len(held) == 1:
        return f"1 deleted vault reserves its name until {until} ({names})"
    return f"{len(held):,} deleted vaults reserve their names until {until} ({names})"


def _them(held: Sequence[ReservedName]) -> str:
    return "it" if len(held) == 1 else "them"


def print_outcome(console: Console, outcome: UpOutcome, seconds: float, folder: Path | None, *, everything: bool) -> None:
    """Print what was done, or without a folder what would be done; `seconds` is the wall-clock time."""
    for line in outcome_lines(outcome, seconds, folder, everything=everything):
        console.print(line, markup=False, soft_wrap=True)


def print_destroyed(console: Console, outcome: UpOutcome, seconds: float, folder: Path, *, only_purge: bool) -> None:
    """Print the deleted resources and the purged vaults."""
    if outcome.before != outcome.after or not outcome.complete:
        print_outcome(console, outcome, seconds, folder, everything=False)
    elif not outcome.purged:
        nothing = "no deleted vault to purge" if only_purge else "nothing to destroy"
        console.print(f"{outcome.plan.name}: {nothing} in {folder}", markup=False, soft_wrap=True)
    if outcome.purged:
        names = "its name is free" if outcome.purged == 1 else "their names are free"
        vaults = f"{outcome.purged:,} deleted vault{'' if outcome.purged == 1 else 's'}"
        console.print(f"{vaults} purged: {names}", markup=False, soft_wrap=True)


def outcome_lines(outcome: UpOutcome, seconds: float, folder: Path | None, *, everything: bool) -> list[str]:
    """Return the lines that print_outcome prints."""
    from rehearsal.local_up.diff_text import CREATED_AGAIN, DONE, PLANNED, change_lines, count_line, machine_line
    from rehearsal.local_up.etcd_lines import etcd_lines
    from rehearsal.local_up.failure_text import paragraphs
    from rehearsal.local_up.snapshot import compare_snapshots

    failed = {urn for update in outcome.updates for urn in update.failures}
    found = compare_snapshots(outcome.before, outcome.after, failed)
    lines = change_lines(found, outcome.before, outcome.after, everything=everything, missing=CREATED_AGAIN[folder is None])
    if found:
        machines = machine_line(outcome.before, outcome.after)
        lines.append(f"resources: {count_line(found, outcome.after, PLANNED if folder is None else DONE, len(failed))}")
        lines += [line for line in (machines, _cost_line(outcome)) if line]
        would = "would take" if folder is None else "took"
        lines.append(f"{would} {span(outcome.seconds)} of Azure's time ({seconds:.1f} s here)" + _where(folder))
    elif outcome.complete:
        lines.append(_nothing(outcome, seconds))
    lines += etcd_lines(outcome)
    ending = paragraphs(outcome)
    if ending and folder is None:
        ending.insert(0, "An update would end like this:")
    return [*lines, *(line for paragraph in ending for line in ("", paragraph))]


def _cost_line(outcome: UpOutcome) -> str:
    """Return the cost of the machines in the model before and after, at the region's prices; empty where it does not change."""
    from components.plan.cost import cost_of_machines, prices_of_region
    from components.plan.cost_text import cost_change_text
    from rehearsal.local_up.snapshot import billed_machines
    from stacks.prices import load_prices

    prices = prices_of_region(load_prices(), outcome.plan.spec.prices)
    change = cost_change_text(*(cost_of_machines(billed_machines(items), prices) for items in (outcome.before, outcome.after)))
    return f"cost: {change}" if change else ""


def _nothing(outcome: UpOutcome, seconds: float) -> str:
    """Return the line for an update without changes, with the number of machines that do not have their set's latest model."""
    from rehearsal.local_up.diff_text import OUT_OF_DATE, ROLLING
    from rehearsal.local_up.etcd_lines import retained_by_machine

    machines = sum(item.machine_count or 0 for item in outcome.after.values())
    behind = sum(item.outdated_count for item in outcome.after.values())
    rolling = sum(item.upgrading_count for item in outcome.after.values())
    left = f"; {rolling:,} of them are in a rolling upgrade in progress ({ROLLING})" if rolling else ""
    left += f"; {behind:,} of them are out of date ({OUT_OF_DATE})" if behind else ""
    older = len(retained_by_machine(outcome))
    etcd = (
        f", except {older:,} etcd machine{'' if older == 1 else 's'}, which keep{'s' if older == 1 else ''} older values" if older else ""
    )
    resources = sum(bool(item.record.id) for item in outcome.after.values())
    return (
        f"{outcome.plan.name}: nothing to change: {resources:,} resources and {machines:,} machines are as planned{etcd}{left} "
        f"({seconds:.1f} s)"
    )


def _where(folder: Path | None) -> str:
    return f"; kept in {folder}" if folder is not None else "; nothing was changed"
