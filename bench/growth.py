"""Measures what a scale set costs in a region of 75, 225 and 675 of them: whether the last costs what the first did."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from bench.children import measured
from bench.figures import Figure

CLUSTERS = (1, 3, 9)
MARGINAL_BOUND = 1.1
"""The marginal cost is to be constant; what is above 1 is for the noise of a machine that others use too."""
THREEFOLD_BOUND = 3.2
SMALL_SECONDS = 0.2
"""A phase that takes less of the largest region shows no growth of its own."""


@dataclass(frozen=True)
class Run:
    """One rehearsal: CPU and wall seconds in all and CPU seconds by phase, without the start of Python and the imports."""

    sets: int
    nodes: int
    resources: int
    cpu: float
    wall: float
    peak_mb: float
    phases: dict[str, float]

    @classmethod
    def of(cls, told: dict[str, Any], peak_mb: float) -> Run:
        phases = {name: spent["cpu"] for name, spent in told["phases"].items()}
        wall = sum(spent["wall"] for spent in told["phases"].values())
        return cls(told["sets"], told["nodes"], told["resources"], sum(phases.values()), wall, peak_mb, phases)


def measure(rounds: int, say: Callable[[str], None]) -> list[Run]:
    """The best of several rehearsals for each size: another program on the machine makes one slower, and none makes it faster."""
    best: dict[int, Run] = {}
    for number in range(rounds):
        for clusters in CLUSTERS:
            say(f"growth, round {number + 1} of {rounds}: {clusters} cluster{'s' * (clusters > 1)} of 75 scale sets")
            # A folder each: regions beside each other must not share addresses.
            with tempfile.TemporaryDirectory(prefix="gpufleet-bench-") as folder:
                child, told = measured("region", str(clusters), folder)
            run = Run.of(told, child.peak_mb)
            say(f"  {run.sets} scale sets, {run.resources:,} resources: CPU seconds {run.cpu:.2f}, wall {run.wall:.2f}")
            best[clusters] = min(best.get(clusters, run), run, key=lambda one: one.cpu)
    return [best[clusters] for clusters in CLUSTERS]


def figures(runs: list[Run]) -> list[Figure]:
    """The figures of three sizes, smallest first."""
    small, middle, large = runs
    first, second = _marginal(small, middle), _marginal(middle, large)
    how = "CPU of the whole rehearsal in process, best of the rounds"
    return [
        Figure(f"one more scale set, {small.sets} to {middle.sets}", first * 1000, "ms", None, how),
        Figure(f"one more scale set, {middle.sets} to {large.sets}", second * 1000, "ms", None, how),
        Figure("the second over the first", second / first, "", MARGINAL_BOUND, "constant is 1"),
        Figure(f"time of {large.nodes:,} nodes over {middle.nodes:,}", large.cpu / middle.cpu, "", THREEFOLD_BOUND, how),
        Figure(
            f"the same, wall ({large.wall:.1f} s over {middle.wall:.1f} s)", large.wall / middle.wall, "", None, "what else ran counts too"
        ),
    ]


def phases_table(runs: list[Run]) -> Table:
    """CPU seconds by phase and size; in the last column above 1 what grows faster than the number of scale sets."""
    table = Table(title="CPU seconds by phase and number of scale sets", title_justify="left")
    table.add_column("phase")
    for heading in (*(str(run.sets) for run in runs), "marginal, second over first"):
        table.add_column(heading, justify="right")
    for phase in runs[0].phases:
        spent = [run.phases[phase] for run in runs]
        table.add_row(phase, *(f"{seconds:.3f}" for seconds in spent), _ratio(runs, spent) if spent[-1] >= SMALL_SECONDS else "")
    table.add_row("in all", *(f"{run.cpu:.3f}" for run in runs), _ratio(runs, [run.cpu for run in runs]))
    table.add_row("resources", *(f"{run.resources:,}" for run in runs), "")
    table.add_row("peak memory, MB", *(f"{run.peak_mb:,.0f}" for run in runs), _ratio(runs, [run.peak_mb for run in runs]))
    return table


def _marginal(fewer: Run, more: Run) -> float:
    """CPU seconds per scale set between two sizes."""
    return (more.cpu - fewer.cpu) / (more.sets - fewer.sets)


def _ratio(runs: list[Run], values: list[float]) -> str:
    small, middle, large = runs
    first = (values[1] - values[0]) / (middle.sets - small.sets)
    return f"{(values[2] - values[1]) / (large.sets - middle.sets) / first:.2f}" if first > 0 else ""
