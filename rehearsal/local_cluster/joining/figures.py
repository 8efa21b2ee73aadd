"""Decides which figures a join leaves: how long each step and each request took, what was refused, what had to be tried again."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

TOO_MANY = 429


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that a share of them does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


@dataclass(frozen=True)
class StepFigures:
    """How long something took that was done so many times, in seconds."""

    count: int
    p50: float
    p99: float
    longest: float


def step_figures(values: Sequence[float]) -> StepFigures:
    """Figures of durations in seconds."""
    return StepFigures(len(values), percentile(values, 0.5), percentile(values, 0.99), max(values, default=0.0))


@dataclass(frozen=True)
class NodeFailure:
    """A machine that did not join: at which step, the HTTP status (0 without one), and what was said."""

    node: str
    step: str
    status: int
    message: str


@dataclass
class Tally:
    """What is counted while machines join: 8 bytes a duration, so that 7,500 machines take no room."""

    steps: dict[str, array[float]] = field(default_factory=dict)
    mutating: array[float] = field(default_factory=lambda: array("d"))
    statuses: Counter[int] = field(default_factory=Counter)
    retries: int = 0
    broken: int = 0
    connections: int = 0

    def step(self, name: str, seconds: float) -> None:
        """A step of one machine is done."""
        self.steps.setdefault(name, array("d")).append(seconds)


@dataclass(frozen=True)
class JoinFigures:
    """What a join came to.

    seconds from the first machine to the last; nodes are those that joined; steps by name, in their order; mutating are single requests
    that write, refused ones too; refused counts answers 429, broken connections that ended under a request, retries what was sent again;
    cpu_seconds are those of the joining thread.
    """

    seconds: float
    nodes: int
    failures: tuple[NodeFailure, ...]
    steps: dict[str, StepFigures]
    mutating: StepFigures
    refused: int
    retries: int
    broken: int
    connections: int
    cpu_seconds: float


def joined(tally: Tally, seconds: float, nodes: int, failures: tuple[NodeFailure, ...], cpu_seconds: float) -> JoinFigures:
    """The figures of a join that has ended."""
    return JoinFigures(
        seconds,
        nodes,
        failures,
        {name: step_figures(values) for name, values in tally.steps.items()},
        step_figures(tally.mutating),
        tally.statuses[TOO_MANY],
        tally.retries,
        tally.broken,
        tally.connections,
        cpu_seconds,
    )
