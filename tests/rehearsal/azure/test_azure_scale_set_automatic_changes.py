"""Changes of machines that Azure starts: terminate notices, evictions, maintenance, repairs, and rolling upgrades."""

from __future__ import annotations

from typing import Any

import pytest
import scale_sets_made
from scale_sets_made import HEALTH, PROFILE, SET, ask, azure, body, delete, ended, error, ids, image, instance, post, put, scale_set, vm

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.health import health_of
from rehearsal.azure.compute.instances import instances_of
from rehearsal.azure.compute.repairs import MAX_CONSECUTIVE_REPAIRS, set_health
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Operation
from rehearsal.azure.scheduled_events import scheduled_events_of

NOTICE = {f"{PROFILE}__scheduledEventsProfile": {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT10M"}}}
WATCHED = {f"{PROFILE}__extensionProfile": {"extensions": [HEALTH]}}
REPAIRED = {**WATCHED, "automaticRepairsPolicy": {"enabled": True, "gracePeriod": "PT10M"}}
SPOT = {f"{PROFILE}__priority": "Spot"}


def made(capacity: int = 3, **properties: Any) -> Cloud:
    cloud = scale_sets_made.made(capacity, **properties)
    cloud.advance(cloud.now + 3_600)
    return cloud


def notices(cloud: Cloud) -> dict[str, str]:
    """Pending notices: their ids by instance."""
    return {one.instances[0]: one.id for one in scheduled_events_of(cloud).pending(SET.lower())}


def repairs(cloud: Cloud) -> list[Operation]:
    return [one for one in cloud.operations.values() if one.name == "automaticRepair"]


def view(cloud: Cloud) -> Json:
    found = ask(cloud, "GET", SET, action="instanceView").body
    assert found is not None
    return found


def test_a_delete_waits_for_its_notice_and_is_mandatory_at_the_timeout() -> None:
    cloud = made(2, **NOTICE)
    began = cloud.now
    answer = ask(cloud, "DELETE", vm(1))
    assert scale_set(cloud).body["sku"]["capacity"] == 1
    document = scheduled_events_of(cloud).document(cloud, SET.lower(), "1")
    assert (document["Events"][0]["EventType"], document["Events"][0]["Resources"]) == ("Terminate", ["pool-000_1"])
    cloud.advance(began + 599)
    assert instance(cloud, 1).power == "running"
    ended(cloud, answer)
    assert cloud.now > began + 600
    assert ids(cloud) == [0]


def test_an_approved_delete_goes_at_once_unless_another_is_pending() -> None:
    cloud = made(3, **NOTICE)
    began = cloud.now
    answer = ask(cloud, "POST", SET, {"instanceIds": ["0", "1"]}, "delete")
    pending = notices(cloud)
    scheduled_events_of(cloud).approve(cloud, pending["0"])
    cloud.advance(began + 300)
    assert ids(cloud) == [0, 1, 2], "the unapproved delete of instance 1 blocks that of instance 0"
    scheduled_events_of(cloud).approve(cloud, pending["1"])
    ended(cloud, answer)
    assert cloud.now < began + 599
    assert ids(cloud) == [2]


def test_machines_that_do_not_run_and_operations_that_are_no_delete_get_no_notice() -> None:
    cloud = made(2, **NOTICE)
    for action in ("reimage", "redeploy", "restart", "powerOff"):
        ask(cloud, "POST", vm(0), action=action)
        assert notices(cloud) == {}
        cloud.run_until_idle()
    delete(cloud, vm(0))
    assert ids(cloud) == [1]
    assert notices(cloud) == {}


def test_a_notice_that_only_the_new_model_promises_is_for_machines_that_have_it() -> None:
    cloud = made(2)
    put(cloud, SET, body(2, **NOTICE))
    post(cloud, SET, "manualupgrade", {"instanceIds": ["1"]})
    ask(cloud, "POST", SET, {"instanceIds": ["0", "1"]}, "delete")
    assert list(notices(cloud)) == ["1"]
    cloud.run_until_idle()
    assert ids(cloud) == []


def test_a_whole_set_waits_for_the_notices_of_its_machines() -> None:
    cloud = made(2, **NOTICE)
    began = cloud.now
    answer = ask(cloud, "DELETE", SET)
    assert set(notices(cloud)) == {"0", "1"}
    ended(cloud, answer)
    assert cloud.now > began + 600
    assert cloud.find(SET) is None


@pytest.mark.parametrize(("policy", "left", "capacity"), [("Delete", [0], 1), ("Deallocate", [0, 1], 2)])
def test_a_spot_machine_is_taken_back_by_its_policy(policy: str, left: list[int], capacity: int) -> None:
    cloud = made(2, **SPOT, **{f"{PROFILE}__evictionPolicy": policy})
    assert ask(cloud, "POST", vm(1), action="simulateEviction").status == 204
    document = scheduled_events_of(cloud).document(cloud, SET.lower(), "1")
    assert document["Events"][0]["EventType"] == "Preempt"
    cloud.advance(cloud.now + 29)
    assert instance(cloud, 1).power == "running"
    cloud.advance(cloud.now + 600)
    assert (ids(cloud), scale_set(cloud).body["sku"]["capacity"]) == (left, capacity)
    if policy == "Deallocate":
        assert instance(cloud, 1).power == "deallocated"


def test_a_regular_machine_is_not_taken_back() -> None:
    cloud = made(1)
    with pytest.raises(AzureError, match="not a Spot VM"):
        ask(cloud, "POST", vm(0), action="simulateEviction")
    cloud.events.after(0.0, SET.lower(), "evict", ["0"])
    cloud.advance(cloud.now + 600)
    assert instance(cloud, 0).power == "running"


def test_a_broken_host_is_left_for_good_and_its_disks_are_lost() -> None:
    cloud = made(2)
    one = instance(cloud, 0)
    host, local = one.host, one.local_disks
    cloud.events.after(0.0, SET.lower(), "host_failed", ["0"])
    cloud.advance(cloud.now + 3_600)
    assert one.host != host
    assert (one.local_disks, one.os_disk, one.power) == (local + 1, 1, "running")


@pytest.mark.parametrize(("kind", "moves", "reboots"), [("Freeze", False, False), ("Reboot", False, True), ("Redeploy", True, True)])
def test_maintenance_is_announced_and_may_be_approved(kind: str, moves: bool, reboots: bool) -> None:
    cloud = made(2)
    one = instance(cloud, 1)
    host, ready = one.host, one.ready
    cloud.events.after(0.0, SET.lower(), "maintenance", kind, 900.0, ["1"])
    cloud.step(cloud.now)
    scheduled_events_of(cloud).approve(cloud, notices(cloud)["1"])
    cloud.advance(cloud.now + 800)
    assert (one.host != host, one.ready != ready) == (moves, reboots)


def test_health_is_what_the_application_reports_once_the_guest_is_up() -> None:
    cloud = azure()
    put(cloud, SET, body(1, **WATCHED))
    one = instance(cloud, 0)
    assert health_of(cloud, scale_set(cloud), one) == "Initializing"
    cloud.advance(one.ready)
    assert health_of(cloud, scale_set(cloud), one) == "Healthy"
    set_health(cloud, scale_set(cloud), "0", "Unhealthy")
    found = ask(cloud, "GET", vm(0), action="instanceView").body
    assert found is not None
    assert found["vmHealth"]["status"]["code"] == "HealthState/unhealthy"
    with pytest.raises(AzureError, match="it reports Healthy, Unhealthy, Unknown"):
        set_health(cloud, scale_set(cloud), "0", "Sleepy")
    unwatched = made(1)
    assert health_of(unwatched, scale_set(unwatched), instance(unwatched, 0)) is None


@pytest.mark.parametrize(("action", "left", "os_disk"), [("Replace", [0, 2, 3], 1), ("Reimage", [0, 1, 2], 2), ("Restart", [0, 1, 2], 1)])
def test_an_unhealthy_machine_is_repaired_as_the_policy_says(action: str, left: list[int], os_disk: int) -> None:
    cloud = made(3, **{**REPAIRED, "automaticRepairsPolicy": {"enabled": True, "repairAction": action}})
    set_health(cloud, scale_set(cloud), "1", "Unhealthy")
    cloud.advance(cloud.now + 1_000)
    assert ids(cloud) == left
    assert instance(cloud, left[-2]).os_disk == (os_disk if action == "Reimage" else 1)
    assert [error(one) for one in repairs(cloud)] == [""]
    assert scale_set(cloud).body["sku"]["capacity"] == 3


def test_a_repair_waits_for_the_grace_period_and_leaves_protected_machines_alone() -> None:
    cloud = azure()
    put(cloud, SET, body(2, **REPAIRED))
    began = cloud.now
    put(cloud, vm(1), {"location": "swedencentral", "properties": {"protectionPolicy": {"protectFromScaleIn": True}}})
    cloud.advance(max(one.ready for one in instances_of(scale_set(cloud)).values()))
    for number in ("0", "1"):
        set_health(cloud, scale_set(cloud), number, "Unknown")
    cloud.advance(began + 500)
    assert repairs(cloud) == []
    cloud.advance(began + 3_000)
    assert ids(cloud) == [1, 2]


def test_five_in_a_hundred_are_repaired_at_a_time() -> None:
    cloud = made(60, **REPAIRED)
    for number in range(10):
        set_health(cloud, scale_set(cloud), str(number), "Unhealthy")
    most = 0
    while cloud.step(cloud.now + 100):
        most = max(most, sum(1 for one in repairs(cloud) if one.running))
    assert most == 3
    cloud.advance(cloud.now + 3_000)
    assert len(repairs(cloud)) == 10
    assert len(ids(cloud)) == 60


def test_a_replacement_does_not_wait_for_the_notice_of_the_machine_that_it_replaces() -> None:
    cloud = made(2, **REPAIRED, **NOTICE)
    began = cloud.now
    set_health(cloud, scale_set(cloud), "0", "Unhealthy")
    cloud.advance(began + 400)
    assert ids(cloud) == [0, 1, 2]
    assert instance(cloud, 2).state == "Succeeded"
    cloud.advance(began + 1_200)
    assert ids(cloud) == [1, 2]


def test_repairs_suspend_themselves_when_they_do_not_help_until_they_are_resumed() -> None:
    cloud = made(1, **REPAIRED)
    for _ in range(MAX_CONSECUTIVE_REPAIRS + 1):
        set_health(cloud, scale_set(cloud), str(ids(cloud)[-1]), "Unhealthy")
        cloud.advance(cloud.now + 3_000)
    assert len(repairs(cloud)) == MAX_CONSECUTIVE_REPAIRS
    assert view(cloud)["orchestrationServices"] == [{"serviceName": "AutomaticRepairs", "serviceState": "Suspended"}]
    ask(cloud, "POST", SET, {"serviceName": "AutomaticRepairs", "action": "Resume"}, "setOrchestrationServiceState")
    cloud.advance(cloud.now + 3_000)
    assert len(repairs(cloud)) == MAX_CONSECUTIVE_REPAIRS + 1
    assert view(cloud)["orchestrationServices"][0]["serviceState"] == "Running"


def upgraded(mode: str, count: int, **rolling: Any) -> tuple[Cloud, Json]:
    """A set that is being brought to a new image, and its sent body."""
    policy = {"mode": mode, "rollingUpgradePolicy": {"maxBatchInstancePercent": 40, "pauseTimeBetweenBatches": "PT2M", **rolling}}
    cloud = made(count, **WATCHED, upgradePolicy=policy)
    sent = body(count, **WATCHED, upgradePolicy=policy, **{f"{PROFILE}__storageProfile__imageReference": image("2.0.0")})
    ask(cloud, "PUT", SET, sent)
    return cloud, sent


def test_an_automatic_upgrade_takes_all_machines_at_once() -> None:
    cloud, _ = upgraded("Automatic", 5)
    cloud.advance(cloud.now + 1)
    assert {one.state for one in instances_of(scale_set(cloud)).values()} == {"Updating"}
    cloud.run_until_idle()
    assert {one.os_disk for one in instances_of(scale_set(cloud)).values()} == {2}
