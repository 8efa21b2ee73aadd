"""The model accepts the galleries, identities, vaults and storage of the shipped regions, and a repeated request changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from plain_calls import SdkBodyReader
from rehearsed_regions import SHIPPED, Rehearsed, rehearsed

from rehearsal.azure import identity, images, storage, vaults
from rehearsal.azure.arm_id import GROUP_TYPE, ArmId, parse
from rehearsal.azure.azure_native_bodies import AZURE, to_arm
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.images import is_replicated
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.resource import Json, Request
from rehearsal.program.graph import reveal

MOMENTS = ("lastModifiedTime", "updatedOn")
TYPES = {kind.type for module in (images, identity, vaults, storage) for kind in module.RESOURCE_TYPES} | {GROUP_TYPE}


def resource_bodies(region: Rehearsed) -> Iterator[tuple[ArmId, Json]]:
    """Ids and bodies of what a region asks for of these types, in the order of its program."""
    for resource in (*region.base, *region.clusters):
        if resource.type.startswith(AZURE) and resource.id is not None and parse(resource.id).type in TYPES:
            yield parse(resource.id), to_arm(resource.type, reveal(resource.inputs))


def put(cloud: Cloud, requests: list[tuple[ArmId, Json]]) -> None:
    """Put all of it, each when what came before it is done."""
    for arm_id, body in requests:
        cloud.handle(Request("PUT", arm_id, body=body))
        cloud.run_until_idle()


def answered(cloud: Cloud) -> dict[str, Json]:
    """The properties of every resource, without the moments of its last change."""
    found = {
        key: {**one.properties, "attributes": {**one.properties.get("attributes", {}), "updated": 0}}
        for key, one in cloud.resources.items()
    }
    return {key: {part: value for part, value in body.items() if part not in MOMENTS} for key, body in found.items()}


@pytest.mark.parametrize("name", SHIPPED)
def test_all_that_a_shipped_region_asks_for_is_accepted_twice_and_the_same_after(name: str) -> None:
    region = rehearsed(name)
    requests = list(resource_bodies(region))
    assert len(requests) > 50
    cloud = new_cloud({arm_id.subscription for arm_id, _ in requests}, region.plan.spec.access.tenant)
    cloud.body_reader = SdkBodyReader()
    put(cloud, requests)
    versions = [one for one, _ in requests if one.type == "Microsoft.Compute/galleries/images/versions"]
    assert versions
    assert all(is_replicated(cloud, one.text, region.plan.spec.location) for one in versions)
    given = {body["properties"]["principalId"] for one, body in requests if one.type == "Microsoft.Authorization/roleAssignments"}
    identities = cloud.index.of_type("microsoft.managedidentity/userassignedidentities")
    assert given == {cloud.resources[key].properties["principalId"] for key in identities}
    before = answered(cloud)
    put(cloud, requests)
    assert answered(cloud) == before
