"""The cross-checks find nothing in the shipped regions, and whatever a program would register otherwise than planned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rehearsed_regions import SHIPPED, Rehearsed, rehearsed

from components.plan import azure_limits
from rehearsal.checks import CHECKS, Finding, against_plan, cross_check, from_graph
from rehearsal.checks.address_layout import APART, FITS
from rehearsal.checks.inventory import ALL_THERE, AS_PLANNED, NOTHING_ELSE
from rehearsal.checks.role_assignments import GRANTS
from rehearsal.checks.usage import COUNTED
from rehearsal.program.graph import reveal

Change = Callable[[dict[str, Any]], None]


def plan_findings(region: Rehearsed) -> dict[str, list[Finding]]:
    """Return the differences from the plan, by check."""
    return by_check(against_plan(region.plan, region.base, region.clusters))


def graph_findings(region: Rehearsed) -> dict[str, list[Finding]]:
    """Return the findings within the graphs themselves, by check."""
    return by_check(from_graph(region.plan, region.base, region.clusters))


def by_check(findings: tuple[Finding, ...]) -> dict[str, list[Finding]]:
    grouped: dict[str, list[Finding]] = {}
    for finding in findings:
        assert finding.check in CHECKS
        assert "\n" not in finding.sentence()
        grouped.setdefault(finding.check, []).append(finding)
    return grouped


@pytest.mark.parametrize("name", [*SHIPPED, "pair"])
def test_a_region_as_it_is_shipped_has_no_finding(name: str) -> None:
    region = rehearsed(name)
    assert cross_check(region.plan, region.base, region.clusters) == ()


@pytest.mark.parametrize(
    "name", ["near-gpu-000", "far-etcd-1", "near-snet-nodes-04", "far-api-link", "bootstrap-token", "hub-to-near", "pair-hub-vnet"]
)
def test_a_planned_thing_that_is_not_registered_is_found_by_name(name: str) -> None:
    found = plan_findings(rehearsed("pair").without(name))
    assert set(found) == {ALL_THERE}
    assert all(finding.where.endswith(f"/{name}") and finding.found == "nothing" for finding in found[ALL_THERE])


def test_a_thing_registered_twice_is_found_with_both_names() -> None:
    region = rehearsed("pair")
    again = replace(region.resource("far-cpu-000"), urn="urn:again", name="again")
    found = plan_findings(region.joined_by(again))
    assert set(found) == {ALL_THERE}
    assert "again" in found[ALL_THERE][0].found
    assert region.resource("far-cpu-000").name in found[ALL_THERE][0].found


def test_a_thing_that_is_not_planned_is_found() -> None:
    region = rehearsed("pair")
    vnet = region.resource("virtualNetworks/near-vnet")
    rogue = replace(vnet, urn="urn:rogue", name="rogue", id=str(vnet.id).replace("near-vnet", "rogue-vnet"))
    found = plan_findings(region.joined_by(rogue))
    assert set(found) == {NOTHING_ELSE}
    assert found[NOTHING_ELSE][0].where.endswith("/rogue-vnet")


def drop_address(inputs: dict[str, Any]) -> None:
    inputs["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0]["ipConfigurations"].pop()


def move_machines(inputs: dict[str, Any]) -> None:
    for item in inputs["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0]["ipConfigurations"]:
        item["subnet"]["id"] = item["subnet"]["id"].replace("nodes-04", "nodes-00")


def other_image(inputs: dict[str, Any]) -> None:
    inputs["virtualMachineProfile"]["storageProfile"]["imageReference"]["id"] += "9"


@pytest.mark.parametrize(
    ("name", "word", "change"),
    [
        ("near-gpu-000", "machines", lambda inputs: inputs["sku"].update(capacity=3)),
        ("near-gpu-000", "size", lambda inputs: inputs["sku"].update(name="Standard_D2s_v5")),
        ("near-gpu-000", "zones", lambda inputs: inputs.update(zones=["2"])),
        ("near-gpu-000", "spot", lambda inputs: inputs["virtualMachineProfile"].update(priority="Regular")),
        ("near-gpu-000", "one placement group", lambda inputs: inputs.update(singlePlacementGroup=True)),
        ("near-gpu-000", "ipConfigurations per machine", drop_address),
        ("near-gpu-000", "subnets", move_machines),
        ("near-gpu-000", "image", other_image),
        ("far-etcd-1", "zones", lambda inputs: inputs.update(zones=["1"])),
        ("far-etcd-1", "host name", lambda inputs: inputs["osProfile"].update(computerName="other")),
        ("far-etcd-1-nic", "addresses", lambda inputs: inputs["ipConfigurations"][0].update(privateIPAddress="10.59.128.99")),
        ("far-snet-etcd", "security group", lambda inputs: inputs.pop("networkSecurityGroup")),
        ("near-snet-nodes-04", "NAT gateway", lambda inputs: inputs.pop("natGateway")),
        ("near-nsg-etcd", "rules", lambda inputs: inputs["securityRules"].pop()),
        ("near-nat-nodes-00-ips", "prefix length", lambda inputs: inputs.update(prefixLength=30)),
        ("pair-hub-gateway", "people's addresses", lambda inputs: inputs.pop("vpnClientConfiguration")),
        ("far-api-endpoint", "target", lambda inputs: inputs["privateLinkServiceConnections"].clear()),
        ("2026.11.0", "replicas", lambda inputs: inputs["publishingProfile"]["targetRegions"][0].update(regionalReplicaCount=7)),
        ("A/etcd-0", "addresses", lambda inputs: inputs["aRecords"].clear()),
    ],
)
def test_a_value_that_is_not_the_plans_is_found_with_both_sides(name: str, word: str, change: Change) -> None:
    found = plan_findings(rehearsed("pair").changed(name, change))
    assert set(found) == {AS_PLANNED}
    assert {finding.where.rpartition(": ")[2] for finding in found[AS_PLANNED]} == {word}
    assert all(finding.planned != finding.found for finding in found[AS_PLANNED])


def test_a_machine_that_may_read_another_clusters_vault_is_found() -> None:
    region = rehearsed("pair")
    (vault,) = (item for item in region.base if (item.id or "").endswith(region.plan.clusters[1].vault("control").name))

    def widen(inputs: dict[str, Any]) -> None:
        inputs["scope"] = vault.id

    (grant,) = (item for item in region.clusters if item.type.endswith("RoleAssignment") and "near-identity-node-vault" in item.name)
    found = plan_findings(region.changed(str(grant.id).rpartition("/")[2], widen))
    assert set(found) == {GRANTS}
    assert [finding.where.rpartition("/")[2] for finding in found[GRANTS]] == ["near-id-node", "near-id-node"]


def test_a_grant_to_nobody_that_the_plan_knows_is_found() -> None:
    region = rehearsed("pair")
    (grant,) = (item for item in region.clusters if item.type.endswith("RoleAssignment") and "near-identity-node-vault" in item.name)
    stranger = replace(grant, urn="urn:stranger", inputs={**grant.inputs, "principalId": "stranger"})
    found = plan_findings(region.joined_by(stranger))
    assert set(found) == {GRANTS}
    assert "principal stranger" in found[GRANTS][0].where


def count(text: str) -> int:
    return int(text.replace(",", ""))


def test_counts_taken_from_the_graph_differ_when_a_scale_set_grows() -> None:
    found = graph_findings(rehearsed("pair").changed("near-gpu-000", lambda inputs: inputs["sku"].update(capacity=12)))
    assert set(found) == {COUNTED}
    differences = {finding.where.partition(": ")[2]: count(finding.found) - count(finding.planned) for finding in found[COUNTED]}
    assert differences == {
        azure_limits.MACHINES.name: 10,
        azure_limits.INTERFACES.name: 10,
        azure_limits.VNET_ADDRESSES.name: 310,
        # The plan sets eight addresses aside in the hub, of which the graph knows three.
        azure_limits.PEERED_ADDRESSES.name: 310 - 5,
        azure_limits.VCPUS.name: 240,
        "GPUs": 10,
    }


def test_a_spot_set_bought_as_regular_counts_against_another_family() -> None:
    found = graph_findings(
        rehearsed("pair").changed("near-gpu-000", lambda inputs: inputs["virtualMachineProfile"].update(priority="Regular"))
    )
    families = {finding.where.partition(": ")[0].rpartition("/")[2] for finding in found[COUNTED]}
    assert families == {"lowPriorityCores", "StandardNCADSA100v4Family"}


@pytest.mark.parametrize(
    ("name", "check", "change"),
    [
        ("near-snet-nodes-04", APART, lambda inputs: inputs.update(addressPrefix="10.52.0.0/20")),
        ("near-snet-nodes-04", APART, lambda inputs: inputs.update(addressPrefix="10.200.0.0/19")),
        ("virtualNetworks/far-vnet", APART, lambda inputs: inputs["addressSpace"].update(addressPrefixes=["10.52.0.0/14"])),
        ("near-snet-nodes-04", FITS, lambda inputs: inputs.update(addressPrefix="10.52.128.0/26")),
        ("near-etcd-1-nic", FITS, lambda inputs: inputs["ipConfigurations"][0].update(privateIPAddress="10.55.128.10")),
        ("near-etcd-1-nic", FITS, lambda inputs: inputs["ipConfigurations"][0].update(privateIPAddress="10.55.128.3")),
    ],
)
def test_address_ranges_that_overlap_or_are_too_small_are_found(name: str, check: str, change: Change) -> None:
    assert check in graph_findings(rehearsed("pair").changed(name, change))


def test_a_graph_without_any_resource_lacks_everything_and_breaks_nothing_else() -> None:
    region = rehearsed("pair")
    empty = Rehearsed(region.plan, replace(region.base, resources=()), replace(region.clusters, resources=()))
    assert set(plan_findings(empty)) == {ALL_THERE, GRANTS}
    assert set(graph_findings(empty)) == {COUNTED}


def test_secrets_show_up_in_no_finding() -> None:
    region = rehearsed("pair")
    secret = next(one for one in region.clusters.of_type("azure-native:keyvault:Secret") if "-key" in one.name)
    moved = replace(secret, id=str(secret.id) + "-moved")
    value = reveal(secret.inputs)["properties"]["value"]
    sentences = [finding.sentence() for finding in against_plan(region.plan, region.base, replace(region.clusters, resources=(moved,)))]
    assert len(value) > 10
    assert not any(value in sentence for sentence in sentences)
