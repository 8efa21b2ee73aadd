"""Machines are told as Azure tells them, and an approved delete waits for the others, as it does on Azure."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.scheduled_events import ScheduledEvents, scheduled_events_of

SUBSCRIPTION = "11111111-1111-4111-8111-111111111111"
SCALE_SETS = "Microsoft.Compute/virtualMachineScaleSets"


class Told(ResourceType):
    """A scale set that notes what it is told."""

    type = SCALE_SETS

    def event(self, cloud: Cloud, resource: Resource, name: str, args: tuple[Any, ...]) -> None:
        _, event_type, instances, how = args
        resource.state.append((cloud.now, name, event_type, tuple(instances), how))


def put(cloud: Cloud, name: str, **body: Json) -> str:
    arm_id: ArmId = parse(f"/subscriptions/{SUBSCRIPTION}/resourceGroups/g/providers/{SCALE_SETS}/{name}")
    cloud.resources[arm_id.key] = Resource(arm_id, {"properties": {}, **body}, {}, "somebody", cloud.now, cloud.now, state=[])
    return arm_id.key


@pytest.fixture
def cloud() -> Cloud:
    return Cloud((Told(),), subscriptions=[SUBSCRIPTION], tenant="22222222-2222-4222-8222-222222222222")


def announce(cloud: Cloud, key: str, event_type: Any, minutes: float, *instances: str) -> str:
    return scheduled_events_of(cloud).announce(
        cloud, key=key, instances=instances, event_type=event_type, not_before=cloud.now + 60 * minutes
    )


def reported_events(cloud: Cloud, key: str, start: float) -> list[tuple[float, str, str]]:
    """Minute, instances and how each event began, after an hour."""
    cloud.advance(start + 3_600)
    return [((at - start) / 60, ",".join(instances), how) for at, _, _, instances, how in cloud.resources[key].state]


def test_a_document_is_as_the_metadata_service_answers_it(cloud: Cloud) -> None:
    key = put(cloud, "workers")
    assert scheduled_events_of(cloud).document(cloud, key, "0") == {"DocumentIncarnation": 1, "Events": []}
    event_id = announce(cloud, key, "Freeze", 15, "0", "7")
    event = {
        "EventId": event_id.upper(),
        "EventType": "Freeze",
        "ResourceType": "VirtualMachine",
        "Resources": ["workers_0", "workers_7"],
        "EventStatus": "Scheduled",
        "NotBefore": "Thu, 01 Jan 2026 00:15:00 GMT",
        "Description": "Virtual machine is being paused because of a memory-preserving Live Migration operation.",
        "EventSource": "Platform",
        "DurationInSeconds": 9,
    }
    assert scheduled_events_of(cloud).document(cloud, key, "3") == {"DocumentIncarnation": 2, "Events": [event]}
    scheduled_events_of(cloud).approve(cloud, event_id.upper())
    started = {**event, "EventStatus": "Started", "NotBefore": ""}
    assert scheduled_events_of(cloud).document(cloud, key, "0") == {"DocumentIncarnation": 3, "Events": [started]}
    cloud.advance(cloud.now + 601)
    assert scheduled_events_of(cloud).document(cloud, key, "0") == {"DocumentIncarnation": 4, "Events": []}


def test_an_event_begins_when_it_is_approved_or_when_its_time_comes_and_never_twice(cloud: Cloud) -> None:
    key, start = put(cloud, "workers"), cloud.now
    approved = announce(cloud, key, "Reboot", 15, "0")
    announce(cloud, key, "Redeploy", 10, "1")
    cloud.advance(start + 120)
    scheduled_events_of(cloud).approve(cloud, approved)
    scheduled_events_of(cloud).approve(cloud, approved)
    assert reported_events(cloud, key, start) == [(2, "0", "approved"), (10, "1", "timeout")]


def test_a_moment_that_is_past_begins_at_once_as_a_broken_host_does(cloud: Cloud) -> None:
    key, start = put(cloud, "workers"), cloud.now
    announce(cloud, key, "Reboot", 0, "4")
    assert scheduled_events_of(cloud).document(cloud, key, "4")["Events"][0]["EventStatus"] == "Started"
    assert reported_events(cloud, key, start) == [(0, "4", "timeout")]


def test_a_pending_delete_without_approval_holds_back_an_approved_one(cloud: Cloud) -> None:
    key, start = put(cloud, "workers"), cloud.now
    first, second = announce(cloud, key, "Terminate", 15, "1"), announce(cloud, key, "Terminate", 15, "2")
    scheduled_events_of(cloud).approve(cloud, second)
    cloud.advance(start + 300)
    assert cloud.resources[key].state == []
    scheduled_events_of(cloud).approve(cloud, first)
    assert reported_events(cloud, key, start) == [(5, "1", "approved"), (5, "2", "approved")]


def test_where_one_delete_is_never_approved_all_of_one_moment_wait_for_the_timeout(cloud: Cloud) -> None:
    key, start = put(cloud, "workers"), cloud.now
    ids = [announce(cloud, key, "Terminate", 5, str(number)) for number in range(3)]
    for event_id in ids[1:]:
        scheduled_events_of(cloud).approve(cloud, event_id)
    history = reported_events(cloud, key, start)
    assert [(at, instance) for at, instance, _ in history] == [(5, "0"), (5, "1"), (5, "2")]


def test_a_later_delete_that_is_approved_goes_when_the_earlier_one_times_out(cloud: Cloud) -> None:
    key, start = put(cloud, "workers"), cloud.now
    announce(cloud, key, "Terminate", 5, "1")
    cloud.advance(start + 120)
    scheduled_events_of(cloud).approve(cloud, announce(cloud, key, "Terminate", 15, "2"))
    assert reported_events(cloud, key, start) == [(5, "1", "timeout"), (5, "2", "approved")]


def test_deletes_of_another_scale_set_hold_nothing_back(cloud: Cloud) -> None:
    one, other, start = put(cloud, "one"), put(cloud, "other"), cloud.now
    announce(cloud, one, "Terminate", 5, "1")
    scheduled_events_of(cloud).approve(cloud, announce(cloud, other, "Terminate", 5, "1"))
    assert reported_events(cloud, other, start) == [(0, "1", "approved")]


def test_a_reboot_is_not_held_back_by_a_delete(cloud: Cloud) -> None:
    key, start = put(cloud, "workers"), cloud.now
    announce(cloud, key, "Terminate", 5, "1")
    scheduled_events_of(cloud).approve(cloud, announce(cloud, key, "Reboot", 15, "2"))
    assert reported_events(cloud, key, start)[0] == (0, "2", "approved")


def test_an_instance_that_is_gone_holds_nothing_back(cloud: Cloud) -> None:
    key, start = put(cloud, "workers"), cloud.now
    announce(cloud, key, "Terminate", 15, "1")
    scheduled_events_of(cloud).approve(cloud, announce(cloud, key, "Terminate", 15, "2"))
    scheduled_events_of(cloud).withdraw(cloud, key, ["1"])
    assert reported_events(cloud, key, start) == [(0, "2", "approved")]


def test_gpu_machines_in_one_fault_domain_see_their_own_events_alone(cloud: Cloud) -> None:
    gpu = {"sku": {"name": "Standard_ND96isr_H100_v5"}, "properties": {"platformFaultDomainCount": 1}}
    spread = {"sku": {"name": "Standard_ND96isr_H100_v5"}, "properties": {"platformFaultDomainCount": 5}}
    cpu = {"sku": {"name": "Standard_D2s_v5"}, "properties": {"platformFaultDomainCount": 1}}
    seen = []
    for number, body in enumerate((gpu, spread, cpu)):
        key = put(cloud, f"set-{number}", **body)
        announce(cloud, key, "Freeze", 15, "0")
        seen.append([len(scheduled_events_of(cloud).document(cloud, key, instance)["Events"]) for instance in ("0", "1")])
    assert seen == [[1, 0], [1, 1], [1, 1]]


def test_an_unknown_event_cannot_be_approved_and_a_forgotten_set_is_told_nothing(cloud: Cloud) -> None:
    key = put(cloud, "workers")
    event_id = announce(cloud, key, "Reboot", 15, "0")
    scheduled_events_of(cloud).forget(key)
    with pytest.raises(AzureError) as refused:
        scheduled_events_of(cloud).approve(cloud, event_id)
    assert refused.value.status == 400
    assert reported_events(cloud, key, cloud.now) == []


def test_saved_events_begin_as_they_would_have(cloud: Cloud) -> None:
    key, start = put(cloud, "workers"), cloud.now
    announce(cloud, key, "Terminate", 5, "1")
    scheduled_events_of(cloud).approve(cloud, announce(cloud, key, "Terminate", 15, "2"))
    saved = scheduled_events_of(cloud).dump()
    cloud.services["scheduled_events"] = ScheduledEvents()
    scheduled_events_of(cloud).load(saved)
    assert scheduled_events_of(cloud).dump() == saved
    assert reported_events(cloud, key, start) == [(5, "1", "timeout"), (5, "2", "approved")]
