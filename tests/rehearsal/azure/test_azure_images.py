"""Galleries, image definitions and versions behave as on Azure."""

from __future__ import annotations

from typing import Any

import pytest
from image_bodies import GALLERY, HOUR, IMAGE, SOURCE, at_version, calls_with_image, image, version
from plain_calls import GROUP, LOCATION, SUBSCRIPTION, Calls

from rehearsal.azure.clock import stamp
from rehearsal.azure.compute.os_images import exact_version
from rehearsal.azure.images import is_replicated, latest_version
from rehearsal.azure.images.image_versions import version_numbers


@pytest.fixture
def calls() -> Calls:
    return calls_with_image()


def test_a_version_is_usable_in_a_region_when_its_copy_there_is_whole(calls: Calls) -> None:
    answer = calls.call("PUT", f"{IMAGE}/versions/1.0.0", version(LOCATION, "southcentralus"))
    assert answer.status == 201
    assert answer.body is not None
    assert answer.body["properties"]["provisioningState"] == "Creating"
    assert not is_replicated(calls.cloud, at_version("1.0.0"), LOCATION)
    copies = calls.cloud.get(at_version("1.0.0")).state.regions
    first = min(copies, key=lambda region: copies[region][1])
    calls.cloud.advance(copies[first][1])
    states = {region: is_replicated(calls.cloud, at_version("1.0.0"), region) for region in copies}
    assert states == {region: region == first for region in copies}
    calls.cloud.run_until_idle()
    assert is_replicated(calls.cloud, at_version("1.0.0"), "South Central US")
    assert calls.get(f"{IMAGE}/versions/1.0.0")["properties"]["provisioningState"] == "Succeeded"


def test_replication_is_told_by_region_only_where_it_is_asked_for(calls: Calls) -> None:
    calls.call("PUT", f"{IMAGE}/versions/1.0.0", version(LOCATION))
    begin, end = calls.cloud.get(at_version("1.0.0")).state.regions[LOCATION]
    calls.cloud.advance(begin + (end - begin) / 2)
    assert "replicationStatus" not in calls.get(f"{IMAGE}/versions/1.0.0")["properties"]
    body = calls.get(f"{IMAGE}/versions/1.0.0", **{"$expand": "ReplicationStatus"})["properties"]["replicationStatus"]
    region = {"region": LOCATION, "state": "Replicating", "details": "", "progress": 50}
    assert body == {"aggregatedState": "InProgress", "summary": [region]}
    calls.cloud.run_until_idle()
    body = calls.get(f"{IMAGE}/versions/1.0.0", **{"$expand": "ReplicationStatus"})["properties"]["replicationStatus"]
    assert body == {"aggregatedState": "Completed", "summary": [{**region, "state": "Completed", "progress": 100}]}


def test_a_region_added_later_is_copied_to_while_the_first_stays_usable(calls: Calls) -> None:
    calls.put(f"{IMAGE}/versions/1.0.0", version(LOCATION))
    answer = calls.call("PUT", f"{IMAGE}/versions/1.0.0", version(LOCATION, "southcentralus"))
    assert answer.operation is not None
    assert is_replicated(calls.cloud, at_version("1.0.0"), LOCATION)
    assert not is_replicated(calls.cloud, at_version("1.0.0"), "southcentralus")
    calls.cloud.run_until_idle()
    assert is_replicated(calls.cloud, at_version("1.0.0"), "southcentralus")
    calls.put(f"{IMAGE}/versions/1.0.0", version(LOCATION))
    assert not is_replicated(calls.cloud, at_version("1.0.0"), "southcentralus")


def test_more_replicas_where_a_copy_is_take_no_new_copy(calls: Calls) -> None:
    calls.put(f"{IMAGE}/versions/1.0.0", version(LOCATION))
    began = calls.cloud.now
    answered = calls.put(f"{IMAGE}/versions/1.0.0", version({"name": LOCATION, "regionalReplicaCount": 100}))
    assert calls.cloud.now - began < 60
    assert answered["properties"]["publishingProfile"]["targetRegions"] == [
        {"name": LOCATION, "regionalReplicaCount": 100, "storageAccountType": "Standard_LRS"}
    ]


def test_latest_is_the_highest_version_that_the_region_has_and_that_is_not_kept_out(calls: Calls) -> None:
    assert latest_version(calls.cloud, f"{GROUP}/providers/{IMAGE}", LOCATION) is None
    calls.put(f"{IMAGE}/versions/1.9.0", version(LOCATION, "southcentralus"))
    calls.put(f"{IMAGE}/versions/1.10.0", version(LOCATION))
    calls.put(f"{IMAGE}/versions/2.0.0", version(LOCATION, excludeFromLatest=True))
    calls.put(f"{IMAGE}/versions/3.0.0", version({"name": LOCATION, "excludeFromLatest": True}, "southcentralus"))
    regions = (LOCATION, "southcentralus", "eastus")
    found = {region: latest_version(calls.cloud, f"{GROUP}/providers/{IMAGE}", region) for region in regions}
    exact = {region: exact_version(calls.cloud, {"id": f"{GROUP}/providers/{IMAGE}"}, region) for region in regions}
    assert exact == {region: one.id.name if one else "" for region, one in found.items()}
    assert exact_version(calls.cloud, {"id": at_version("9.8.7")}, LOCATION) == "9.8.7"
    assert exact_version(calls.cloud, {"id": f"{GROUP}/providers/Microsoft.Compute/images/own"}, LOCATION) == ""
    assert {region: one.id.name if one else None for region, one in found.items()} == {
        LOCATION: "1.10.0",
        "southcentralus": "3.0.0",
        "eastus": None,
    }


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (version("southcentralus"), "must contain the location of image version 'swedencentral'"),
        (version(LOCATION, "Sweden Central"), "names a region twice"),
        (version({"name": LOCATION, "regionalReplicaCount": 101}), "out of range 1 to 100"),
        (version({"name": LOCATION, "regionalReplicaCount": 0}), "out of range 1 to 100"),
        (version(LOCATION, replicaCount=1000), "out of range 1 to 100"),
        ({"location": LOCATION, "properties": {"publishingProfile": {}}}, "storageProfile"),
        ({"location": LOCATION, "properties": {"storageProfile": {"osDiskImage": {"hostCaching": "None"}}}}, "source"),
    ],
)
def test_a_version_that_could_not_be_meant_is_refused(calls: Calls, body: dict[str, Any], told: str) -> None:
    error = calls.refusal("PUT", f"{IMAGE}/versions/1.0.0", body)
    assert (error.status, error.code) == (400, "InvalidParameter")
    assert told in error.message


@pytest.mark.parametrize("name", ["1.0", "1.0.0.0", "v1.0.0", "1.0.x", "2147483648.0.0", "1.-1.0", "latest"])
def test_a_version_is_called_by_three_numbers(calls: Calls, name: str) -> None:
    assert "MajorVersion.MinorVersion.Patch" in calls.refusal("PUT", f"{IMAGE}/versions/{name}", version(LOCATION)).message


def test_the_largest_version_is_a_version() -> None:
    assert version_numbers("2147483647.0.1") == (2147483647, 0, 1)


def test_the_source_of_a_version_and_what_an_image_is_never_change(calls: Calls) -> None:
    calls.put(f"{IMAGE}/versions/1.0.0", version(LOCATION))
    moved = version(LOCATION)
    moved["properties"]["storageProfile"] = {"source": {"id": SOURCE + "2"}}
    refused = calls.refusal("PUT", f"{IMAGE}/versions/1.0.0", moved)
    assert (refused.code, refused.target) == ("PropertyChangeNotAllowed", "galleryImageVersion.properties.storageProfile.source")
    changes = ({"osType": "Windows"}, {"osState": "Specialized"}, {"hyperVGeneration": "V1"}, {"architecture": "Arm64"})
    other = {"identifier": {"publisher": "p", "offer": "o", "sku": "other"}}
    for change in (*changes, other):
        assert calls.refusal("PUT", IMAGE, image(**change)).code == "PropertyChangeNotAllowed"
    assert calls.put(IMAGE, image(description="of nodes"))["properties"]["description"] == "of nodes"


def test_features_change_only_where_the_image_says_that_it_may_be_updated(calls: Calls) -> None:
    features = [{"name": "DiskControllerTypes", "value": "SCSI, NVMe"}]
    assert calls.refusal("PUT", IMAGE, image(features=features)).code == "PropertyChangeNotAllowed"
    assert calls.put(IMAGE, image(features=features, allowUpdateImage=True))["properties"]["features"] == features


def test_no_two_images_of_a_gallery_are_the_same_publisher_offer_and_sku(calls: Calls) -> None:
    assert calls.refusal("PUT", f"{GALLERY}/images/again", image()).code == "Conflict"


def test_an_image_is_of_a_generation_and_an_architecture_unless_said_otherwise(calls: Calls) -> None:
    body = image(identifier={"publisher": "p", "offer": "o", "sku": "old"})
    del body["properties"]["hyperVGeneration"]
    answered = calls.put(f"{GALLERY}/images/old", body)["properties"]
    assert (answered["hyperVGeneration"], answered["architecture"]) == ("V1", "x64")


def test_a_gallery_and_an_image_go_only_when_they_are_empty(calls: Calls) -> None:
    calls.put(f"{IMAGE}/versions/1.0.0", version(LOCATION))
    for name, inner in ((GALLERY, IMAGE), (IMAGE, f"{IMAGE}/versions/1.0.0")):
        refused = calls.refusal("DELETE", name)
        assert refused.code == "CannotDeleteResource"
        assert inner in refused.message
    for name in (f"{IMAGE}/versions/1.0.0", IMAGE, GALLERY):
        calls.delete(name)
        assert not calls.exists(name)


def test_a_group_goes_with_the_galleries_in_it(calls: Calls) -> None:
    calls.put(f"{IMAGE}/versions/1.0.0", version(LOCATION))
    calls.delete(GROUP)
    assert not calls.exists(GROUP)
    assert not calls.exists(GALLERY)


def test_a_version_is_kept_until_its_end_of_life_where_that_is_asked_for(calls: Calls) -> None:
    body = version(LOCATION, endOfLifeDate=stamp(calls.cloud.now + 100 * HOUR))
    body["properties"]["safetyProfile"] = {"blockDeletionBeforeEndOfLife": True, "allowDeletionOfReplicatedLocations": False}
    calls.put(f"{IMAGE}/versions/1.0.0", body)
    assert calls.refusal("DELETE", f"{IMAGE}/versions/1.0.0").code == "OperationNotAllowed"
    calls.cloud.advance(calls.cloud.now + 101 * HOUR)
    calls.delete(f"{IMAGE}/versions/1.0.0")
    assert not calls.exists(f"{IMAGE}/versions/1.0.0")


def test_replicated_locations_stay_where_the_safety_profile_says_so(calls: Calls) -> None:
    body = version(LOCATION, "southcentralus")
    body["properties"]["safetyProfile"] = {"allowDeletionOfReplicatedLocations": False}
    calls.put(f"{IMAGE}/versions/1.0.0", body)
    fewer = {**body, "properties": {**body["properties"], "publishingProfile": {"targetRegions": [{"name": LOCATION}]}}}
    assert calls.refusal("PUT", f"{IMAGE}/versions/1.0.0", fewer).code == "PropertyChangeNotAllowed"


def test_a_moment_that_is_none_is_refused(calls: Calls) -> None:
    assert calls.refusal("PUT", f"{IMAGE}/versions/1.0.0", version(LOCATION, endOfLifeDate="soon")).status == 400


def test_a_subscription_holds_a_hundred_galleries_in_a_region(calls: Calls) -> None:
    for number in range(99):
        calls.put(f"Microsoft.Compute/galleries/g{number}", {"location": LOCATION})
    refused = calls.refusal("PUT", "Microsoft.Compute/galleries/more", {"location": LOCATION})
    assert refused.code == "QuotaExceeded"
    assert "100" in refused.message
    assert calls.put("Microsoft.Compute/galleries/elsewhere", {"location": "southcentralus"})["properties"]["identifier"] == {
        "uniqueName": f"{SUBSCRIPTION}-ELSEWHERE"
    }


@pytest.mark.parametrize("name", ["with-hyphen", "ends.", "_first", "a" * 82])
def test_a_gallery_name_keeps_azures_rule(calls: Calls, name: str) -> None:
    assert "validation rule" in calls.refusal("PUT", f"Microsoft.Compute/galleries/{name}", {"location": LOCATION}).message
