"""Benchmark of a rotation's schedule, in simulated rotations of a cluster of 7,500 nodes."""

from __future__ import annotations

from typing import Any

import click

from bench.child_process import Child, ChildError, measured
from bench.command import BenchOutput, Say, run_command
from bench.figures import Figure
from bench.results import ResultTable, record_option

CALM_RATIO, HARD_RATIO = 1.05, 1.15
WAVES, GPU_HOURS = 1.5, 5.0
SECONDS, MEGABYTES = 5.0, 150.0
GROWTH = 3.3
"""CPU seconds of 22,500 nodes over those of 7,500 nodes."""
CONDITIONS = {"calm": "no faults", "hard": "2 % failing, heavy-tailed drains"}


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--seed", type=click.IntRange(0, 10_000), default=1, show_default=True, help="Seed of the population and its durations.")
@record_option
def main(seed: int, record: bool) -> None:
    """Measure simulated rotations of a cluster of southcentralus, and print each figure beside its bound.

    \b
    bound    duration over its lower bound, without faults, and with 2 % failing nodes and heavy-tailed drains
    waves    barrier waves in the same world and with the same budgets, over the rotation
    order    GPU-hours lost by node after node in the order of names, over those of the rotation
    cost     CPU seconds and memory of one simulated rotation, and of three clusters as one

    About a minute on one core. Exits 0 if all values are within their bounds, 1 if one is not, 2 if a measurement failed,
    130 if interrupted.
    """
    output = BenchOutput()
    runs = {
        (conditions, strategy): _run(conditions, strategy, 1, seed, output.say)
        for conditions in CONDITIONS
        for strategy in ("core", "waves", "order", "drain")
    }
    large = _run("hard", "core", 3, seed, output.say)
    figures = [figure for conditions in CONDITIONS for figure in _schedule(conditions, runs)]
    figures += _cost(runs["hard", "core"], large)
    table = _unused({conditions: runs[conditions, "core"][1] for conditions in CONDITIONS})
    if record:
        output.record("rotation", "Schedule of a rotation", "python -m bench.rotation", figures, [table])
    output.conclude(figures)


def _run(conditions: str, strategy: str, clusters: int, seed: int, say: Say) -> tuple[Child, dict[str, Any]]:
    child, report = measured("rotation", conditions, strategy, str(clusters), str(seed))
    say(f"{conditions}, {strategy}, {report['nodes']:,} nodes: {report['seconds'] / 3_600:.2f} h, CPU {report['cpu']:.1f} s")
    return child, report


def _schedule(conditions: str, runs: dict[tuple[str, str], tuple[Child, dict[str, Any]]]) -> list[Figure]:
    """Return the figures of the core beside its bound and the other strategies under the same conditions."""
    core, waves, order, drain = (runs[conditions, strategy][1] for strategy in ("core", "waves", "order", "drain"))
    what = CONDITIONS[conditions]
    limit = CALM_RATIO if conditions == "calm" else HARD_RATIO
    interruptions = f"{order['interruptions']} interruptions, the rotation {core['interruptions']} of {core['gangs']} gangs"
    return [
        Figure(f"duration over its bound, {what}", core["seconds"] / core["bound"], "", limit, f"bound by: {core['reason']}"),
        Figure(f"duration, {what}", core["seconds"] / 3_600, "h", None, f"{core['ready']:,} of {core['nodes']:,} nodes ready"),
        Figure(
            f"most machines unavailable, {what}", core["most_unavailable"], "", core["budget"], "the budget, counted in the modelled fleet"
        ),
        Figure(
            f"barrier waves over the rotation, {what}",
            waves["seconds"] / core["seconds"],
            "",
            WAVES if conditions == "hard" else None,
            f"{waves['seconds'] / 3_600:.1f} h, same budgets, canaries and growth",
            at_least=True,
        ),
        Figure(
            f"GPU-hours lost in node order over the rotation, {what}",
            order["gpu_hours"] / core["gpu_hours"],
            "",
            GPU_HOURS,
            f"with checkpoint signals; {interruptions}",
            at_least=True,
        ),
        Figure(
            f"the same without checkpoint signals, {what}",
            drain["gpu_hours"] / core["gpu_hours"],
            "",
            GPU_HOURS,
            "as kubectl drain evicts",
            at_least=True,
        ),
        Figure(f"GPU-hours lost, {what}", core["gpu_hours"], "h", None, f"{core['lost_work']:,.0f} of work, the others of waiting"),
    ]


def _cost(one: tuple[Child, dict[str, Any]], three: tuple[Child, dict[str, Any]]) -> list[Figure]:
    (child, report), (large, more) = one, three
    how = f"{report['transitions']:,} transitions, journal of {report['journal'] / 1e6:.1f} MB in memory"
    return [
        Figure("simulated rotation of 7,500 nodes, CPU", report["cpu"], "s", SECONDS, how),
        Figure("the same, peak memory of the process", child.peak_mb, "MB", MEGABYTES, "with Python and the plan of the region"),
        Figure("22,500 nodes over 7,500, CPU", more["cpu"] / report["cpu"], "", GROWTH, f"{more['cpu']:.1f} s, {large.peak_mb:,.0f} MB"),
    ]


def _unused(reports: dict[str, dict[str, Any]]) -> ResultTable:
    """Return the seconds of the whole budget that no machine used, by the reason why no further node started."""
    rows = [
        (CONDITIONS[conditions], reason, f"{seconds:,.0f} s", f"{seconds / report['seconds']:.1%}")
        for conditions, report in reports.items()
        for reason, seconds in report["unused"].items()
        if seconds >= 1
    ]
    return ResultTable("Unused budget", ("conditions", "reason", "seconds of the budget", "share of the duration"), rows)


if __name__ == "__main__":
    run_command(main, ChildError)
