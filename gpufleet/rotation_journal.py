"""gpufleet rotation journal: print the state of a run from its journal."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import click

from gpufleet.consoles import result_console

if TYPE_CHECKING:
    from lifecycle.rotation.journal import Journal
    from lifecycle.rotation.journal_summary import JournalSummary
    from lifecycle.rotation.model import NodeState, Transition

NAMES_SHOWN = 4
"""Names of nodes in one line; --json contains all."""
DIGEST_SHOWN = 12


@click.command(short_help="Print the state of a run from its journal.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--last", type=click.IntRange(0, 100_000), default=10, show_default=True, metavar="N", help="Print the last N transitions.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print as JSON: run, cluster, region, started, actor, targets, state, stopped, nodes, states, pools, waiting, last. Times are in "
    "seconds since 1970.",
)
def journal(file: Path, last: int, as_json: bool) -> None:
    """Print the state of a run from its journal FILE: nodes by state and pool, failed and blocked nodes by cause, last transitions.

    \b
    The command only reads, and needs no lock, so the run may continue meanwhile. Every record's checksum, number and
    order is verified. An incomplete last record is left out, because none of its actions was started.
    Times are in the time zone of the run's windows.

    Exit status: 0 if the journal is intact, whatever the run's state is; 2 if it is missing, damaged or of another version.
    """
    # Records are pydantic models, which take a moment to build.
    from lifecycle.rotation.journal import read_journal
    from lifecycle.rotation.journal_file import JournalCopy
    from lifecycle.rotation.journal_summary import summarize

    found = read_journal(JournalCopy(file))
    summary = summarize(found, last)
    if as_json:
        click.echo(json.dumps(_as_json(found, summary), indent=2))
        return
    console = result_console()
    for line in _lines(found, summary):
        console.print(line, soft_wrap=True, markup=False)


def _state(found: Journal) -> str:
    """Return the state of the whole run; whether a process works on it at the moment is not in its journal."""
    if found.finished:
        return "finished"
    return "stopped" if found.stopped else "not finished"


def _lines(found: Journal, summary: JournalSummary) -> Iterator[str]:
    start, zone = found.start, ZoneInfo(found.start.policy.calendar.time_zone)
    yield f"run {start.run_id} of cluster {start.cluster} in {start.region}: {_state(found)}"
    if found.stopped:
        yield f"  stopped: {found.stopped}; nodes in rotation continue, and no other node starts until an operator continues the run"
    yield f"  started {_time(start.started, zone)} by {start.actor}; last transition {_time(summary.changed, zone)}"
    for pool, target in start.targets.items():
        yield f"  pool {pool}: image {target.image}, boot files {target.boot_digest[:DIGEST_SHOWN]}"
    yield f"  {len(start.nodes):,} nodes: {_counts(summary.states)}"
    if len(summary.pools) > 1:
        yield from (f"    {pool}: {_counts(counts)}" for pool, counts in summary.pools.items())
    if found.dropped:
        yield f"  an incomplete last record of {found.dropped:,} bytes is left out: none of its actions was started"
    for row in summary.waiting:
        names = ", ".join(row.nodes[:NAMES_SHOWN])
        more = len(row.nodes) - NAMES_SHOWN
        yield f"{row.state} {len(row.nodes):,}: {row.cause}: {names}{f' and {more:,} more' if more > 0 else ''}"
    if summary.last:
        yield f"last {len(summary.last):,} of {len(found.transitions):,} transitions:"
    yield from (_transition_line(one, zone) for one in summary.last)


def _counts(counts: Mapping[NodeState, int]) -> str:
    return ", ".join(f"{count:,} {state}" for state, count in counts.items())


def _transition_line(one: Transition, zone: ZoneInfo) -> str:
    attempt = f", attempt {one.attempt}" if one.attempt > 1 else ""
    until = f", until {_clock(one.until, zone)}" if one.until is not None else ""
    return f"  {_clock(one.at, zone)}  {one.node}  {one.to}: {one.cause}{attempt}{until}"


def _time(at: float, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M %Z}"


def _clock(at: float, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(at, zone):%m-%d %H:%M:%S}"


def _as_json(found: Journal, summary: JournalSummary) -> dict[str, object]:
    start = found.start
    return {
        "run": start.run_id,
        "cluster": start.cluster,
        "region": start.region,
        "started": start.started,
        "actor": start.actor,
        "targets": {pool: target.model_dump() for pool, target in start.targets.items()},
        "state": _state(found),
        "stopped": found.stopped,
        "changed": summary.changed,
        "records": found.records,
        "dropped_bytes": found.dropped,
        "nodes": len(start.nodes),
        "states": summary.states,
        "pools": summary.pools,
        "waiting": [dataclasses.asdict(row) for row in summary.waiting],
        "last": [one._asdict() for one in summary.last],
    }
