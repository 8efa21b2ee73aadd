"""Capacity reservations hold quota and hardware; groups know what is in them and stay while they are needed."""

from __future__ import annotations

from typing import Any

import pytest
from published import answer_faults, needs_published_types

from rehearsal.azure.arm_id import parse
from rehearsal.azure.capacity import capacity_of
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.placement import PLACEMENT_GROUPS_PER_GROUP
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.resource import Request, Response
from rehearsal.azure.scenario import AllocationFailure, Grant, Quotas, Scenario

SUBSCRIPTION = "11111111-1111-4111-8111-111111111111"
BASE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/g"
GROUP = f"{BASE}/providers/Microsoft.Compute/capacityReservationGroups/reserved"
RESERVATION = f"{GROUP}/capacityReservations/h100"
NEAR = f"{BASE}/providers/Microsoft.Compute/proximityPlacementGroups/near"
H100 = "Standard_ND96isr_H100_v5"


def cloud_with(scenario: Scenario) -> Cloud:
    cloud = new_cloud([SUBSCRIPTION], "t", scenario=scenario)
    put(cloud, BASE, {"location": "southcentralus"})
    put(cloud, GROUP, {"location": "southcentralus", "zones": ["1", "2"]})
    return cloud


@pytest.fixture
def cloud() -> Cloud:
    return cloud_with(Scenario(quotas=Quotas(granted=(Grant(family="standardNDSH100v5Family", vcpus=960),))))


def put(cloud: Cloud, path: str, body: Any) -> Response:
    answer = cloud.handle(Request("PUT", parse(path), body=body))
    cloud.run_until_idle()
    return answer


def get(cloud: Cloud, path: str, **query: str) -> Any:
    return cloud.handle(Request("GET", parse(path), query={key.replace("_", "$"): value for key, value in query.items()})).body


def delete(cloud: Cloud, path: str) -> None:
    cloud.handle(Request("DELETE", parse(path)))
    cloud.run_until_idle()


def reservation(machines: int, **more: Any) -> dict[str, Any]:
    return {"location": "southcentralus", "sku": {"name": H100, "capacity": machines}, "zones": ["1"], **more}


def used(cloud: Cloud) -> int:
    rows = capacity_of(cloud).usages(cloud, SUBSCRIPTION, "southcentralus")
    return next(int(row["currentValue"]) for row in rows if row["name"]["value"] == "standardNDSH100v5Family")


def draw_on_it(cloud: Cloud, machines: int) -> None:
    capacity_of(cloud).reserve(
        cloud, subscription=SUBSCRIPTION, location="southcentralus", size=H100, spot=False, machines=machines, group=GROUP, zone="1"
    )


def test_a_reservation_takes_its_quota_and_gives_it_back(cloud: Cloud) -> None:
    put(cloud, RESERVATION, reservation(4))
    assert used(cloud) == 384
    put(cloud, RESERVATION, reservation(6))
    draw_on_it(cloud, 6)
    assert used(cloud) == 576
    capacity_of(cloud).release(
        cloud, subscription=SUBSCRIPTION, location="southcentralus", size=H100, spot=False, machines=6, group=GROUP, zone="1"
    )
    put(cloud, RESERVATION, reservation(1))
    assert used(cloud) == 96
    delete(cloud, RESERVATION)
    assert used(cloud) == 0


def test_a_reservation_beyond_the_quota_changes_nothing(cloud: Cloud) -> None:
    put(cloud, RESERVATION, reservation(9))
    with pytest.raises(AzureError, match="approved standardNDSH100v5Family Cores quota"):
        put(cloud, RESERVATION, reservation(11))
    assert get(cloud, RESERVATION)["sku"]["capacity"] == 9
    assert used(cloud) == 864


def test_a_reservation_for_which_there_is_no_hardware_does_not_come_to_be() -> None:
    cloud = cloud_with(Scenario(allocation_failures=(AllocationFailure(rate=1, zone="1"),)))
    with pytest.raises(AzureError) as failed:
        put(cloud, RESERVATION, reservation(1))
    assert failed.value.code == "ZonalAllocationFailed"
    assert cloud.find(RESERVATION) is None
    put(cloud, RESERVATION, reservation(1, zones=["2"]))


def test_a_group_tells_of_its_reservations_and_goes_after_them(cloud: Cloud) -> None:
    assert get(cloud, GROUP)["properties"] == {"capacityReservations": [], "virtualMachinesAssociated": []}
    put(cloud, RESERVATION, reservation(2))
    result = get(cloud, GROUP, _expand="instanceView")["properties"]
    assert result["capacityReservations"] == [{"id": RESERVATION}]
    (view,) = result["instanceView"]["capacityReservations"]
    assert (view["name"], view["utilizationInfo"]) == ("h100", {"currentCapacity": 2, "virtualMachinesAllocated": []})
    assert view["statuses"][0]["code"] == "ProvisioningState/succeeded"
    with pytest.raises(AzureError, match="cannot be deleted while it holds h100"):
        delete(cloud, GROUP)
    delete(cloud, RESERVATION)
    delete(cloud, GROUP)
    assert cloud.find(GROUP) is None


def test_a_reservation_that_machines_draw_on_stays(cloud: Cloud) -> None:
    put(cloud, RESERVATION, reservation(2))
    draw_on_it(cloud, 1)
    with pytest.raises(AzureError, match="while 1 virtual machines are associated"):
        delete(cloud, RESERVATION)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (reservation(1, sku={"name": H100}), "InvalidParameter"),
        (reservation(-1), "InvalidParameter"),
        (reservation(1, sku={"name": "Standard_X", "capacity": 1}), "SkuNotAvailable"),
        (reservation(1, zones=["3"]), "InvalidParameter"),
        (reservation(1, zones=["1", "2"]), "InvalidParameter"),
        ({"sku": {"name": H100, "capacity": 1}}, "LocationRequired"),
    ],
)
def test_a_reservation_that_could_not_be_meant_is_refused(cloud: Cloud, body: Any, code: str) -> None:
    with pytest.raises(AzureError) as refused:
        put(cloud, RESERVATION, body)
    assert refused.value.code == code
    assert used(cloud) == 0


@pytest.mark.parametrize(
    ("path", "first", "second"),
    [
        (RESERVATION, reservation(1), reservation(1, zones=["2"])),
        (RESERVATION, reservation(1), reservation(1, sku={"name": "Standard_D2s_v5", "capacity": 1})),
        (GROUP, {"location": "southcentralus", "zones": ["1", "2"]}, {"location": "southcentralus", "zones": ["1"]}),
        (NEAR, {"location": "southcentralus", "zones": ["1"]}, {"location": "southcentralus", "zones": ["2"]}),
    ],
)
def test_what_azure_fixes_at_creation_cannot_be_changed(cloud: Cloud, path: str, first: Any, second: Any) -> None:
    put(cloud, path, first)
    with pytest.raises(AzureError) as refused:
        put(cloud, path, second)
    assert refused.value.code == "PropertyChangeNotAllowed"


def test_a_placement_group_has_its_default_and_no_state(cloud: Cloud) -> None:
    put(cloud, NEAR, {"location": "southcentralus", "properties": {"intent": {"vmSizes": [H100]}}})
    assert get(cloud, NEAR) == {
        "id": NEAR,
        "name": "near",
        "type": "Microsoft.Compute/proximityPlacementGroups",
        "location": "southcentralus",
        "properties": {"proximityPlacementGroupType": "Standard", "intent": {"vmSizes": [H100]}},
    }
    with pytest.raises(AzureError, match="none of Standard, Ultra"):
        put(cloud, NEAR, {"location": "southcentralus", "properties": {"proximityPlacementGroupType": "Near"}})


def test_a_resource_group_holds_800_placement_groups(cloud: Cloud) -> None:
    cloud.admission_checks = []
    for number in range(PLACEMENT_GROUPS_PER_GROUP):
        put(cloud, f"{NEAR}{number}", {"location": "southcentralus"})
    with pytest.raises(AzureError, match="holds 800"):
        put(cloud, NEAR, {"location": "southcentralus"})
    put(cloud, f"{NEAR}0", {"location": "southcentralus", "tags": {"a": "b"}})


@needs_published_types
@pytest.mark.parametrize("query", [{}, {"_expand": "instanceView"}])
def test_what_is_answered_fits_azures_published_types(cloud: Cloud, query: dict[str, str]) -> None:
    put(cloud, RESERVATION, reservation(2, tags={"a": "b"}))
    put(cloud, NEAR, {"location": "southcentralus", "zones": ["1"]})
    for path in (GROUP, RESERVATION, NEAR):
        assert answer_faults(parse(path).type, "2024-11-01", get(cloud, path, **query)) == []
