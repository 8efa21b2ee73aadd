"""The networks of the shipped regions are accepted as sent, returned in Azure's shape, and unchanged by a second PUT."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
from azure_types import UnknownResourceTypeError
from plain_calls import SdkBodyReader
from published import answer_faults, needs_published_types
from rehearsed_regions import SHIPPED, rehearsed

from rehearsal.azure import identity, storage, vaults
from rehearsal.azure.arm_id import GROUP_TYPE, ArmId, parse
from rehearsal.azure.azure_native_bodies import AZURE, to_arm
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.network import resource_types
from rehearsal.azure.network.address_pools import addresses_of
from rehearsal.azure.persistence import dump, load
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.resource import Json, Request
from rehearsal.program.graph import reveal

TYPES = {kind.type for module in (resource_types, identity, storage, vaults) for kind in module.RESOURCE_TYPES} | {GROUP_TYPE}
UNPUBLISHED = ("Microsoft.Network/dnsResolvers", "Microsoft.Network/dnsResolvers/inboundEndpoints")
"""Types of which the folder has no file."""
REGIONS = (*SHIPPED, "pair")


@cache
def requested_resources(name: str) -> tuple[tuple[ArmId, Json], ...]:
    """Ids and bodies of what a region asks for of these types, in the order of its program."""
    region = rehearsed(name)
    resources = [one for one in (*region.base, *region.clusters) if one.type.startswith(AZURE) and one.id is not None]
    return tuple((parse(str(one.id)), to_arm(one.type, reveal(one.inputs))) for one in resources if parse(str(one.id)).type in TYPES)


def empty(name: str) -> Cloud:
    cloud = new_cloud({arm_id.subscription for arm_id, _ in requested_resources(name)}, rehearsed(name).plan.spec.access.tenant)
    cloud.body_reader = SdkBodyReader()
    return cloud


def put(cloud: Cloud, name: str) -> None:
    """Put all that a region asks for, each when what came before it is done."""
    for arm_id, body in requested_resources(name):
        cloud.handle(Request("PUT", arm_id, body=deepcopy(body)))
        cloud.run_until_idle()


@cache
def region(name: str) -> Cloud:
    cloud = empty(name)
    put(cloud, name)
    return cloud


def bodies(cloud: Cloud) -> Iterator[tuple[ArmId, Json]]:
    """Yield the response body of every network resource, including those created with others."""
    for resource in list(cloud.resources.values()):
        if resource.id.type.startswith("Microsoft.Network/"):
            answer = cloud.handle(Request("GET", resource.id)).body
            assert answer is not None
            yield resource.id, answer


def used(cloud: Cloud) -> dict[str, int]:
    return {key: one.used for key, one in addresses_of(cloud).pools.items() if one.used}


@pytest.mark.parametrize("name", REGIONS)
def test_a_region_has_all_that_it_asked_for(name: str) -> None:
    found = dict(bodies(region(name)))
    network_ids = [arm_id for arm_id, _ in requested_resources(name) if arm_id.type.startswith("Microsoft.Network/")]
    assert len(network_ids) > 60
    assert {one.key for one in network_ids} <= {one.key for one in found}
    assert {body["properties"].get("provisioningState", "Succeeded") for body in found.values()} == {"Succeeded"}
    peerings = [body["properties"]["peeringState"] for one, body in found.items() if one.type.endswith("/virtualNetworkPeerings")]
    assert set(peerings) <= {"Connected"}
    assert len(peerings) == 2 * sum(1 for cluster in rehearsed(name).plan.clusters if cluster.network.peering_name)


@pytest.mark.parametrize("name", REGIONS)
def test_every_etcd_member_has_the_address_that_was_planned_for_it(name: str) -> None:
    found = {one.name: body["properties"] for one, body in bodies(region(name)) if one.type == "Microsoft.Network/networkInterfaces"}
    rings = [ring for cluster in rehearsed(name).plan.clusters for ring in (cluster.etcd, cluster.events_etcd)]
    planned = {member.nic_name: member.address for ring in rings for member in ring.members}
    assert {nic: inner["ipConfigurations"][0]["properties"]["privateIPAddress"] for nic, inner in found.items()} == planned


@needs_published_types
@pytest.mark.parametrize("name", REGIONS)
def test_a_region_is_answered_in_azures_published_shape(name: str) -> None:
    faults = []
    for arm_id, body in bodies(region(name)):
        if arm_id.type in UNPUBLISHED:
            with pytest.raises(UnknownResourceTypeError):
                answer_faults(arm_id.type, "", body)
        else:
            faults += answer_faults(arm_id.type, "", body)
    assert faults == []


@pytest.mark.parametrize("name", REGIONS)
def test_a_region_asked_for_again_is_the_same(name: str) -> None:
    cloud = load(json.loads(json.dumps(dump(region(name)))), lambda _: empty(name))
    assert used(cloud) == used(region(name))
    put(cloud, name)
    plain = [{key: without_etags(body) for key, body in stripped(one)} for one in (cloud, region(name))]
    assert plain[0] == plain[1]
    assert used(cloud) == used(region(name))


def without_etags(value: Any) -> Any:
    """A value without the versions of resources and their items, and the times of their changes."""
    if isinstance(value, dict):
        return {key: without_etags(item) for key, item in value.items() if key not in ("etag", "systemData")}
    return [without_etags(item) for item in value] if isinstance(value, list) else value


def stripped(cloud: Cloud) -> Iterator[tuple[str, Json]]:
    """Bodies without the versions of parts."""
    for arm_id, body in bodies(cloud):
        inner = {name: value for name, value in body["properties"].items() if name not in ("subnets", "securityRules")}
        inner.pop("virtualNetworkPeerings", None)
        yield arm_id.key, {**body, "properties": inner}


def test_a_whole_region_can_be_deleted_group_by_group() -> None:
    cloud = load(json.loads(json.dumps(dump(region("pair")))), lambda _: empty("pair"))
    groups = [one.id for one in cloud.resources.values() if one.id.type == GROUP_TYPE]
    # The base group holds the endpoints that keep the clusters' private link services.
    for arm_id in sorted(groups, key=lambda one: not one.name.endswith("-base")):
        operation = cloud.handle(Request("DELETE", arm_id)).operation
        cloud.run_until_idle()
        assert operation is None or operation.error is None, operation and operation.error
    assert not [key for key in cloud.resources if "/microsoft.network/" in key]
    assert used(cloud) == {}
