"""A resource lies where Azure has a location; private zones are everywhere."""

from __future__ import annotations

import pytest
from network_bodies import network
from plain_calls import GROUP, Calls


@pytest.mark.parametrize("location", ["mars", "global", "sweden", "chinanorth2"])
def test_a_group_in_no_location_of_azures_is_refused_with_those_that_there_are(location: str) -> None:
    refused = Calls().refusal("PUT", f"{GROUP}roup", {"location": location})
    assert (refused.status, refused.code) == (400, "LocationNotAvailableForResourceGroup")
    assert refused.message.startswith(
        f"The provided location '{location}' is not available for resource group. List of available regions is "
    )
    assert "swedencentral,switzerlandnorth" in refused.message


@pytest.mark.parametrize("location", ["westcentralus", "Sweden Central", "AUSTRALIACENTRAL2"])
def test_a_location_is_taken_with_zones_or_without_and_however_it_is_written(location: str) -> None:
    assert Calls().put(f"{GROUP}roup", {"location": location})["location"] == location


def test_every_other_resource_is_refused_by_its_type() -> None:
    calls = Calls()
    body = {**network("10.0.0.0/16"), "location": "mars"}
    refused = calls.refusal("PUT", "Microsoft.Network/virtualNetworks/hub", body)
    assert (refused.status, refused.code) == (400, "LocationNotAvailableForResourceType")
    assert "'mars' is not available for resource type 'Microsoft.Network/virtualNetworks'" in refused.message


def test_a_private_zone_is_global_and_nowhere_else() -> None:
    calls = Calls()
    zone = "Microsoft.Network/privateDnsZones/fleet.internal"
    for location in ("mars", "swedencentral"):
        assert calls.refusal("PUT", zone, {"location": location}).code == "LocationNotAvailableForResourceType"
    assert calls.put(zone, {"location": "global"})["location"] == "global"
