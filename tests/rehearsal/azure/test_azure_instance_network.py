"""Interfaces, ipConfigurations and public addresses of a scale set's instances are read by set, by instance and by id."""

from __future__ import annotations

import json

import pytest
from azure.mgmt.network import models
from azure.mgmt.network._utils.model_base import _deserialize
from scale_sets_made import NICS, SET, SUBNET, ask, azure, body, delete, nic, post, put, vm

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.persistence import dump, empty_cloud, load
from rehearsal.azure.resource import Json

PUBLIC = {"name": "pub", "properties": {"idleTimeoutInMinutes": 15, "dnsSettings": {"domainNameLabel": "fleet"}}}
KINDS = ("networkInterfaces", "networkInterfaces/ipConfigurations", "networkInterfaces/ipConfigurations/publicIPAddresses")


def with_public(number: int) -> Json:
    """A scale set of two machines, with public addresses at so many of their two ipConfigurations."""
    items = [
        {
            "name": f"ip{one}",
            "properties": {
                "primary": one == 0,
                "subnet": {"id": SUBNET},
                **({"publicIPAddressConfiguration": PUBLIC} if one < number else {}),
            },
        }
        for one in range(2)
    ]
    return body(2, **{NICS: [nic("nic", True, items)]})


def listed(cloud: Cloud, scope: str, kind: str) -> list[Json]:
    return [one.body for one in cloud.list(scope, f"Microsoft.Compute/virtualMachineScaleSets/{kind}")]


def public_ips(cloud: Cloud) -> list[str]:
    return [one["properties"]["ipAddress"] for one in listed(cloud, SET, "publicIPAddresses")]


def test_the_parts_of_instances_are_listed_and_found_by_id() -> None:
    cloud = azure()
    put(cloud, SET, with_public(1))
    found = {kind: listed(cloud, vm(1), f"virtualMachines/{kind}") for kind in KINDS}
    assert [len(found[kind]) for kind in KINDS] == [1, 2, 1]
    assert [len(listed(cloud, SET, kind)) for kind in ("networkInterfaces", "publicIPAddresses")] == [2, 2]
    for bodies in found.values():
        for one in bodies:
            assert ask(cloud, "GET", one["id"].upper()).body == one
    interface, configuration, address = (found[kind][0] for kind in KINDS)
    assert configuration["properties"]["publicIPAddress"]["id"] == address["id"]
    assert listed(cloud, configuration["id"], f"virtualMachines/{KINDS[2]}") == [address]
    assert listed(cloud, interface["id"].replace("/nic", "/other"), f"virtualMachines/{KINDS[1]}") == []
    with pytest.raises(AzureError, match="MethodNotAllowed"):
        ask(cloud, "DELETE", address["id"])
    read = _deserialize(models.PublicIPAddress, address)
    assert (read.ip_address, read.dns_settings.domain_name_label) == (address["properties"]["ipAddress"], "vm1.fleet")


def test_public_addresses_live_as_long_as_their_machines_and_follow_the_model() -> None:
    cloud = azure()
    put(cloud, SET, with_public(1))
    first = public_ips(cloud)
    assert len(set(first)) == 2
    put(cloud, SET, with_public(2))
    post(cloud, SET, "manualUpgrade", {"instanceIds": ["*"]})
    assert len(set(public_ips(cloud))) == 4
    assert set(first) < set(public_ips(cloud))
    copy = load(json.loads(json.dumps(dump(cloud))), empty_cloud)
    put(copy, f"{SET}x", with_public(1))
    taken = {one["properties"]["ipAddress"] for one in listed(copy, f"{SET}x", "publicIPAddresses")}
    assert taken.isdisjoint(public_ips(copy)), "restored addresses stay taken"
    put(cloud, SET, with_public(0))
    post(cloud, SET, "manualUpgrade", {"instanceIds": ["*"]})
    assert public_ips(cloud) == []
    delete(cloud, SET)
    put(cloud, SET, with_public(1))
    assert public_ips(cloud) == first, "released addresses are free again"


def test_a_set_converts_to_several_placement_groups_and_is_reapplied() -> None:
    cloud = azure()
    put(cloud, SET, body(1, singlePlacementGroup=True))
    assert ask(cloud, "POST", SET, action="convertToSinglePlacementGroup").status == 200
    assert not (ask(cloud, "GET", SET).body or {})["properties"]["singlePlacementGroup"]
    assert post(cloud, SET, "reapply").status == "Succeeded"
