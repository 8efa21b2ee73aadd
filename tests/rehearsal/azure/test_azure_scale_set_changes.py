"""Properties fixed at creation cannot change. Other changes leave machines behind the model or apply at once, and omitted properties are
preserved.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from scale_sets_made import (
    EPHEMERAL,
    GROUP,
    NICS,
    OTHER_SUBNET,
    PROFILE,
    SET,
    STORAGE,
    ask,
    azure,
    body,
    error,
    image,
    ip_configurations,
    nic,
    put,
    refused,
    scale_set,
)

from rehearsal.azure.compute.instances import instances_of
from rehearsal.azure.compute.scale_set_rules import FIXED_PROPERTIES
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json


def changed(sent: Json, path: str, value: Any) -> Json:
    place = sent
    *names, last = path.split(".")
    for name in names:
        place = place[name]
    place[last] = value
    return sent


CHANGES: dict[str, Any] = {
    "zones": ["2"],
    "platformFaultDomainCount": 5,
    "imageReference.publisher": "other",
    "imageReference.offer": "other",
    "osDisk.managedDisk.storageAccountType": "Standard_LRS",
    "osDisk.createOption": "Attach",
    "computerNamePrefix": "other-",
    "adminUsername": "other",
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_fixed_at_creation_cannot_be_changed(name: str) -> None:
    before = {**body(), "zones": ["1"]}
    after = changed(copy.deepcopy(before), FIXED_PROPERTIES[name][0], CHANGES[name])
    found = refused(after, before=before)
    assert (found.status, found.code, found.target) == (409, "PropertyChangeNotAllowed", name)


@pytest.mark.parametrize("value", [None, {"option": "Local", "placement": "CacheDisk"}])
def test_a_machine_keeps_its_kind_of_os_disk(value: Json | None) -> None:
    before = body(size="Standard_D2ads_v6", **{f"{STORAGE}__osDisk": EPHEMERAL})
    after = copy.deepcopy(before)
    disk = after["properties"][PROFILE]["storageProfile"]["osDisk"]
    disk.pop("diffDiskSettings")
    if value is not None:
        disk["diffDiskSettings"] = value
    assert refused(after, before=before).code in ("PropertyChangeNotAllowed", "OperationNotAllowed")


def test_spot_and_placement_groups_cannot_be_changed_into_what_they_were_not() -> None:
    assert refused(body(**{f"{PROFILE}__priority": "Spot"}), before=body()).target == "priority"
    assert refused(body(singlePlacementGroup=True), before=body()).target == "singlePlacementGroup"
    cloud = azure()
    put(cloud, SET, body(singlePlacementGroup=True))
    assert error(put(cloud, SET, body(singlePlacementGroup=False))) == ""
    assert scale_set(cloud).properties["singlePlacementGroup"] is False


def test_the_subnet_changes_within_the_network_alone() -> None:
    other = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/far"
    cloud = azure()
    put(cloud, other, {"location": "swedencentral", "properties": {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]}}})
    put(cloud, f"{other}/subnets/nodes", {"properties": {"addressPrefix": "10.9.0.0/24"}})
    put(cloud, SET, body())
    with pytest.raises(AzureError) as caught:
        ask(cloud, "PUT", SET, body(**{NICS: [nic("nic", True, ip_configurations(2, f"{other}/subnets/nodes"))]}))
    assert (caught.value.code, caught.value.target) == ("PropertyChangeNotAllowed", "subnet")
    assert error(put(cloud, SET, body(**{NICS: [nic("nic", True, ip_configurations(2, OTHER_SUBNET))]}))) == ""


def test_all_subnets_of_a_set_are_of_one_network() -> None:
    cloud = azure()
    other = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/far"
    put(cloud, other, {"location": "swedencentral", "properties": {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]}}})
    put(cloud, f"{other}/subnets/nodes", {"properties": {"addressPrefix": "10.9.0.0/24"}})
    nics = [nic("a", True, ip_configurations(1)), nic("b", False, ip_configurations(1, f"{other}/subnets/nodes"))]
    with pytest.raises(AzureError, match="SubnetsNotInSameVnet"):
        ask(cloud, "PUT", SET, body(**{NICS: nics}))


def test_a_change_that_machines_must_take_leaves_them_behind_the_model_and_others_do_not() -> None:
    cloud = azure()
    put(cloud, SET, body(2))
    put(cloud, SET, {**body(2, overprovision=True, scaleInPolicy={"rules": ["OldestVM"]}), "tags": {"other": "tag"}})
    assert all(one.model == scale_set(cloud).state.model for one in instances_of(scale_set(cloud)).values())
    put(cloud, SET, body(2, **{f"{PROFILE}__osProfile__customData": "bmV3"}))
    assert all(one.model != scale_set(cloud).state.model for one in instances_of(scale_set(cloud)).values())
    put(cloud, SET, body(2))
    assert all(one.model == scale_set(cloud).state.model for one in instances_of(scale_set(cloud)).values())


def test_secrets_are_never_told_and_a_put_that_could_not_read_them_keeps_them() -> None:
    cloud = azure()
    put(cloud, SET, body(1))
    result = ask(cloud, "GET", SET).body
    assert result is not None
    assert "Ym9vdA==" not in json.dumps(result)
    for name in ("provisioningState", "uniqueId", "timeCreated"):
        result["properties"].pop(name)
    result["properties"][PROFILE].pop("timeCreated")
    put(cloud, SET, {key: result[key] for key in ("location", "sku", "tags", "properties")})
    profile = scale_set(cloud).state.models[scale_set(cloud).state.model].profile
    assert profile["osProfile"]["customData"] == "Ym9vdA=="


def test_a_put_without_a_capacity_does_not_scale() -> None:
    cloud = azure()
    put(cloud, SET, body(3))
    sent = body()
    del sent["sku"]["capacity"]
    put(cloud, SET, sent)
    assert scale_set(cloud).body["sku"]["capacity"] == len(instances_of(scale_set(cloud))) == 3


def test_image_versions_change_freely() -> None:
    cloud = azure()
    put(cloud, SET, body(1))
    assert error(put(cloud, SET, body(1, **{f"{STORAGE}__imageReference": image("2.0.0")}))) == ""
