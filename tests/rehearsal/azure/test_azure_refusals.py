"""A refused request changes nothing, however late the refusal, and an accepted one never stops the clock later."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from image_bodies import TEMPLATE, calls_with_image, template
from network_bodies import HUB, NET, located, made, network, place, ref
from plain_calls import GROUP, LOCATION
from scale_sets_made import SET, ask, azure, body

from rehearsal.azure.errors import AzureError
from rehearsal.azure.persistence import dump
from rehearsal.azure.scenario import Scenario


def test_a_networks_subnets_have_names_of_one_part() -> None:
    calls = made()
    calls.refusal("PUT", HUB, network("10.0.0.0/16", subnets={"a/b/c": "10.0.1.0/24"}))
    assert calls.exists(f"{HUB}/subnets/nodes")


def test_a_delegation_in_a_networks_body_needs_a_name() -> None:
    calls = made()
    whole = network("10.0.0.0/16", subnets={"nodes": "10.0.0.0/24"})
    whole["properties"]["subnets"][0]["properties"]["delegations"] = [{"properties": {"serviceName": "Microsoft.Network/dnsResolvers"}}]
    assert calls.refusal("PUT", HUB, whole).code == "InvalidRequestFormat"


def test_two_addresses_of_an_endpoint_do_not_share_a_name() -> None:
    calls = made()
    target = calls.full("Microsoft.Storage/storageAccounts/fleetbackup")
    calls.put(target, {"location": LOCATION, "sku": {"name": "Standard_LRS"}, "kind": "StorageV2", "properties": {}})
    own = [{"name": "own", "properties": {"privateIPAddress": f"10.0.0.{number}"}} for number in (8, 9)]
    connection = {"name": "blob", "properties": {"privateLinkServiceId": target, "groupIds": ["blob"]}}
    whole = located(subnet=ref(f"{HUB}/subnets/nodes"), privateLinkServiceConnections=[connection], ipConfigurations=own)
    assert calls.refusal("PUT", f"{NET}/privateEndpoints/blob", whole).code == "InvalidRequestFormat"


def test_quota_that_does_not_suffice_leaves_no_trace() -> None:
    cloud = azure(Scenario.model_validate({"quotas": {"granted": [{"family": "cores", "vcpus": 1}]}}))
    before = json.dumps(dump(cloud))
    with pytest.raises(AzureError):
        ask(cloud, "PUT", SET, body(1))
    assert json.dumps(dump(cloud)) == before


@pytest.mark.parametrize(
    "output",
    [{"galleryImageId": "node"}, {"galleryImageId": f"{GROUP}/providers/Microsoft.Compute/galleries/pictures"}, {"runOutputName": "a/b"}],
)
def test_an_image_template_says_where_to_write_in_a_way_that_can_be_meant(output: dict[str, str]) -> None:
    calls = calls_with_image()
    assert calls.refusal("PUT", TEMPLATE, template(**output)).status == 400


def test_the_highest_port_is_one_less_at_a_frontend() -> None:
    calls = made()
    balancer = f"{NET}/loadBalancers/api"
    frontend = ref(f"{balancer}/frontendIPConfigurations/api")
    ports = {"protocol": "Tcp", "frontendPort": 65_534, "backendPort": 65_535}
    rule = {"name": "api", "properties": {"frontendIPConfiguration": frontend, **ports}}
    whole = located("Standard", frontendIPConfigurations=[place("api")], loadBalancingRules=[rule])
    calls.put(balancer, whole)
    beyond = deepcopy(whole)
    beyond["properties"]["loadBalancingRules"][0]["properties"]["frontendPort"] = 65_535
    assert calls.refusal("PUT", balancer, beyond).code == "InvalidLoadBalancingRule"
