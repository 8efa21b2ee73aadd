"""After any sequence of operations on scale sets: unique addresses, correct capacity and quota, and every operation ends."""

from __future__ import annotations

import json
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scale_sets_made import COMPUTE, HEALTH, SUBNET, SUBSCRIPTION, ask, azure, body, image

from rehearsal.azure.capacity import capacity_of
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import addresses_of, instances_of, state_of
from rehearsal.azure.compute.repairs import set_health
from rehearsal.azure.errors import AzureError
from rehearsal.azure.network.address_pools import pool_of
from rehearsal.azure.persistence import dump, load
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.resource import SUCCEEDED, Json, Resource
from rehearsal.azure.scenario import AllocationFailure, FailedProvisioning, Grant, Quotas, Scenario
from rehearsal.azure.scheduled_events import scheduled_events_of

QUOTA = 40
SUBNET_PREFIX = "10.0.0.0/26"
SIZES = ("Standard_D2s_v5", "Standard_D4s_v5")
NAMES = ("one", "two")
SCENARIO = Scenario(
    quotas=Quotas(granted=(Grant(family="standardDSv5Family", vcpus=QUOTA),)),
    allocation_failures=(AllocationFailure(rate=0.1),),
    failed_provisioning=(FailedProvisioning(rate=0.05, code="OSProvisioningTimedOut"),),
)
ACTIONS = ("start", "restart", "powerOff", "deallocate", "redeploy", "reimage", "reimageAll", "manualupgrade", "delete")
INSTANCE_ACTIONS = ACTIONS[:7]

names = st.sampled_from(NAMES)
picks = st.lists(st.integers(0, 30), max_size=4)


class ScaleSets(RuleBasedStateMachine):
    """Two sets in one small subnet and a small quota, with everything that goes wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.cloud = azure(SCENARIO, subnet=SUBNET_PREFIX)
        self.seen: dict[str, int] = {}
        self.trace: list[tuple[Any, ...]] = []

    def ask(self, method: str, text: str, sent: Json | None = None, action: str = "") -> None:
        """Ask, and let Azure refuse; a refusal is one of Azure's, and no other error."""
        try:
            answer = ask(self.cloud, method, text, sent, action)
            self.trace.append((method, text, action, answer.status))
        except AzureError as refused:
            self.trace.append((method, text, action, refused.code))

    def sets(self) -> list[Resource]:
        return list(self.cloud.list(f"/subscriptions/{SUBSCRIPTION}", "Microsoft.Compute/virtualMachineScaleSets"))

    def some(self, name: str, chosen: list[int]) -> list[str]:
        found = self.cloud.find(set_id(name))
        known = list(instances_of(found)) if found else []
        return [known[number % len(known)] for number in chosen] if known else ["0"]

    @initialize()
    def first(self) -> None:
        self.put("one", 4, 0, 0, False, False, "Manual", 2)

    @rule(
        name=names,
        capacity=st.integers(0, 12),
        size=st.integers(0, 1),
        version=st.integers(0, 2),
        overprovision=st.booleans(),
        notice=st.booleans(),
        mode=st.sampled_from(["Manual", "Automatic", "Rolling"]),
        addresses=st.integers(1, 3),
    )
    def put(self, name: str, capacity: int, size: int, version: int, overprovision: bool, notice: bool, mode: str, addresses: int) -> None:
        profile: Json = {"enable": notice, "notBeforeTimeout": "PT5M"}
        sent = body(
            capacity,
            size=SIZES[size],
            addresses=addresses,
            overprovision=overprovision,
            upgradePolicy={"mode": mode, "rollingUpgradePolicy": {"maxBatchInstancePercent": 40, "maxUnhealthyInstancePercent": 60}},
            automaticRepairsPolicy={"enabled": True, "gracePeriod": "PT10M"},
            virtualMachineProfile__storageProfile__imageReference=image(f"{version}.0.0"),
            virtualMachineProfile__scheduledEventsProfile={"terminateNotificationProfile": profile},
            virtualMachineProfile__extensionProfile={"extensions": [HEALTH]},
        )
        self.ask("PUT", set_id(name), sent)

    @rule(name=names, capacity=st.integers(0, 12))
    def patch(self, name: str, capacity: int) -> None:
        self.ask("PATCH", set_id(name), {"sku": {"capacity": capacity}})

    @rule(name=names, action=st.sampled_from(ACTIONS), chosen=picks, everything=st.booleans())
    def act(self, name: str, action: str, chosen: list[int], everything: bool) -> None:
        self.ask("POST", set_id(name), {"instanceIds": ["*"] if everything else self.some(name, chosen)}, action)

    @rule(name=names, action=st.sampled_from(INSTANCE_ACTIONS), chosen=st.integers(0, 30))
    def act_on_one(self, name: str, action: str, chosen: int) -> None:
        self.ask("POST", f"{set_id(name)}/virtualMachines/{self.some(name, [chosen])[0]}", None, action)

    @rule(name=names, chosen=st.integers(0, 30))
    def delete_one(self, name: str, chosen: int) -> None:
        self.ask("DELETE", f"{set_id(name)}/virtualMachines/{self.some(name, [chosen])[0]}")

    @rule(name=names)
    def delete_set(self, name: str) -> None:
        self.ask("DELETE", set_id(name))

    @rule(name=names, chosen=st.integers(0, 30), scale_in=st.booleans(), actions=st.booleans())
    def protect(self, name: str, chosen: int, scale_in: bool, actions: bool) -> None:
        policy = {"protectFromScaleIn": scale_in, "protectFromScaleSetActions": actions}
        text = f"{set_id(name)}/virtualMachines/{self.some(name, [chosen])[0]}"
        self.ask("PUT", text, {"location": "swedencentral", "properties": {"protectionPolicy": policy}})

    @rule(name=names, chosen=picks, what=st.sampled_from(["host_failed", "maintenance", "evict"]))
    def mishap(self, name: str, chosen: list[int], what: str) -> None:
        found = self.cloud.find(set_id(name))
        if found is not None:
            met = self.some(name, chosen)
            args = ("Redeploy", 900.0, met) if what == "maintenance" else (met,)
            self.cloud.events.after(1.0, found.key, what, *args)

    @rule(name=names, chosen=st.integers(0, 30), health=st.sampled_from(["Healthy", "Unhealthy", "Unknown"]))
    def report(self, name: str, chosen: int, health: str) -> None:
        found = self.cloud.find(set_id(name))
        if found is not None and instances_of(found):
            set_health(self.cloud, found, self.some(name, [chosen])[0], health)

    @rule(name=names)
    def approve(self, name: str) -> None:
        for notice in scheduled_events_of(self.cloud).pending(set_id(name).lower()):
            scheduled_events_of(self.cloud).approve(self.cloud, notice.id)

    @rule(seconds=st.sampled_from([1.0, 30.0, 60.0, 200.0, 1_000.0]))
    def wait(self, seconds: float) -> None:
        self.cloud.advance(self.cloud.now + seconds)

    @rule()
    def save_and_read_back(self) -> None:
        data = json.loads(json.dumps(dump(self.cloud)))
        read = load(data, emptied)
        assert json.dumps(dump(read), sort_keys=True) == json.dumps(data, sort_keys=True)
        self.cloud = read

    @precondition(lambda self: any(one.running for one in self.cloud.operations.values()))
    @rule()
    def settle(self) -> None:
        self.cloud.run_until_idle()
        for resource in self.sets():
            state = state_of(resource)
            assert state.active == 0
            assert all(not one.doing for one in state.instances.values())
            assert all(one.charged for one in state.instances.values())
            capacity, present = resource.body["sku"]["capacity"], len(state.instances)
            if resource.properties["provisioningState"] == SUCCEEDED and not self.repair_failed(resource):
                assert present == capacity
            else:
                assert present <= capacity

    def repair_failed(self, resource: Resource) -> bool:
        """Return whether Azure removed an unhealthy machine and found no hardware or quota for another."""
        return any(one.key == resource.key and one.name == "automaticRepair" and one.error for one in self.cloud.operations.values())

    @invariant()
    def addresses_are_each_used_once_and_in_their_subnet(self) -> None:
        found = [address for resource in self.sets() for *_, address in addresses_of(resource)]
        assert len(found) == len(set(found)) == pool_of(self.cloud, SUBNET).used
        assert all(IPv4Address(address) in IPv4Network(SUBNET_PREFIX) for address in found)

    @invariant()
    def quota_is_what_the_machines_take_and_never_exceeded(self) -> None:
        used = capacity_of(self.cloud).quota.used((SUBSCRIPTION, "swedencentral"), "standardDSv5Family")
        taken = 0
        for resource in self.sets():
            models = state_of(resource).models
            taken += sum({SIZES[0]: 2, SIZES[1]: 4}[models[one.model].size] for one in instances_of(resource).values() if one.charged)
        assert used == taken <= QUOTA

    @invariant()
    def a_host_is_in_use_by_one_machine_that_is_there(self) -> None:
        hosts = [one.host for resource in self.sets() for one in instances_of(resource).values() if one.host]
        assert len(hosts) == len(set(hosts)) == capacity_of(self.cloud).hosts.in_use()

    @invariant()
    def ids_grow_and_are_never_used_again(self) -> None:
        for resource in self.sets():
            state = state_of(resource)
            known = self.seen.get(state.born, -1)
            fresh = [int(number) for number in state.instances if int(number) > known]
            assert state.next_id > known
            self.seen[state.born] = max([known, *fresh])

    def teardown(self) -> None:
        self.cloud.run_until_idle()
        assert all(not one.running for one in self.cloud.operations.values())


def set_id(name: str) -> str:
    """Id of one of the two sets."""
    return f"{COMPUTE}/virtualMachineScaleSets/{name}"


def emptied(data: Json) -> Cloud:
    """A Cloud like the machine's, with nothing in it."""
    return new_cloud(data["subscriptions"], data["tenant"], seed=data["seed"])


TestScaleSets = ScaleSets.TestCase
TestScaleSets.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_and_requests_give_the_same_history(seed: int) -> None:
    histories = []
    for _ in range(2):
        cloud = azure(SCENARIO, subnet=SUBNET_PREFIX, seed=seed)
        for name, capacity in (("one", 8), ("two", 5), ("one", 3)):
            ask(cloud, "PUT", set_id(name), body(capacity, overprovision=True))
            cloud.advance(cloud.now + 40)
        cloud.run_until_idle()
        histories.append(json.dumps(dump(cloud)))
    assert histories[0] == histories[1]
