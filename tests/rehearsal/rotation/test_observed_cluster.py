"""Tests of a population that comes from a reading of a live cluster."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from components.plan.model import ClusterPlan, RegionPlan
from lifecycle.rotation.model import Gang, Load, NodeObservation, NodeState, RunNode
from rehearsal.rotation.observed_cluster import Blocker, ObservedCluster, cordon_blockers, population_of
from rehearsal.rotation.region_rotation import RegionRun, rotate_region
from stacks.load import load_plan

AT = 1_796_014_800


@cache
def dev() -> tuple[RegionPlan, ClusterPlan]:
    region = load_plan("dev")
    return region, region.clusters[0]


def machine(
    number: int, load: Load = Load.EMPTY, gangs: tuple[str, ...] = (), *, cordoned_by: str = "", ready: bool = True
) -> NodeObservation:
    pods = 1 if load else 0
    return NodeObservation(
        f"n{number}", "dev-cpu-000", "cpu", load=load, gangs=gangs, pods=pods, cordoned_by=cordoned_by, ready=ready, current=False
    )


def observed() -> ObservedCluster:
    """Return ten machines: a gang on n0 to n2, a smaller one that shares n2, a service, a cordon, and a machine that is not ready."""
    machines = (
        *(machine(number, Load.HIGH, ("five",)) for number in range(2)),
        machine(2, Load.HIGH, ("five", "two")),
        machine(3, Load.NORMAL, ("two",)),
        machine(4, Load.NORMAL),
        machine(5, cordoned_by="ada"),
        machine(6, ready=False),
        *(machine(number) for number in range(7, 10)),
    )
    gangs = (Gang("two", ("n2", "n3"), Load.NORMAL, 0, AT - 60.0), Gang("five", ("n0", "n1", "n2"), Load.HIGH, 0, AT - 600.0))
    nodes = tuple(RunNode(f"n{number}", "dev-cpu-000", "cpu", "image") for number in (0, 1, 2, 3, 4, 7, 8))
    return ObservedCluster("dev", float(AT), machines, gangs, nodes, tuple(cordon_blockers(machines)))


def test_gangs_loads_and_checkpoints_are_those_of_the_reading() -> None:
    people = population_of(observed(), dev()[1], 1)
    assert [one.name for one in people.machines] == [f"n{number}" for number in range(10)]
    assert [(job.id, job.machines, job.load, job.checkpoint_age) for job in people.jobs] == [
        ("five", (0, 1, 2), Load.HIGH, 600.0),
        ("two", (3,), Load.NORMAL, 60.0),
    ]
    assert [one.load for one in people.machines][:5] == [Load.EMPTY] * 4 + [Load.NORMAL]
    assert people.machines[4].serving
    assert people == population_of(observed(), dev()[1], 1)
    assert [job.remaining for job in people.jobs] != [job.remaining for job in population_of(observed(), dev()[1], 2).jobs]


def test_only_selected_nodes_are_rotated_and_machines_out_of_service_use_the_budget() -> None:
    region, cluster = dev()
    budget = cluster.spec.rotation.budget.model_copy(update={"percent": 50, "machines": 5, "per_scale_set": 5})
    spec = cluster.spec.model_copy(update={"rotation": cluster.spec.rotation.model_copy(update={"budget": budget})})
    region = replace(region, clusters=(replace(cluster, spec=spec),))
    (result,) = rotate_region(region, RegionRun(AT, 1, observed=observed())).clusters
    assert (result.nodes, result.outcome.states[NodeState.READY]) == (7, 7)
    assert min(result.outcome.timeline.columns["unavailable"]) >= 2, "the cordoned machine and the one that is not ready"
    assert 2 < result.outcome.most_unavailable <= 5
    assert {"n5", "n6", "n9"}.isdisjoint(result.outcome.started_at)
    starts = {name: result.outcome.started_at[name] for name in ("n0", "n1", "n2")}
    assert len(set(starts.values())) == 1, "a gang starts together"
    assert result.blockers == (Blocker("ada", "cordoned by ada; they start when ada has removed the cordon", 1),)
