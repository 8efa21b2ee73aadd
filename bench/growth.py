"""Benchmark of growth: cost of a scale set in regions of 75, 225 and 675 scale sets."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from bench.child_process import Child, measured
from bench.command import Say
from bench.figures import Figure

CLUSTERS = (1, 3, 9)
"""Numbers of clusters, each with 75 scale sets of 100 machines."""
MARGINAL_BOUND = 1.1
"""Bound of a phase's growth: 1 is a constant cost per scale set; the rest allows for logarithmic growth, as of sorting."""
THREEFOLD_BOUND = 3.2
FEW_CALLS = 50_000
"""Number of calls for the largest region below which the growth of a phase is not reported."""


@dataclass(frozen=True)
class Size:
    """A region of one size: CPU and wall seconds and peak MB of the whole process, CPU seconds and calls of Python functions by phase."""

    sets: int
    nodes: int
    resources: int
    cpu: float
    wall: float
    peak_mb: float
    seconds: dict[str, float]
    calls: dict[str, int]


def measure(rounds: int, say: Say) -> list[Size]:
    """Measure each size in its own process: its time in every round, of which the best counts, then its number of calls.

    Another program on the machine makes a round slower, and none makes it faster.
    """
    best: dict[int, tuple[Child, dict[str, Any]]] = {}
    for number in range(rounds):
        for clusters in CLUSTERS:
            say(f"growth, round {number + 1} of {rounds}: {clusters * 75} scale sets")
            child, report = _rehearse("region", clusters)
            say(f"  {report['resources']:,} resources: CPU {child.cpu:.1f} s, wall {child.wall:.1f} s, {child.peak_mb:,.0f} MB")
            best[clusters] = min(best.get(clusters, (child, report)), (child, report), key=lambda one: one[0].cpu)
    sizes = []
    for clusters in CLUSTERS:
        say(f"growth: function calls with {clusters * 75} scale sets")
        _, counted = _rehearse("calls", clusters)
        child, report = best[clusters]
        took = (child.cpu, child.wall, child.peak_mb)
        sizes.append(Size(report["sets"], report["nodes"], report["resources"], *took, report["cpu"], counted["calls"]))
    return sizes


def _rehearse(work: str, clusters: int) -> tuple[Child, dict[str, Any]]:
    # A folder each, because the reader refuses regions beside each other that share addresses.
    with tempfile.TemporaryDirectory(prefix="gpufleet-bench-") as folder:
        return measured(work, str(clusters), folder)


def figures(sizes: list[Size]) -> list[Figure]:
    """Return the figures of three sizes, smallest first."""
    small, middle, large = sizes
    seconds, calls = [one.cpu for one in sizes], [sum(one.calls.values()) for one in sizes]
    first, second = _marginal(sizes, seconds)
    spans = f"{middle.sets} to {large.sets} over {small.sets} to {middle.sets}"
    return [
        Figure(
            f"one more scale set, {small.sets} to {middle.sets}", first * 1000, "ms", None, "CPU of the whole process, best of the rounds"
        ),
        Figure(
            f"one more scale set, {middle.sets} to {large.sets}", second * 1000, "ms", None, "CPU of the whole process, best of the rounds"
        ),
        Figure(f"the same, {spans}", second / first, "", None, "CPU; the noise of the machine three times over"),
        Figure(
            f"one more scale set, {spans}",
            _ratio(sizes, calls),
            "",
            MARGINAL_BOUND,
            "calls of Python functions, without noise; constant is 1",
        ),
        Figure(f"{large.nodes:,} nodes over {middle.nodes:,}", large.cpu / middle.cpu, "", THREEFOLD_BOUND, "CPU of the whole process"),
        Figure("the same, wall", large.wall / middle.wall, "", None, f"{large.wall:.1f} s over {middle.wall:.1f} s"),
    ]


def phases_table(sizes: list[Size]) -> Table:
    """Return a table of CPU seconds by phase and size; above 1 in the last column, a phase grows faster than the number of scale sets."""
    table = Table(title="CPU seconds by phase and number of scale sets", title_justify="left")
    table.add_column("phase")
    for heading in (*(str(one.sets) for one in sizes), "calls of one more set, second over first"):
        table.add_column(heading, justify="right")
    for phase in sizes[0].seconds:
        calls = [one.calls[phase] for one in sizes]
        table.add_row(
            phase, *(f"{one.seconds[phase]:.2f}" for one in sizes), f"{_ratio(sizes, calls):.2f}" if calls[-1] > FEW_CALLS else ""
        )
    started = [one.cpu - sum(one.seconds.values()) for one in sizes]
    table.add_row("imports, exit", *(f"{seconds:.2f}" for seconds in started), "")
    table.add_row("in all", *(f"{one.cpu:.2f}" for one in sizes), f"{_ratio(sizes, [sum(one.calls.values()) for one in sizes]):.2f}")
    table.add_row("resources", *(f"{one.resources:,}" for one in sizes), f"{_ratio(sizes, [one.resources for one in sizes]):.2f}")
    table.add_row("peak memory, MB", *(f"{one.peak_mb:,.0f}" for one in sizes), f"{_ratio(sizes, [one.peak_mb for one in sizes]):.2f}")
    return table


def _marginal(sizes: list[Size], values: list[float] | list[int]) -> tuple[float, float]:
    """Return the increase of a value per scale set, between the first two sizes and between the last two."""
    (small, middle, large), (low, mean, high) = [one.sets for one in sizes], values
    return (mean - low) / (middle - small), (high - mean) / (large - middle)


def _ratio(sizes: list[Size], values: list[float] | list[int]) -> float:
    first, second = _marginal(sizes, values)
    return second / first
