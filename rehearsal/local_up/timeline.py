"""Timeline of an update: the working time of each cluster and part, and the resulting machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import state_of
from rehearsal.azure.resource import Resource
from rehearsal.azure.stack_records import StackRecord, resource_of, stacks_of
from rehearsal.local_up.machine_counts import is_scale_set, outdated_count, provisioned_count, requested_count
from rehearsal.local_up.up import UpOutcome
from rehearsal.local_up.update_state import Update, WorkSpan

CLUSTER = "gpufleet:cluster:Cluster"


@dataclass(frozen=True)
class TimelineBar:
    """A part of a row: seconds from the start at which work on its resources began and ended, and how many took time."""

    part: str
    began: float
    ended: float
    resources: int


@dataclass(frozen=True)
class TimelineRow:
    """The base stack or a cluster: its name and its parts that took time."""

    name: str
    bars: tuple[TimelineBar, ...]


@dataclass(frozen=True)
class Timeline:
    """An update in Azure's time: seconds, rows, and the machines at its end.

    machines, running and outdated_count are numbers of machines in scale sets: requested, provisioned, and with an older model.
    addresses is the number of their private addresses.
    """

    seconds: float
    rows: tuple[TimelineRow, ...]
    machines: int
    running: int
    outdated_count: int
    addresses: int


def timeline_of(outcome: UpOutcome) -> Timeline:
    """Return the timeline of an update that has ended."""
    rows = tuple(row for update in outcome.updates for row in _rows(outcome, update))
    sets = [found for _, record in stacks_of(outcome.cloud) if (found := _scale_set(outcome.cloud, record)) is not None]
    return Timeline(
        seconds=outcome.seconds,
        rows=rows,
        machines=sum(map(requested_count, sets)),
        running=sum(map(provisioned_count, sets)),
        outdated_count=sum(map(outdated_count, sets)),
        addresses=sum(len(one.addresses) for found in sets for one in state_of(found).living()),
    )


def _scale_set(cloud: Cloud, record: StackRecord) -> Resource | None:
    found = resource_of(cloud, record)
    return found if found is not None and is_scale_set(found) else None


def _rows(outcome: UpOutcome, update: Update) -> list[TimelineRow]:
    """Return one row per cluster of a stack, and one for the other resources."""
    spans: dict[str, dict[str, list[WorkSpan]]] = {}
    for urn, span in update.spans.items():
        if span.ended > span.began and urn in update.stack.records:
            row, part = _row_and_part(update, update.stack.records[urn], update.stack.records)
            spans.setdefault(row, {}).setdefault(part, []).append(span)
    bars = {row: [_bar(outcome, *part) for part in parts.items()] for row, parts in spans.items()}
    return [TimelineRow(row, tuple(sorted(parts, key=lambda bar: bar.began))) for row, parts in bars.items()]


def _bar(outcome: UpOutcome, part: str, spans: list[WorkSpan]) -> TimelineBar:
    return TimelineBar(part, min(one.began for one in spans) - outcome.began, max(one.ended for one in spans) - outcome.began, len(spans))


def _row_and_part(update: Update, record: StackRecord, records: Mapping[str, StackRecord]) -> tuple[str, str]:
    """Return row and part of a resource: its cluster or its stack, and the component directly below."""
    chain = [record]
    while (parent := records.get(chain[-1].parent or "")) is not None:
        chain.append(parent)
    top = next((number for number, one in enumerate(chain) if one.type == CLUSTER), len(chain) - 1)
    row = _short(chain, top) if chain[top].type == CLUSTER else update.name
    return row, _short(chain, max(top - 1, 0))


def _short(chain: list[StackRecord], number: int) -> str:
    """Return a logical name without the prefix of its parent."""
    above = f"{chain[number + 1].name}-" if number + 1 < len(chain) else ""
    return chain[number].name.removeprefix(above)
