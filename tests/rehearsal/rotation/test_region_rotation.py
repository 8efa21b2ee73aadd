"""Tests of the rotation of a whole region in virtual time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import pytest

from components.plan.model import RegionPlan
from lifecycle.rotation.budget import Place
from lifecycle.rotation.calendar import Calendar
from lifecycle.rotation.model import Load, NodeState
from lifecycle.rotation.policy import Policy
from rehearsal.rotation.region_rotation import (
    RegionRotation,
    RegionRun,
    first_whole_window,
    next_opening,
    oversized_gangs,
    rotate_region,
)
from stacks.load import load_plan

MONDAY = int(datetime(2026, 11, 23, 14, tzinfo=UTC).timestamp())
"""14:00 in UTC, 15:00 in Stockholm: the windows of the shipped regions are open from 06:00 to 16:00 local time."""


def three_clusters(at_once: int) -> RegionPlan:
    """Return the dev region with three clusters of its kind."""
    dev = load_plan("dev")
    (cluster,) = dev.clusters
    clusters = tuple(replace(cluster, spec=cluster.spec.model_copy(update={"name": name})) for name in ("a", "b", "c"))
    return replace(dev, clusters=clusters, spec=dev.spec.model_copy(update={"clusters_rotating_at_once": at_once}))


@cache
def rotated(at_once: int) -> RegionRotation:
    return rotate_region(three_clusters(at_once), RegionRun(MONDAY, seed=4))


def test_every_node_is_rotated_and_recorded_in_a_journal() -> None:
    result = rotated(1)
    assert (result.nodes, result.ready) == (36, 36)
    for one in result.clusters:
        records, length = one.journal
        assert records > 12
        assert length > 100 * records
        assert one.outcome.states[NodeState.READY] == sum(row.nodes for row in one.pools) == sum(row.starts for row in one.windows) == 12
        assert one.outcome.most_unavailable <= one.policy.machines


@pytest.mark.parametrize("at_once", [1, 2])
def test_clusters_start_in_order_and_no_more_at_once_than_the_region_allows(at_once: int) -> None:
    result = rotated(at_once)
    assert [one.cluster for one in result.clusters] == ["a", "b", "c"]
    spans = [(one.outcome.started, one.outcome.finished) for one in result.clusters]
    for began, _ in spans:
        assert sum(first <= began < last for first, last in spans) <= at_once
    assert spans[at_once][0] == min(ended for _, ended in spans[:at_once])
    assert result.most_unavailable <= 2 * at_once


def test_the_bound_of_the_region_is_that_of_its_clusters_one_after_the_other() -> None:
    result = rotated(1)
    assert 0.5 * result.seconds < result.bound <= result.seconds
    assert all(one.outcome.seconds >= one.bound.seconds for one in result.clusters)
    assert rotated(2).bound < result.bound


def test_a_seed_determines_the_result() -> None:
    again = rotate_region(three_clusters(1), RegionRun(MONDAY, seed=4))
    assert (again.finished, again.lost_gpu_hours, again.clusters[0].units) == (
        rotated(1).finished,
        rotated(1).lost_gpu_hours,
        rotated(1).clusters[0].units,
    )


def test_the_first_unit_is_a_canary_and_no_start_is_outside_a_window() -> None:
    for one in rotated(1).clusters:
        assert one.units[0].nodes == 1
        times = [at for row in one.windows for at in (row.first, row.last)]
        assert all(one.policy.calendar.span(at)[0] for at in times)


def test_only_pools_of_a_chosen_image_and_cluster_are_rotated() -> None:
    (pool, *_) = three_clusters(1).clusters[0].pools
    name = pool.spec.image.partition("@")[0]
    result = rotate_region(three_clusters(1), RegionRun(MONDAY, clusters=("b",), images={name: "2026.10.0"}))
    (only,) = result.clusters
    assert only.cluster == "b"
    assert [row.pool for row in only.pools] == [one.name for one in three_clusters(1).clusters[0].pools if one.spec.image.startswith(name)]


def test_a_rotation_starts_with_the_next_whole_window() -> None:
    dev = load_plan("dev")
    tuesday = datetime(2026, 11, 24, 5, tzinfo=UTC).timestamp()
    assert first_whole_window(dev, MONDAY) == first_whole_window(dev, tuesday - 60) == tuesday
    assert next_opening(Calendar(), 17.5) == 18


def test_gangs_above_a_budget_are_blockers_of_the_region_file() -> None:
    policy = Policy(machines=8, per_scale_set=2, scale_sets_at_once=1, deadlines={Load.HIGH: 0.0}, teams={"vision": 3})
    places = {f"n{number}": Place(f"set-{number // 5}", "gpu", "vision" if number < 5 else "") for number in range(20)}
    names = sorted(places, key=lambda name: int(name[1:]))
    gangs = [("ada", names[:3]), ("ada", names[:4]), ("ada", names[5:10]), ("bob", names[5:20])]
    rows = list(oversized_gangs(gangs, places, policy, "dev"))
    assert [(row.reason, row.nodes) for row in rows] == [
        ("1 gang of 4 machines exceeds the budget of 3 of team vision; it starts when idle", 4),
        ("1 gang of 15 machines exceeds the budget of 8 of cluster; it starts when idle", 15),
    ]
    assert {row.owner for row in rows} == {"region file, rotation.budget of dev"}
