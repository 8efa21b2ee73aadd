"""Faults occur at the scenario's rates and times, for each machine by its own draw, and survive a saved state."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rehearsal.azure.arm_id import parse
from rehearsal.azure.clock import Events
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import Instance, Model, SetState
from rehearsal.azure.fault_injection import SERVICE, FaultInjection
from rehearsal.azure.resource import Resource
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.scenario import Scenario, begin_scenario

SUBSCRIPTION = "11111111-1111-4111-8111-111111111111"
SCALE_SETS = "Microsoft.Compute/virtualMachineScaleSets"
H100, NC24 = "Standard_ND96isr_H100_v5", "Standard_NC24ads_A100_v4"
DAY = 86_400.0


class Told(ResourceType):
    """A scale set that only notes what befalls its machines."""

    type = SCALE_SETS

    def event(self, cloud: Cloud, resource: Resource, name: str, args: tuple[Any, ...]) -> None:
        cloud.services["told"].append((cloud.now, resource.id.name, name, args))


def cloud_with(seed: int = 0, machines: int = 500, **contents: Any) -> Cloud:
    """A regular set of H100 machines and a spot set of A100 machines, each with its last machine deallocated."""
    cloud = Cloud((Told(),), subscriptions=[SUBSCRIPTION], tenant="t", seed=seed)
    cloud.services |= {"told": [], SERVICE: FaultInjection()}
    for name, size, priority in (("regular", H100, "Regular"), ("spot", NC24, "Spot")):
        arm_id = parse(f"/subscriptions/{SUBSCRIPTION}/resourceGroups/g/providers/{SCALE_SETS}/{name}")
        state = SetState(models={0: Model(size, {"priority": priority}, {}, ())})
        state.instances = {str(one): Instance(id=one, host="h" if one < machines - 1 else "") for one in range(machines)}
        body = {"location": "southcentralus", "properties": {}}
        cloud.resources[arm_id.key] = Resource(arm_id, body, {}, "somebody", cloud.now, cloud.now, state=state)
        cloud.index.add(arm_id, ())
    begin_scenario(cloud, Scenario.model_validate(contents))
    return cloud


def after(cloud: Cloud, seconds: float) -> list[tuple[float, str, str, tuple[Any, ...]]]:
    """Return the faults of the next seconds, with times from their start."""
    start = cloud.now
    cloud.advance(start + seconds)
    return [(at - start, *rest) for at, *rest in cloud.services["told"]]  # type: ignore[misc]


def test_in_calm_nothing_befalls_anybody_and_nothing_is_planned() -> None:
    cloud = cloud_with()
    assert after(cloud, 30 * DAY) == []
    assert len(cloud.events) == 0


def test_hosts_fail_at_their_rate_each_at_its_own_moment() -> None:
    faults = after(cloud_with(host_failures=({"per_instance_day": 0.05, "vm_size": H100},)), 4 * DAY)
    assert {(name, what) for _, name, what, _ in faults} == {("regular", "host_failed")}
    assert 75 < len(faults) < 125  # 499 machines, four days, one in twenty a day.
    assert len({at for at, *_ in faults}) == len(faults)
    assert "499" not in {args[0][0] for *_, args in faults}
    by_day = Counter(int(at // DAY) for at, *_ in faults)
    assert set(by_day) == {0, 1, 2, 3}


def test_only_spot_machines_are_evicted() -> None:
    faults = after(cloud_with(evictions=({"per_instance_day": 1},)), DAY)
    assert {(name, what) for _, name, what, _ in faults} == {("spot", "evict")}
    assert 440 < len(faults) < 560


def test_a_burst_takes_its_share_at_its_moment() -> None:
    ((at, name, what, args),) = after(cloud_with(eviction_bursts=({"at": "2h30m", "share": 0.5},)), DAY)
    assert (at, name, what) == (9_000, "spot", "evict")
    assert 200 < len(args[0]) < 300


def test_maintenance_meets_its_share_of_every_set_with_kind_and_notice() -> None:
    faults = after(cloud_with(maintenance=({"at": "1d", "share": 0.1, "kind": "Redeploy", "notice": "30m"},)), 2 * DAY)
    assert [(at, name, what, args[:2]) for at, name, what, args in faults] == [
        (DAY, "regular", "maintenance", ("Redeploy", 1_800)),
        (DAY, "spot", "maintenance", ("Redeploy", 1_800)),
    ]
    assert all(30 < len(args[2]) < 70 for *_, args in faults)


@pytest.mark.parametrize("row", [{"location": "swedencentral"}, {"vm_size": "Standard_D2s_v5"}])
def test_rows_of_another_place_or_size_meet_nobody(row: dict[str, str]) -> None:
    faults = after(cloud_with(maintenance=({"at": "1h", "share": 1, **row},), eviction_bursts=({"at": "1h", "share": 1, **row},)), DAY)
    assert faults == []


def test_the_same_seed_has_the_same_history_and_another_has_another() -> None:
    rates: dict[str, Any] = {"host_failures": ({"per_instance_day": 0.1},), "evictions": ({"per_instance_day": 0.1},)}
    first, second, other = (after(cloud_with(seed=seed, **rates), DAY) for seed in (1, 1, 2))
    assert first == second
    assert first != other


def test_more_machines_change_nothing_for_those_that_were_there() -> None:
    rates: dict[str, Any] = {"host_failures": ({"per_instance_day": 0.1, "vm_size": H100},)}
    few, many = (after(cloud_with(machines=machines, **rates), DAY) for machines in (201, 401))
    there = {str(one) for one in range(200)}
    assert [(at, args) for at, *_, args in few] == [(at, args) for at, *_, args in many if args[0][0] in there]


def test_a_new_scenario_ends_what_an_earlier_one_had_planned() -> None:
    cloud = cloud_with(eviction_bursts=({"at": "2h", "share": 1},), host_failures=({"per_instance_day": 24},))
    cloud.advance(cloud.now + 60)
    begin_scenario(cloud, Scenario.model_validate({"eviction_bursts": ({"at": "3h", "share": 1},)}))
    cloud.services["told"].clear()
    bursts = [at for at, _, what, _ in after(cloud, DAY) if what == "evict"]
    assert bursts == [10_800]


def test_a_saved_model_has_the_same_future() -> None:
    rates: dict[str, Any] = {"host_failures": ({"per_instance_day": 0.1},), "eviction_bursts": ({"at": "20h", "share": 0.1},)}
    cloud, other = cloud_with(**rates), cloud_with()
    for one in (cloud, other):
        one.advance(one.now + 40_000)
    other.events = Events.load(cloud.events.dump())
    other.services[SERVICE].load(cloud.services[SERVICE].dump())
    other.services["scenario"].load(cloud.services["scenario"].dump())
    cloud.services["told"].clear()
    futures = [after(one, DAY) for one in (cloud, other)]
    assert len(futures[0]) > 50
    assert futures[0] == futures[1]
