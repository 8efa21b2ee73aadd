"""Decides what is told of an update's course: what was worked on when, by cluster and part, and which machines came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import state_of
from rehearsal.azure.resource import Resource
from rehearsal.azure.stack_records import Record, resource_of, stacks_of
from rehearsal.local_up.machine_counts import behind, is_scale_set, planned, provisioned
from rehearsal.local_up.up import Outcome
from rehearsal.local_up.update import Span, Update

CLUSTER = "gpufleet:cluster:Cluster"


@dataclass(frozen=True)
class Bar:
    """A part of a row: seconds from the start at which work on its resources began and ended, and how many took time."""

    part: str
    began: float
    ended: float
    resources: int


@dataclass(frozen=True)
class Row:
    """The base stack or a cluster: its name and its parts that took time."""

    name: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Course:
    """An update in Azure's time: seconds, rows, and what stands at its end.

    machines, running and behind count scale sets' machines: planned, provisioned, and of an older model. addresses are the private ones
    that they hold.
    """

    seconds: float
    rows: tuple[Row, ...]
    machines: int
    running: int
    behind: int
    addresses: int


def course(outcome: Outcome) -> Course:
    """The course of an update that has ended."""
    rows = tuple(row for update in outcome.updates for row in _rows(outcome, update))
    sets = [found for _, record in stacks_of(outcome.cloud) if (found := _scale_set(outcome.cloud, record)) is not None]
    return Course(
        seconds=outcome.seconds,
        rows=rows,
        machines=sum(map(planned, sets)),
        running=sum(map(provisioned, sets)),
        behind=sum(map(behind, sets)),
        addresses=sum(len(one.addresses) for found in sets for one in state_of(found).living()),
    )


def _scale_set(cloud: Cloud, record: Record) -> Resource | None:
    found = resource_of(cloud, record)
    return found if found is not None and is_scale_set(found) else None


def _rows(outcome: Outcome, update: Update) -> list[Row]:
    """One row for each cluster of a stack, and for what is in none."""
    spans: dict[str, dict[str, list[Span]]] = {}
    for urn, span in update.spans.items():
        if span.ended > span.began and urn in update.stack.records:
            row, part = _place(update, update.stack.records[urn], update.stack.records)
            spans.setdefault(row, {}).setdefault(part, []).append(span)
    return [
        Row(row, tuple(sorted((_bar(outcome, *part) for part in parts.items()), key=lambda bar: bar.began))) for row, parts in spans.items()
    ]


def _bar(outcome: Outcome, part: str, spans: list[Span]) -> Bar:
    return Bar(part, min(one.began for one in spans) - outcome.began, max(one.ended for one in spans) - outcome.began, len(spans))


def _place(update: Update, record: Record, records: Mapping[str, Record]) -> tuple[str, str]:
    """Row and part of a resource: the cluster that it is part of, else the stack, and the component right below that."""
    chain = [record]
    while (parent := records.get(chain[-1].parent or "")) is not None:
        chain.append(parent)
    top = next((number for number, one in enumerate(chain) if one.type == CLUSTER), len(chain) - 1)
    row = _short(chain, top) if chain[top].type == CLUSTER else update.name
    return row, _short(chain, max(top - 1, 0))


def _short(chain: list[Record], number: int) -> str:
    """A logical name without that of what it is part of."""
    above = f"{chain[number + 1].name}-" if number + 1 < len(chain) else ""
    return chain[number].name.removeprefix(above)
