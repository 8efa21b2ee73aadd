"""Rolling upgrades: one operation until their end, batches within the policy's bounds, and counts that add up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import scale_sets_made
from hypothesis import given, settings
from hypothesis import strategies as st
from scale_sets_made import HEALTH, PROFILE, SET, ask, body, ended, error, image, post, put, scale_set, vm

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import Instance, instances_of, state_of
from rehearsal.azure.compute.repairs import set_health
from rehearsal.azure.compute.rolling_upgrades import HEALTH_SECONDS, is_unhealthy
from rehearsal.azure.errors import AzureError
from rehearsal.azure.persistence import dump, load
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.resource import FAILED, SUCCEEDED, Json, Operation
from rehearsal.azure.scenario import AllocationFailure, Scenario

WATCHED = {f"{PROFILE}__extensionProfile": {"extensions": [HEALTH]}}
COUNTS = ("successfulInstanceCount", "failedInstanceCount", "inProgressInstanceCount", "pendingInstanceCount")
AFTER = "MaxUnhealthyUpgradedInstancePercentExceededInRollingUpgrade"
BEFORE, DURING = "MaxUnhealthyInstancePercentExceededBeforeRollingUpgrade", "MaxUnhealthyInstancePercentExceededInRollingUpgrade"


def model(count: int, version: str, mode: str = "Rolling", size: str = "Standard_D2s_v5", **policy: Any) -> Json:
    """A body of a scale set with a policy and an image."""
    rolling = {"maxBatchInstancePercent": 40, "maxUnhealthyInstancePercent": 40, "pauseTimeBetweenBatches": "PT2M", **policy}
    upgrade = {"mode": mode, "rollingUpgradePolicy": rolling}
    return body(count, size=size, **WATCHED, upgradePolicy=upgrade, **{f"{PROFILE}__storageProfile__imageReference": image(version)})


def upgraded(count: int, scenario: Scenario | None = None, size: str = "Standard_D2s_v5", **policy: Any) -> tuple[Cloud, Operation]:
    """A set that is being brought to a new image, or size, and the operation of the PUT."""
    cloud = scale_sets_made.azure(scenario)
    put(cloud, SET, model(count, "1.0.0", **policy))
    cloud.advance(cloud.now + 3_600)
    operation = ask(cloud, "PUT", SET, model(count, "2.0.0", size=size, **policy)).operation
    assert operation is not None
    return cloud, operation


def latest(cloud: Cloud) -> Json:
    found = ask(cloud, "GET", f"{SET}/rollingUpgrades/latest").body
    assert found is not None
    return dict(found["properties"])


def counts(cloud: Cloud) -> tuple[int, ...]:
    return tuple(latest(cloud)["progress"][name] for name in COUNTS)


def machines(cloud: Cloud) -> list[Instance]:
    return list(instances_of(scale_set(cloud)).values())


def new_disks(cloud: Cloud) -> list[Instance]:
    return [one for one in machines(cloud) if one.os_disk == 2]


def state(cloud: Cloud) -> str:
    return str(ask(cloud, "GET", SET).body["properties"]["provisioningState"])  # type: ignore[index]


def moments(cloud: Cloud, operation: Operation) -> Iterator[float]:
    """Step to each event until an operation ends, and yield each moment."""
    while operation.running:
        due = cloud.events.next_at()
        assert due is not None
        cloud.step(due)
        yield cloud.now


def test_the_put_runs_until_the_last_batch_is_up_and_takes_one_batch_at_a_time() -> None:
    cloud, operation = upgraded(5)
    most, seen = 0, set()
    for _ in moments(cloud, operation):
        if state_of(scale_set(cloud)).rolling is not None:
            assert sum(counts(cloud)) == 5
            seen.add(counts(cloud))
        most = max(most, sum(1 for one in machines(cloud) if one.doing or one.ready > cloud.now))
        assert state(cloud) == ("Updating" if operation.running else SUCCEEDED)
    assert most == 2
    assert operation.status == SUCCEEDED
    assert len(new_disks(cloud)) == 5
    assert {(0, 0, 2, 3), (2, 0, 2, 1), (4, 0, 1, 0), (5, 0, 0, 0)} <= seen
    assert latest(cloud)["runningStatus"]["code"] == "Completed"
    assert operation.ended is not None
    assert operation.ended - operation.started > 2 * 120


def test_an_unhealthy_batch_fails_the_put_and_the_set_and_another_put_begins_again() -> None:
    cloud, operation = upgraded(5, maxUnhealthyUpgradedInstancePercent=10)
    for _ in moments(cloud, operation):
        for one in new_disks(cloud):
            one.health = "Unhealthy"
    assert (operation.status, error(operation), state(cloud)) == (FAILED, AFTER, FAILED)
    assert operation.error is not None
    assert "40% of instances are in an unhealthy state after being upgraded - more than the threshold of 10%" in operation.error["message"]
    assert counts(cloud) == (0, 2, 0, 3)
    assert latest(cloud)["runningStatus"]["code"] == "Faulted"
    assert latest(cloud)["error"]["code"] == AFTER
    refused = put(cloud, SET, model(5, "2.0.0", maxUnhealthyInstancePercent=20))
    assert error(refused) == BEFORE
    for one in new_disks(cloud):
        set_health(cloud, scale_set(cloud), str(one.id), "Healthy")
    again = put(cloud, SET, model(5, "2.0.0"))
    assert again is not None
    assert (again.status, state(cloud), len(new_disks(cloud))) == (SUCCEEDED, SUCCEEDED, 5)


def test_an_instance_has_five_minutes_to_become_healthy() -> None:
    cloud, operation = upgraded(2, maxBatchInstancePercent=50, maxUnhealthyUpgradedInstancePercent=0, pauseTimeBetweenBatches="PT0S")
    first = machines(cloud)[0]
    for now in moments(cloud, operation):
        if first.os_disk == 2 and not first.doing and not first.health:
            first.health = "Unhealthy"
        if first.health == "Unhealthy" and now > first.ready + HEALTH_SECONDS - 20:
            set_health(cloud, scale_set(cloud), "0", "Healthy")
    assert operation.status == SUCCEEDED


def test_a_breach_restores_failed_instances_if_the_policy_says_so() -> None:
    cloud, operation = upgraded(5, maxUnhealthyUpgradedInstancePercent=0, rollbackFailedInstancesOnPolicyBreach=True)
    for _ in moments(cloud, operation):
        for one in new_disks(cloud):
            one.health = one.health or ("Unhealthy" if one.id == 0 and not one.doing else "")
    assert error(operation) == AFTER
    read = [ask(cloud, "GET", vm(number)).body for number in range(2)]
    found = [one["properties"]["storageProfile"]["imageReference"]["exactVersion"] for one in read if one]
    assert found == ["1.0.0", "2.0.0"]
    assert [one["properties"]["latestModelApplied"] for one in read if one] == [False, True]
    assert counts(cloud) == (1, 1, 0, 3)
    assert latest(cloud)["runningStatus"]["code"] == "Faulted"


def test_batches_stay_in_one_zone_unless_the_policy_crosses_zones_and_take_unhealthy_instances_first() -> None:
    for crossing in (False, True):
        cloud = scale_sets_made.azure()
        policy = {"enableCrossZoneUpgrade": crossing, "prioritizeUnhealthyInstances": True}
        put(cloud, SET, {**model(6, "1.0.0", **policy), "zones": ["1", "2", "3"]})
        cloud.advance(cloud.now + 3_600)
        ill = machines(cloud)[4]
        ill.health = "Unhealthy"
        answer = ask(cloud, "PUT", SET, {**model(6, "2.0.0", **policy), "zones": ["1", "2", "3"]})
        cloud.advance(cloud.now + 60)
        batch = [one for one in machines(cloud) if one.doing]
        assert ill in batch
        assert len({one.zone for one in batch}) == (2 if crossing else 1)
        ill.health = ""
        ended(cloud, answer)


def test_a_client_starts_a_rolling_upgrade_of_a_set_in_manual_mode_and_cancels_it() -> None:
    cloud = scale_sets_made.azure()
    put(cloud, SET, model(5, "1.0.0", "Manual"))
    put(cloud, SET, model(5, "2.0.0", "Manual"))
    cloud.advance(cloud.now + 3_600)
    with pytest.raises(AzureError, match=r"There is no ongoing Rolling Upgrade to cancel\."):
        ask(cloud, "POST", f"{SET}/rollingUpgrades/cancel")
    started = ask(cloud, "POST", SET, action="extensionRollingUpgrade").operation
    assert started is not None
    cloud.advance(cloud.now + 30)
    assert state(cloud) == "Updating"
    cancelled = ask(cloud, "POST", f"{SET}/rollingUpgrades/cancel")
    assert ended(cloud, cancelled) is not None
    assert (cancelled.operation.status, error(started), state(cloud)) == (SUCCEEDED, "OperationPreempted", SUCCEEDED)  # type: ignore[union-attr]
    assert counts(cloud) == (2, 0, 0, 3)
    assert latest(cloud)["runningStatus"]["code"] == "Cancelled"
    assert post(cloud, SET, "osRollingUpgrade").status == SUCCEEDED
    assert len(new_disks(cloud)) == 5
    put(cloud, SET, body(5, upgradePolicy={"mode": "Manual"}, **{f"{PROFILE}__extensionProfile": {"extensions": []}}))
    with pytest.raises(AzureError, match="a health probe or health extension was not specified"):
        ask(cloud, "POST", SET, action="osRollingUpgrade")


def test_the_os_upgrade_of_a_reference_to_the_latest_version_reaches_the_months_new_version() -> None:
    newest = {"publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2404", "version": "latest"}
    cloud = scale_sets_made.azure()
    sent = model(2, "1.0.0", "Manual")
    sent["properties"]["virtualMachineProfile"]["storageProfile"]["imageReference"] = newest
    put(cloud, SET, sent)
    assert exact_versions(cloud) == {"24.04.202601010"}
    cloud.advance(cloud.now + 45 * 86_400)
    assert post(cloud, SET, "osRollingUpgrade").status == SUCCEEDED
    assert exact_versions(cloud) == {"24.04.202602010"}
    assert post(cloud, SET, "osRollingUpgrade").status == SUCCEEDED
    assert {one.os_disk for one in machines(cloud)} == {2}


def exact_versions(cloud: Cloud) -> set[str]:
    found = [ask(cloud, "GET", vm(one.id)).body for one in machines(cloud)]
    return {one["properties"]["storageProfile"]["imageReference"]["exactVersion"] for one in found if one}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_counts_add_up_batches_respect_the_bounds_and_the_operation_ends_with_the_upgrade(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12), "machines")
    percent = {
        "maxBatchInstancePercent": data.draw(st.integers(5, 100), "batch"),
        "maxUnhealthyInstancePercent": data.draw(st.integers(5, 100), "unhealthy"),
        "maxUnhealthyUpgradedInstancePercent": data.draw(st.integers(0, 100), "unhealthy after"),
        "pauseTimeBetweenBatches": data.draw(st.sampled_from(["PT0S", "PT1M"]), "pause"),
        "prioritizeUnhealthyInstances": data.draw(st.booleans(), "prioritize"),
        "rollbackFailedInstancesOnPolicyBreach": data.draw(st.booleans(), "rollback"),
    }
    faults = Scenario(allocation_failures=(AllocationFailure(rate=data.draw(st.sampled_from([0.0, 0.3]), "faults"), starts="30m"),))
    cloud, operation = upgraded(count, faults, data.draw(st.sampled_from(["Standard_D2s_v5", "Standard_D4s_v5"]), "size"), **percent)
    ill = set(data.draw(st.lists(st.integers(0, count - 1), max_size=4), "unhealthy instances"))
    for number in data.draw(st.sets(st.integers(0, count - 1), max_size=3), "unhealthy until upgraded"):
        instances_of(scale_set(cloud))[str(number)].health = "Unhealthy"
    gone = data.draw(st.integers(0, 3 * count), "deleted instance")
    resource, batches, deletion = scale_set(cloud), set(), None
    most = max(1, count * percent["maxBatchInstancePercent"] // 100)
    for _ in moments(cloud, operation):
        rolling = state_of(resource).rolling
        if rolling is None:
            continue
        living, newest = state_of(resource).living(), state_of(resource).model
        behind = [one for one in living if one.model != newest and str(one.id) not in rolling["failed"]]
        assert (sum(counts(cloud)), counts(cloud)[3]) == (len(living), len(behind))
        batch = tuple(rolling["batch"])
        if batch and batch not in batches and not rolling["closing"]:
            batches.add(batch)
            assert len(batch) <= most
            bad = [one for one in living if is_unhealthy(cloud, resource, one) and str(one.id) not in rolling["failed"].keys() & batch]
            tolerated = percent["maxUnhealthyInstancePercent"] * len(living) // 100
            assert len(bad) <= tolerated
            fit = [one for one in living if str(one.id) in batch and one not in bad]
            assert not bad or len(bad) + len(fit) <= max(tolerated, len(bad) + 1)
            known = [one for one in bad if str(one.id) in rolling["upgraded"]]
            assert len(known) * 100 <= percent["maxUnhealthyUpgradedInstancePercent"] * len(living)
            if len(batches) == 2 and str(gone) in instances_of(resource):
                deletion = ask(cloud, "DELETE", vm(gone)).operation  # without waiting, so that the start of each batch is still seen
        for one in machines(cloud):
            if one.id in ill and one.os_model == state_of(resource).model and not one.doing:
                one.health = one.health or "Unhealthy"
    rolling = state_of(resource).rolling
    assert rolling is not None
    assert (rolling["running"], rolling["ended"]) == (False, operation.ended)
    assert (operation.status == SUCCEEDED) == (rolling["code"] == "Completed")
    assert state(cloud) == ("Updating" if deletion is not None and deletion.running else operation.status)
    if rolling["code"] == "Faulted":
        assert error(operation) in (AFTER, BEFORE, DURING)
    else:
        assert counts(cloud)[2:] == (0, 0)
    cloud.run_until_idle()
    assert (sum(counts(cloud)), state(cloud)) == (len(machines(cloud)), operation.status)


def test_an_upgrade_in_the_state_of_an_earlier_version_continues() -> None:
    cloud, operation = upgraded(5)
    cloud.advance(cloud.now + 30)
    saved = json.loads(json.dumps(dump(cloud)))
    (found,) = [one["state"] for one in saved["resources"] if one["state"] and "rolling" in one["state"]]
    earlier = ("operation", "running", "code", "batch", "upgraded", "started", "ended")
    found["rolling"] = {name: found["rolling"][name] for name in earlier}
    read = load(saved, lambda data: new_cloud(data["subscriptions"], data["tenant"], seed=data["seed"]))
    read.run_until_idle()
    assert read.operations[operation.id].status == SUCCEEDED
    assert len(new_disks(read)) == 5
