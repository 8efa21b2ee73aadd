"""Calls are counted as Azure publishes it, and turned away in its words; an outage ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal.azure.arm_id import parse
from rehearsal.azure.call_rates import COMPUTE, calls
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.groups import ResourceGroup
from rehearsal.azure.outage import ApiOutage
from rehearsal.azure.resource import Operation, Request, Response
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.scenario import Scenario, begin_scenario
from rehearsal.azure.throttle import Throttle

SUBSCRIPTION, OTHER = "11111111-1111-4111-8111-111111111111", "33333333-3333-4333-8333-333333333333"
SETS = "Microsoft.Compute/virtualMachineScaleSets"
HERE = {"location": "southcentralus", "properties": {}}


class Plain(ResourceType):
    """A resource of a type, with the actions that a test asks for."""

    def __init__(self, resource_type: str) -> None:
        self.type = resource_type
        self.always_global = resource_type == "Microsoft.Network/privateDnsZones"
        self.actions = dict.fromkeys(("restart", "reimage", "delete", "poweroff", "deallocate", "start"), _done)
        self.gets = {"instanceview": _done}


def _done(*_: Any) -> Response:
    return Response(200)


TYPES = (SETS, f"{SETS}/virtualMachines", f"{SETS}/extensions", "Microsoft.Network/virtualNetworks", "Microsoft.Network/privateDnsZones")


def cloud_with(**contents: Any) -> Cloud:
    cloud = Cloud((ResourceGroup(), *map(Plain, TYPES)), subscriptions=[SUBSCRIPTION, OTHER], tenant="t")
    for subscription in (SUBSCRIPTION, OTHER):
        call(cloud, "PUT", f"/subscriptions/{subscription}/resourceGroups/g", {"location": "southcentralus"})
    begin_scenario(cloud, Scenario.model_validate(contents))
    cloud.admission_checks = [Throttle(), ApiOutage()]
    return cloud


def path(name: str, resource_type: str = SETS, subscription: str = SUBSCRIPTION) -> str:
    return f"/subscriptions/{subscription}/resourceGroups/g/providers/{resource_type}/{name}"


def call(cloud: Cloud, method: str, text: str, body: Any = None, action: str = "", principal: str = "somebody") -> Response:
    return cloud.handle(Request(method, parse(text), action, "2024-11-01", body, principal=principal))


def allowed(
    cloud: Cloud, method: str, text: str, body: Any = None, action: str = "", most: int = 3_000, principal: str = "somebody"
) -> tuple[int, AzureError]:
    """Calls that are let through before one is turned away, and the refusal."""
    for count in range(most):
        try:
            call(cloud, method, text, body, action, principal)
        except AzureError as refused:
            if refused.status == 429:
                return count, refused
    raise AssertionError(f"{most} calls were let through")


def test_a_scale_set_takes_twelve_changes_and_four_more_each_minute() -> None:
    cloud = cloud_with()
    call(cloud, "PUT", path("a"), HERE)
    count, refused = allowed(cloud, "PATCH", path("a"), {})
    assert (count, refused.headers["Retry-After"]) == (12, "60")
    cloud.advance(cloud.now + 20.5)
    assert allowed(cloud, "PATCH", path("a"), {})[1].retry_after == 40
    cloud.advance(cloud.now + 39.5)
    assert allowed(cloud, "PATCH", path("a"), {})[0] == 4
    call(cloud, "PUT", path("b"), HERE)
    assert allowed(cloud, "PATCH", path("b"), {})[0] == 12


def test_a_refusal_is_in_the_words_of_microsoft_compute() -> None:
    cloud = cloud_with()
    call(cloud, "PUT", path("a"), HERE)
    _, refused = allowed(cloud, "DELETE", path("a/virtualMachines/0", SETS))
    assert (refused.status, refused.code) == (429, "OperationNotAllowed")
    assert refused.message == "The server rejected the request because too many requests have been received for this subscription."
    (detail,) = refused.details
    assert (detail.code, detail.target) == ("TooManyRequests", "DeleteVMScaleSetVMResource")
    assert json.loads(detail.message) == {
        "operationGroup": "DeleteVMScaleSetVMResource",
        "startTime": "2026-01-01T00:00:00.0000000Z",
        "endTime": "2026-01-01T00:01:00.0000000Z",
        "allowedRequestCount": 12,
        "measuredRequestCount": 13,
    }
    assert refused.headers == {
        "Retry-After": "60",
        "x-ms-ratelimit-remaining-resource": (
            "Microsoft.Compute/DeleteVMScaleSetVMSubscriptionMaximum;1488,Microsoft.Compute/DeleteVMScaleSetVMResource;0"
        ),
        "x-ms-ratelimit-remaining-subscription-deletes": "187",
        "x-ms-ratelimit-remaining-subscription-global-deletes": "2987",
    }


def test_every_answer_says_what_is_left() -> None:
    cloud = cloud_with()
    created = call(cloud, "PUT", path("a"), HERE)
    assert created.headers["x-ms-ratelimit-remaining-subscription-writes"] == "199"
    assert created.headers["x-ms-ratelimit-remaining-subscription-global-writes"] == "2999"
    assert created.headers["x-ms-ratelimit-remaining-resource"] == (
        "Microsoft.Compute/PutVMScaleSetSubscriptionMaximum;374,Microsoft.Compute/PutVMScaleSetResource;11"
    )
    call(cloud, "GET", path("a"))
    read = call(cloud, "GET", path("a"))
    assert read.headers["x-ms-ratelimit-remaining-subscription-reads"] == "248"
    assert read.headers["x-ms-ratelimit-remaining-subscription-global-reads"] == "3748"
    assert read.headers["x-ms-ratelimit-remaining-resource"] == (
        "Microsoft.Compute/LowCostGetVMScaleSetSubscriptionMaximum;2398,Microsoft.Compute/LowCostGetVMScaleSetResource;34"
    )


@pytest.mark.parametrize(
    ("method", "action", "wanted"),
    [
        ("GET", "", 36),
        ("GET", "instanceView", 30),
        ("POST", "deallocate", 12),
        ("POST", "delete", 12),
        ("POST", "powerOff", 525),
        ("POST", "reimage", 1_500),
        ("POST", "restart", 1_500),
    ],
)
def test_calls_to_one_scale_set_are_bounded_as_in_the_table(method: str, action: str, wanted: int) -> None:
    cloud = cloud_with(throttling={"arm": 100})
    call(cloud, "PUT", path("a"), HERE)
    assert allowed(cloud, method, path("a"), None, action)[0] == wanted


def test_new_scale_sets_are_bounded_by_subscription_and_by_location() -> None:
    cloud = cloud_with(throttling={"arm": 100})
    for number in range(375):
        call(cloud, "PUT", path(f"set-{number}"), HERE)
    with pytest.raises(AzureError, match="too many requests"):
        call(cloud, "PUT", path("one-more"), HERE)
    call(cloud, "PUT", path("elsewhere"), {"location": "Sweden Central", "properties": {}})
    call(cloud, "PUT", path("another", subscription=OTHER), HERE)
    cloud.advance(cloud.now + 60)
    for number in range(125):
        call(cloud, "PUT", path(f"later-{number}"), HERE)
    with pytest.raises(AzureError, match="too many requests"):
        call(cloud, "PUT", path("one-more"), HERE)


def test_an_extension_counts_for_the_scale_set_that_it_is_on() -> None:
    cloud = cloud_with()
    call(cloud, "PUT", path("a"), HERE)
    for number in range(12):
        call(cloud, "PUT", path(f"a/extensions/e{number}", SETS), {"properties": {}})
    with pytest.raises(AzureError, match="too many requests"):
        call(cloud, "PATCH", path("a"), {})


def test_the_list_of_scale_sets_counts_for_the_subscription_alone() -> None:
    cloud = cloud_with(throttling={"arm": 100})
    call(cloud, "PUT", path("a"), HERE)
    request = Request("GET", parse(f"/subscriptions/{SUBSCRIPTION}"))
    for _ in range(1_080):
        list(cloud.handle_list(request, SETS))
    with pytest.raises(AzureError, match="too many requests"):
        cloud.handle_list(request, SETS)


def test_the_network_takes_1000_writes_and_private_dns_500_reads_in_five_minutes() -> None:
    cloud = cloud_with(throttling={"arm": 100})
    network, zone = path("v", "Microsoft.Network/virtualNetworks"), path("z", "Microsoft.Network/privateDnsZones")
    call(cloud, "PUT", zone, {"location": "global", "properties": {}})
    cloud.advance(cloud.now + 100)
    count, refused = allowed(cloud, "PUT", network, HERE)
    assert (count, refused.code, refused.retry_after) == (1_000, "TooManyRequests", 300)
    assert allowed(cloud, "GET", zone)[0] == 500
    assert allowed(cloud, "GET", network, most=10_001)[0] == 10_000
    cloud.advance(cloud.now + 300)
    assert allowed(cloud, "PUT", network, HERE)[0] == 1_000


NETWORKS = path("v", "Microsoft.Network/virtualNetworks")


@pytest.mark.parametrize(("method", "capacity", "refill"), [("GET", 250, 25), ("PUT", 200, 10), ("DELETE", 200, 10)])
def test_resource_manager_refills_its_buckets_each_second(method: str, capacity: int, refill: int) -> None:
    cloud = cloud_with(throttling={"network": 100})
    call(cloud, "PUT", NETWORKS, HERE)
    cloud.advance(cloud.now + 60)
    count, refused = allowed(cloud, method, NETWORKS, HERE)
    assert (count, refused.code, refused.headers["Retry-After"]) == (capacity, "SubscriptionRequestsThrottled", "1")
    word = {"GET": "read", "PUT": "write", "DELETE": "delete"}[method]
    assert refused.message == (
        f"Number of '{word}' requests for subscription '{SUBSCRIPTION}' actor 'somebody' exceeded. Please try again after '1' seconds "
        "after additional tokens are available. Refer to https://aka.ms/arm-throttling for additional information."
    )
    cloud.advance(cloud.now + 3)
    assert allowed(cloud, method, NETWORKS, HERE)[0] == 3 * refill
    cloud.advance(cloud.now + 60)
    assert allowed(cloud, method, NETWORKS, HERE)[0] == capacity


def test_each_principal_and_operation_has_its_own_bucket_and_all_principals_fifteen_times_as_much() -> None:
    cloud = cloud_with(throttling={"network": 100})
    cloud.advance(cloud.now + 60)
    refusals = [allowed(cloud, "PUT", NETWORKS, HERE, principal=f"principal {number}") for number in range(17)]
    assert [count for count, _ in refusals] == [200] * 15 + [0, 0]
    headers = refusals[-1][1].headers
    assert headers["x-ms-ratelimit-remaining-subscription-writes"] == "200"
    assert headers["x-ms-ratelimit-remaining-subscription-global-writes"] == "0"
    call(cloud, "GET", NETWORKS)
    call(cloud, "PUT", path("v", "Microsoft.Network/virtualNetworks", OTHER), HERE)


def test_reads_outside_a_subscription_count_for_the_tenant() -> None:
    cloud = cloud_with()
    throttle: Any = cloud.admission_checks[0]
    assert throttle.admit_read(cloud, "", "somebody") == {"x-ms-ratelimit-remaining-tenant-reads": "249"}
    inside = throttle.admit_read(cloud, SUBSCRIPTION, "somebody")
    assert inside["x-ms-ratelimit-remaining-subscription-reads"] == "249"
    for _ in range(249):
        throttle.admit_read(cloud, "", "somebody")
    with pytest.raises(AzureError, match="'read' requests for tenant 't'"):
        throttle.admit_read(cloud, "", "somebody")
    throttle.admit_read(cloud, "", "somebody else")


def test_polling_an_operation_of_compute_is_bounded_too() -> None:
    cloud = cloud_with()
    throttle: Any = cloud.admission_checks[0]
    operation = Operation("op", path("a").lower(), "put", "southcentralus", cloud.now)
    headers = [throttle.admit_poll(cloud, operation, SUBSCRIPTION, "somebody") for _ in range(45)]
    assert headers[-1]["x-ms-ratelimit-remaining-resource"].endswith("Microsoft.Compute/GetOperationResource;0")
    with pytest.raises(AzureError, match="too many requests"):
        throttle.admit_poll(cloud, operation, SUBSCRIPTION, "somebody")
    network = Operation("op", path("v", "Microsoft.Network/virtualNetworks").lower(), "put", "southcentralus", cloud.now)
    for _ in range(100):
        throttle.admit_poll(cloud, network, SUBSCRIPTION, "somebody")


def test_a_scenario_scales_the_rates_or_lets_everything_through() -> None:
    double = cloud_with(throttling={"compute": 2})
    call(double, "PUT", path("a"), HERE)
    assert allowed(double, "PATCH", path("a"), {})[0] == 24
    free = cloud_with(throttling={"enabled": False})
    call(free, "PUT", path("a"), HERE)
    assert [call(free, "PATCH", path("a"), {}).headers for _ in range(100)] == [{}] * 100


def test_saved_buckets_are_as_full_as_they_were() -> None:
    cloud = cloud_with()
    call(cloud, "PUT", path("a"), HERE)
    for _ in range(10):
        call(cloud, "PATCH", path("a"), {})
    cloud.advance(cloud.now + 30)
    saved: Any = json.loads(json.dumps(cloud.admission_checks[0].dump()))  # type: ignore[attr-defined]
    cloud.admission_checks[0] = Throttle()
    cloud.admission_checks[0].load(saved)
    count, refused = allowed(cloud, "PATCH", path("a"), {})
    assert (count, refused.retry_after) == (2, 30)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 200))
def test_a_client_that_waits_as_long_as_it_is_told_is_let_through(calls: int) -> None:
    cloud = cloud_with()
    call(cloud, "PUT", path("a"), HERE)
    waited = 0.0
    for _ in range(calls):
        try:
            call(cloud, "PATCH", path("a"), {})
        except AzureError as refused:
            wait = refused.retry_after or 0
            waited += wait
            cloud.advance(cloud.now + wait)
            call(cloud, "PATCH", path("a"), {})
    assert waited == 60 * max(0, -(-(calls - 12) // 4))


def test_no_call_is_of_two_policies() -> None:
    assert len(list(calls())) == len(COMPUTE)
    assert COMPUTE["microsoft.compute/virtualmachinescalesets", "update"][0].name == "UpdateVMScaleSet"


def test_an_outage_fails_the_services_that_it_names_until_it_ends() -> None:
    cloud = cloud_with(outages=({"starts": "1h", "ends": "2h", "services": ("Microsoft.Compute",)},))
    call(cloud, "PUT", path("a"), HERE)
    cloud.advance(cloud.now + 3_600)
    with pytest.raises(AzureError) as failed:
        call(cloud, "GET", path("a"))
    assert (failed.value.status, failed.value.code, failed.value.retry_after) == (503, "ServiceUnavailable", 30)
    call(cloud, "PUT", path("v", "Microsoft.Network/virtualNetworks"), HERE)
    cloud.advance(cloud.now + 3_600)
    call(cloud, "GET", path("a"))


def test_an_outage_of_a_location_leaves_the_others_alone_and_a_partial_one_fails_its_share() -> None:
    outages = ({"location": "southcentralus", "status": 500, "rate": 0.25},)
    cloud = cloud_with(outages=outages, throttling={"enabled": False})
    call(cloud, "PUT", path("b"), {"location": "swedencentral", "properties": {}})
    network = path("v", "Microsoft.Network/virtualNetworks")
    failed = sum(_fails(cloud, network) for _ in range(1_000))
    assert 200 < failed < 300
    assert not any(_fails(cloud, path("b"), "swedencentral") for _ in range(100))


def _fails(cloud: Cloud, text: str, location: str = "southcentralus") -> bool:
    try:
        call(cloud, "PUT", text, {"location": location, "properties": {}})
    except AzureError as error:
        return (error.status, error.code) == (500, "InternalServerError")
    return False
