"""Figures of the cluster benchmark, from measured pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cluster.__main__ import COMPARED_NODES, RATIO, Pair, as_pair, figures_of, order
from bench.cluster.measure import Measured, Taken
from bench.cluster.plots import COLORS, draw
from bench.cluster.progress import Sample, Seen
from bench.figures import Figure


def measured(name: str, join: float, pods: float, scheduler_cpu: float = 5.0) -> Measured:
    """A cluster whose nodes and pods took so many seconds, and whose scheduler took some of the processor while nodes joined."""
    taken = {"kube-apiserver": Taken(20.0, 60.0, 2**30), "kube-scheduler": Taken(scheduler_cpu, 10.0, 2**27)}
    return Measured(name, 3.0, join, pods, 5.0, 5.0 + join, 6.0 + join, 6.0 + join + pods, {"429s": 0.0}, taken, Seen())


def figures(*pairs: Pair, nodes: int = COMPARED_NODES) -> dict[str, Figure]:
    return {one.name: one for one in figures_of(pairs, nodes)}


def test_ratios_are_medians_of_the_pairs_so_that_one_slow_moment_of_the_machine_decides_nothing() -> None:
    steady = [measured("ours", 11.0, 55.0), measured("bare", 10.0, 50.0)]
    slow = [measured("ours", 30.0, 150.0), measured("bare", 10.0, 50.0)]
    found = figures(steady, slow, steady)
    for what in ("nodes", "pods", "nodes and pods"):
        one = found[f"gpufleet over bare, {what}"]
        assert (one.value, one.bound, one.kept) == (pytest.approx(1.1), RATIO, True)
    assert found["gpufleet over bare, nodes"].how == "wall seconds: 11.0 / 10.0, 30.0 / 10.0, 11.0 / 10.0"
    assert found["gpufleet: 500 nodes Ready"].value == 11.0
    assert found["gpufleet: 500 pods Running"].how.startswith("median of 3; ")
    assert not figures(slow, slow, steady)["gpufleet over bare, nodes"].kept


def test_what_has_nothing_to_decide_tells_how_fast_the_machine_was() -> None:
    found = figures([measured("ours", 14.0, 50.0, scheduler_cpu=7.0), measured("bare", 10.0, 50.0, scheduler_cpu=5.0)])
    one = found["gpufleet over bare, join, CPU of kube-scheduler"]
    assert (one.value, one.bound) == (pytest.approx(1.4), None)
    assert "median" not in found["gpufleet: 500 pods Running"].how


def test_few_nodes_are_not_held_to_the_bound_and_one_cluster_has_no_ratio() -> None:
    pair = [measured("ours", 14.0, 50.0), measured("bare", 10.0, 50.0)]
    assert all(one.bound is None for one in figures(pair, nodes=COMPARED_NODES - 1).values())
    assert set(figures(pair[:1])) == {"gpufleet: API server ready", "gpufleet: 500 nodes Ready", "gpufleet: 500 pods Running"}


def test_either_cluster_is_first_in_every_other_pair() -> None:
    assert [tuple(order(number, None)) for number in range(3)] == [("ours", "bare"), ("bare", "ours"), ("ours", "bare")]
    assert [tuple(order(number, "bare")) for number in range(2)] == [("bare",), ("bare",)]


def test_a_pair_is_kept_as_ours_and_bare_whichever_was_first() -> None:
    first, second = measured("ours", 14.0, 50.0), measured("bare", 10.0, 50.0)
    assert as_pair([first, second]) == as_pair([second, first]) == [first, second]


def test_a_cluster_with_more_processes_than_there_are_colours_is_drawn_with_each_of_them(tmp_path: Path) -> None:
    names = [f"process {number}" for number in range(len(COLORS) + 2)]
    clusters = [measured(name, 11.0, 55.0) for name in ("ours", "bare")]
    for cluster in clusters:
        cluster.seen.samples.update({name: [Sample(5.0, 0.0, 2**20, 2**20), Sample(30.0, 4.0, 2**21, 2**21)] for name in names})
    document = {"nodes": 500, "setting": "fast", "machine": {"cores": 2}, "clusters": [one.document() for one in clusters]}
    svg, png = draw(document, tmp_path / "run")
    assert png.stat().st_size > 0
    # matplotlib writes each text beside its outlines as a comment.
    assert [name for name in names if f"<!-- {name} -->" not in svg.read_text()] == []
