"""Measurements of a join: durations of steps and requests, rejections and retries."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

TOO_MANY = 429


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least a share of the values does not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


@dataclass(frozen=True)
class StepFigures:
    """Count and durations in seconds of one step."""

    count: int
    p50: float
    p99: float
    longest: float


def step_figures(values: Sequence[float]) -> StepFigures:
    """Return the figures of durations in seconds."""
    return StepFigures(len(values), percentile(values, 0.5), percentile(values, 0.99), max(values, default=0.0))


@dataclass(frozen=True)
class NodeFailure:
    """A machine that did not join: the step, the HTTP status (0 without one), and the message."""

    node: str
    step: str
    status: int
    message: str


@dataclass
class Tally:
    """Counters while machines join: 8 bytes per duration, so that 7,500 machines need little memory."""

    steps: dict[str, array[float]] = field(default_factory=dict)
    mutating: array[float] = field(default_factory=lambda: array("d"))
    statuses: Counter[int] = field(default_factory=Counter)
    retries: int = 0
    broken: int = 0
    connections: int = 0

    def step(self, name: str, seconds: float) -> None:
        """Record a finished step of one machine."""
        self.steps.setdefault(name, array("d")).append(seconds)


@dataclass(frozen=True)
class JoinFigures:
    """Results of a join.

    seconds is the time from the first machine to the last; nodes is the number that joined; steps are by name, in order. mutating are
    single writing requests, including rejected ones. refused counts responses with status 429, broken counts connections that ended
    during a request, and retries counts repeated requests. cpu_seconds is the CPU time of the joining thread.
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
    """Return the figures of a finished join."""
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
