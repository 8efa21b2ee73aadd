"""Selection of the machines that leave when a pool shrinks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lifecycle.rotation.model import Gang, Load, NodeObservation, Task, Verdict
from lifecycle.rotation.scale_in import planned_capacities, select_removals
from lifecycle.rotation.selection import Candidate, Selection
from stacks.load import load_plan

NOW = 1_800_000_000.0


def node(name: str, load: Load = Load.EMPTY, *gangs: str, ready: bool = True, scale_set: str = "gpu-000", owner: str = "") -> Candidate:
    """Return a machine of the pool gpu."""
    return Candidate(NodeObservation(name, scale_set, "gpu", load=load, gangs=gangs, ready=ready, cordoned_by=owner))


def gang(name: str, hours: float, *nodes: str) -> Gang:
    """Return a gang with 8 GPUs per node whose last checkpoint was so many hours ago."""
    return Gang(name, nodes, Load.NORMAL, 8, NOW - 3_600 * hours)


def names(found: Selection) -> list[str]:
    """Return the selected names."""
    return [one.name for one in found.nodes]


def test_failed_empty_balloon_and_low_nodes_leave_before_any_gang() -> None:
    machines = [
        node("job-0", Load.NORMAL, "job"),
        node("low", Load.LOW),
        node("balloon", Load.BALLOON),
        node("debugged", owner="ada"),
        node("empty"),
        node("silent", Load.BALLOON, ready=False),
        Candidate(NodeObservation("hot", "gpu-000", "gpu", verdict=Verdict.HARDWARE)),
    ]
    order = ["hot", "silent", "empty", "debugged", "balloon", "low", "job-0"]
    for planned in range(8):
        found = select_removals({"gpu-000": planned}, machines, [gang("job", 1.0, "job-0")], NOW)
        assert names(found) == order[: 7 - planned]
        assert all(one.task is Task.REMOVE for one in found.nodes)
    found = select_removals({"gpu-000": 0}, machines, [gang("job", 1.5, "job-0")], NOW)
    assert [one.reason for one in found.nodes][::6] == [
        "7 instances, planned 0; failed or NotReady",
        "7 instances, planned 0; gang job, 12.0 GPU-hours since its checkpoint",
    ]
    assert found.notes == ("debugged: cordoned by ada; rotation waits until ada removes the cordon",)


def test_whole_gangs_that_lose_the_least_work_per_node_leave_before_parts_of_one() -> None:
    cheap, costly, small = [f"cheap-{i}" for i in range(4)], [f"costly-{i}" for i in range(2)], ["small-0"]
    machines = [node(name, Load.NORMAL, name.partition("-")[0]) for name in (*cheap, *costly, *small)]
    gangs = [gang("cheap", 0.1, *cheap), gang("costly", 9.0, *costly), gang("small", 5.0, *small)]

    def removed(count: int) -> list[str]:
        return names(select_removals({"gpu-000": 7 - count}, machines, gangs, NOW))

    assert removed(4) == cheap
    assert removed(2) == costly, "a part of the cheap gang would interrupt all of it"
    assert removed(1) == small
    assert removed(3) == [*small, *costly]
    only = select_removals({"gpu-000": 3}, [node(name, Load.NORMAL, "cheap") for name in cheap], gangs, NOW)
    assert names(only) == ["cheap-0"]
    assert only.notes == (
        "1 of 4 nodes of gang cheap in one scale set are removed: no gangs fit the number; the whole gang is interrupted",
    )


def test_a_gang_that_lost_a_broken_node_is_taken_before_others_because_its_work_is_lost() -> None:
    machines = [
        node("a-0", Load.NORMAL, "a", ready=False),
        node("a-1", Load.NORMAL, "a"),
        node("b-0", Load.NORMAL, "b"),
    ]
    gangs = [gang("a", 50.0, "a-0", "a-1"), gang("b", 1.0, "b-0")]
    assert names(select_removals({"gpu-000": 1}, machines, gangs, NOW)) == ["a-0", "a-1"]


def test_a_scale_set_that_left_the_plan_loses_all_its_machines_and_others_none() -> None:
    machines = [node("a"), node("b", scale_set="gpu-001"), Candidate(NodeObservation("c", "gpu-001", "gpu"), deleting=True)]
    found = select_removals({"gpu-000": 1}, machines, [], NOW)
    assert [(one.name, one.reason) for one in found.nodes] == [("b", "its scale set is not in the plan; load: empty")]


def test_an_instance_without_a_node_counts_as_live_and_is_left_to_a_person() -> None:
    orphan = Candidate(NodeObservation("orphan", "gpu-000", "gpu", exists=False), in_cluster=False)
    found = select_removals({"gpu-000": 1}, [node("a"), node("b"), orphan], [], NOW)
    assert names(found) == ["a"]
    assert [(one.name, one.reason) for one in found.excluded] == [
        ("orphan", "Azure instance without a node, of the 2 instances to remove: delete it in Azure")
    ]


def test_planned_capacities_are_those_of_every_scale_set() -> None:
    cluster = load_plan("southcentralus").clusters[0]
    found = planned_capacities(cluster)
    assert sum(found.values()) == cluster.nodes
    assert len(found) == sum(len(pool.scale_sets) for pool in cluster.pools)


@given(
    loads=st.lists(st.tuples(st.sampled_from(Load), st.lists(st.sampled_from("abc"), max_size=2), st.booleans()), max_size=30),
    planned=st.integers(0, 30),
)
def test_exactly_the_surplus_leaves_and_no_node_twice(loads: list[tuple[Load, list[str], bool]], planned: int) -> None:
    machines = [node(f"n{i:02d}", load, *gangs, ready=ready) for i, (load, gangs, ready) in enumerate(loads)]
    found = names(select_removals({"gpu-000": planned}, machines, [gang("a", 1.0, "n00")], NOW))
    assert len(found) == len(set(found)) == max(0, len(machines) - planned)
