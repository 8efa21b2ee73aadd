"""Requests reach Azure so many at once, are made again as azure-native makes them, and their ends are heard when it looks."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rehearsal.azure.arm_id import parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.resource import Request
from rehearsal.azure.resource_type import ResourceType
from rehearsal.local_up.request_scheduler import Failure, RequestScheduler

SUBSCRIPTION = "11111111-1111-1111-1111-111111111111"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/fleet"


class Busy:
    """A gate that turns the first calls away."""

    def __init__(self, times: int, status: int = 429, retry_after: str | None = None) -> None:
        self.left, self.status, self.retry_after = times, status, retry_after
        self.moments: list[float] = []

    def admit(self, cloud: Cloud, _request: Request, _kind: ResourceType, /) -> Mapping[str, str]:
        self.moments.append(cloud.now)
        if self.left:
            self.left -= 1
            headers = {"Retry-After": self.retry_after} if self.retry_after else None
            raise AzureError(self.status, "Busy", "Come back later.", headers=headers)
        return {}


def azure() -> Cloud:
    return new_cloud([SUBSCRIPTION], "22222222-2222-2222-2222-222222222222")


def sent(cloud: Cloud, *requests: Request, parallel: int = 64) -> tuple[RequestScheduler, list[tuple[str, Failure | None, float]]]:
    caller = RequestScheduler(cloud, parallel)
    heard: list[tuple[str, Failure | None, float]] = []
    for request in requests:
        caller.send(request, lambda failure, name=request.id.name: heard.append((name, failure, cloud.now)))  # type: ignore[misc]
    assert heard == [], "nobody hears before send has returned"
    caller.finish()
    return caller, heard


def group(name: str = "fleet") -> Request:
    arm_id = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}"
    return Request("PUT", parse(arm_id), body={"location": "swedencentral"}, principal="somebody")


def network(name: str) -> Request:
    body = {"location": "swedencentral", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}}
    return Request("PUT", parse(f"{GROUP}/providers/Microsoft.Network/virtualNetworks/{name}"), body=body, principal="somebody")


def test_a_call_that_is_turned_away_is_made_again_after_the_time_asked_for() -> None:
    cloud, gate = azure(), Busy(2, retry_after="17")
    cloud.admission_checks.append(gate)
    caller, heard = sent(cloud, group())
    assert [moment - gate.moments[0] for moment in gate.moments] == [0, 17, 34]
    assert [(name, failure) for name, failure, _ in heard] == [("fleet", None)]
    assert caller.retried == {"Busy": 2}


def test_without_a_time_the_pauses_grow_as_azure_natives_do() -> None:
    cloud, gate = azure(), Busy(3, status=503)
    cloud.admission_checks.append(gate)
    sent(cloud, group())
    assert [moment - gate.moments[0] for moment in gate.moments] == [0, 20, 80, 200]


@pytest.mark.parametrize("gate", [Busy(4, retry_after="1"), Busy(1, retry_after="121"), Busy(1, status=409)])
def test_a_fourth_refusal_a_long_wait_and_a_plain_conflict_are_the_last_word(gate: Busy) -> None:
    cloud = azure()
    cloud.admission_checks.append(gate)
    _, heard = sent(cloud, group())
    assert [(name, failure and failure.code) for name, failure, _ in heard] == [("fleet", "Busy")]


def test_no_more_operations_are_open_than_allowed() -> None:
    cloud = azure()
    sent(cloud, group())
    began = cloud.now
    _, all_at_once = sent(cloud, *(network(f"net-{number}") for number in range(4)))
    together = cloud.now - began
    _, one_by_one = sent(cloud, *(network(f"more-{number}") for number in range(4)), parallel=1)
    assert [name for name, failure, _ in one_by_one if failure is None] == [f"more-{number}" for number in range(4)]
    assert all(failure is None for _, failure, _ in all_at_once)
    moments = [moment for _, _, moment in one_by_one]
    assert moments == sorted(moments)
    assert moments[-1] - moments[0] >= 3 * 10 - 1e-6 > 0
    assert together <= 20


def test_the_end_of_an_operation_is_heard_at_the_next_look() -> None:
    cloud = azure()
    sent(cloud, group())
    began = cloud.now
    _, heard = sent(cloud, network("net"))
    ((_, _, moment),) = heard
    assert (moment - began) % 10 == pytest.approx(0, abs=1e-6)


def test_a_caller_for_whom_nobody_waits_lets_no_time_pass() -> None:
    cloud = azure()
    cloud.events.after(60, "nobody", "nothing")
    assert not RequestScheduler(cloud).advance()
    assert len(cloud.events) == 1
