from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from region_graphs import REGIONS, azure_ids, base_graph, bodies, by_id, ground_graph, lay_ground, planned

from components.plan import naming
from components.plan.model import ClusterPlan, RegionPlan
from components.plan.network_rules import SecurityGroupPlan, SecurityRulePlan
from rehearsal.program.graph import Graph, Resource

SUBNET = "azure-native:network:Subnet"
OTHER_SUBSCRIPTION = "22222222-2222-2222-2222-222222222222"
SERVICE_ZONES = ("privatelink.vaultcore.azure.net", "privatelink.blob.core.windows.net")


def network_ids(region: RegionPlan, cluster: ClusterPlan) -> list[str]:
    where, plan = (cluster.subscription, cluster.resource_group, "Microsoft.Network"), cluster.network
    vnet = naming.resource_id(*where, "virtualNetworks", plan.vnet_name)
    zones = [naming.resource_id(*where, "privateDnsZones", zone) for zone in (plan.private_zone, *SERVICE_ZONES)]
    members = [f"{ring.role}-{member.member}" for ring in (cluster.etcd, cluster.events_etcd) for member in ring.members]
    endpoints = [*(vault.endpoint_name for vault in cluster.vaults), cluster.backup_endpoint_name]
    return [
        vnet,
        *(f"{vnet}/subnets/{subnet.name}" for subnet in plan.subnets),
        *(naming.resource_id(*where, "networkSecurityGroups", group.name) for group in plan.security_groups),
        *(naming.resource_id(*where, "natGateways", gateway.name) for gateway in plan.nat_gateways),
        *(naming.resource_id(*where, "publicIPPrefixes", gateway.prefix_name) for gateway in plan.nat_gateways),
        *zones,
        *(f"{zone}/virtualNetworkLinks/{plan.vnet_name}" for zone in zones),
        *(f"{zones[0]}/A/{name}" for name in (*members, "api")),
        *(naming.resource_id(*where, "privateEndpoints", name) for name in endpoints),
        *(naming.resource_id(*where, "privateEndpoints", name, "privateDnsZoneGroups", "default") for name in endpoints),
        *peering_ids(region, cluster, vnet),
    ]


def peering_ids(region: RegionPlan, cluster: ClusterPlan, vnet: str) -> list[str]:
    if cluster.network.peering_name is None:
        return []
    hub = (region.spec.subscription, region.base_resource_group, "Microsoft.Network", "virtualNetworks", region.hub.vnet_name)
    return [
        f"{vnet}/virtualNetworkPeerings/{cluster.network.peering_name}",
        naming.resource_id(*hub, "virtualNetworkPeerings", str(cluster.network.hub_peering_name)),
    ]


def rules_of(group: Resource) -> tuple[SecurityRulePlan, ...]:
    """Return a security group's rules from the request to Azure."""
    return tuple(
        SecurityRulePlan(
            name=rule["name"],
            priority=rule["priority"],
            direction=rule["direction"],
            access=rule["access"],
            protocol=rule["protocol"],
            sources=one_or_several(rule, "sourceAddressPrefix", "sourceAddressPrefixes"),
            destinations=one_or_several(rule, "destinationAddressPrefix", "destinationAddressPrefixes"),
            ports=one_or_several(rule, "destinationPortRange", "destinationPortRanges"),
        )
        for rule in group.inputs["securityRules"]
    )


def one_or_several(rule: Mapping[str, Any], one: str, several: str) -> tuple[str, ...]:
    assert (one in rule) != (several in rule)
    return (rule[one],) if one in rule else tuple(rule[several])


def chain_of(graph: Graph, resource_type: str, network: str) -> list[tuple[str, ...]]:
    """For each resource of a type in a virtual network, in order, which others of them it waits for."""
    members = [item for item in graph.of_type(resource_type) if network in str(item.id)]
    urns = {item.urn for item in members}
    return [tuple(urn for urn in item.dependencies if urn in urns) for item in members]


@pytest.mark.parametrize("region", REGIONS)
def test_every_planned_part_of_the_networks_is_made_once_and_nothing_else(region: str) -> None:
    plan = planned(region)
    expected = sorted(identity for cluster in plan.clusters for identity in network_ids(plan, cluster))
    assert [identity for identity in azure_ids(ground_graph(region)) if "/providers/Microsoft.Network/" in identity] == expected


@pytest.mark.parametrize("region", REGIONS)
def test_security_groups_say_what_the_tables_say(region: str) -> None:
    plan = planned(region)
    groups: dict[str, SecurityGroupPlan] = {group.name: group for cluster in plan.clusters for group in cluster.network.security_groups}
    groups |= {group.name: group for group in plan.hub.security_groups}
    made = [
        item for graph in (base_graph(region), ground_graph(region)) for item in graph.of_type("azure-native:network:NetworkSecurityGroup")
    ]
    assert {item.inputs["networkSecurityGroupName"]: rules_of(item) for item in made} == {
        name: group.rules for name, group in groups.items()
    }


@pytest.mark.parametrize("region", REGIONS)
def test_each_subnet_has_its_planned_range_group_and_gateway_and_no_way_out_by_default(region: str) -> None:
    subnets = by_id(ground_graph(region))
    for cluster in planned(region).clusters:
        where = (cluster.subscription, cluster.resource_group, "Microsoft.Network")
        for plan in cluster.network.subnets:
            body = subnets[naming.resource_id(*where, "virtualNetworks", cluster.network.vnet_name, "subnets", plan.name)].inputs
            group = plan.security_group and {"id": naming.resource_id(*where, "networkSecurityGroups", plan.security_group)}
            gateway = plan.nat_gateway and {"id": naming.resource_id(*where, "natGateways", plan.nat_gateway)}
            said = (body["addressPrefix"], body.get("networkSecurityGroup"), body.get("natGateway"), body["defaultOutboundAccess"])
            assert said == (plan.cidr, group, gateway, False)


@pytest.mark.parametrize("region", REGIONS)
def test_subnets_of_one_network_are_written_one_after_another(region: str) -> None:
    networks = [cluster.network.vnet_name for cluster in planned(region).clusters]
    chains = [chain_of(ground_graph(region), SUBNET, f"/{name}/") for name in networks]
    chains.append(chain_of(base_graph(region), SUBNET, f"/{planned(region).hub.vnet_name}/"))
    for chain in chains:
        assert [len(waits) for waits in chain] == [0] + [1] * (len(chain) - 1)
        assert len(set(chain)) == len(chain)


def test_security_groups_hold_for_private_endpoints_and_private_link_takes_its_addresses() -> None:
    policies = {}
    for body in bodies(ground_graph("southcentralus").of_type(SUBNET)):
        role = "private-link" if "private-link" in body["subnetName"] else "endpoints" if "endpoints" in body["subnetName"] else "other"
        policies.setdefault(role, set()).add((body["privateEndpointNetworkPolicies"], body["privateLinkServiceNetworkPolicies"]))
    assert policies == {
        "private-link": {("Disabled", "Disabled")},
        "endpoints": {("NetworkSecurityGroupEnabled", "Enabled")},
        "other": {("Disabled", "Enabled")},
    }


@pytest.mark.parametrize("region", REGIONS)
def test_every_name_in_a_cluster_s_zone_leads_to_its_planned_address(region: str) -> None:
    records = bodies(ground_graph(region).of_type("azure-native:privatedns:PrivateRecordSet"))
    found = {
        f"{body['relativeRecordSetName']}.{body['privateZoneName']}": [record["ipv4Address"] for record in body["aRecords"]]
        for body in records
    }
    expected = {}
    for cluster in planned(region).clusters:
        expected |= {member.dns_name: [member.address] for ring in (cluster.etcd, cluster.events_etcd) for member in ring.members}
        expected[cluster.api_servers.dns_name] = [cluster.api_servers.address]
    assert found == expected


@pytest.mark.parametrize("region", REGIONS)
def test_each_endpoint_leads_to_its_own_vault_or_to_the_backup_account(region: str) -> None:
    plan, graph = planned(region), ground_graph(region)
    account = naming.resource_id(
        plan.spec.subscription, plan.base_resource_group, "Microsoft.Storage", "storageAccounts", plan.backup.account
    )
    expected = {}
    for cluster in plan.clusters:
        expected |= {vault.endpoint_name: (vault.id, ["vault"]) for vault in cluster.vaults}
        expected[cluster.backup_endpoint_name] = (account, ["blob"])
    found = {}
    for body in bodies(graph.of_type("azure-native:network:PrivateEndpoint")):
        (connection,) = body["privateLinkServiceConnections"]
        found[body["privateEndpointName"]] = (connection["privateLinkServiceId"], connection["groupIds"])
    assert found == expected
    zones = bodies(graph.of_type("azure-native:network:PrivateDnsZoneGroup"))
    ends = {body["privateEndpointName"]: body["privateDnsZoneConfigs"][0]["privateDnsZoneId"].rpartition("/")[2] for body in zones}
    by_kind = {"vault": "privatelink.vaultcore.azure.net", "blob": "privatelink.blob.core.windows.net"}
    assert ends == {name: by_kind[kind] for name, (_, (kind,)) in expected.items()}


def test_endpoints_wait_for_each_other_and_for_the_peering() -> None:
    graph = ground_graph("dev")
    endpoints = graph.of_type("azure-native:network:PrivateEndpoint")
    first, *others = endpoints
    peering = next(item for item in graph.of_type("azure-native:network:VirtualNetworkPeering") if item.inputs["useRemoteGateways"])
    assert peering.urn in first.dependencies
    assert all(before.urn in after.dependencies for before, after in zip(endpoints, others, strict=False))


def test_a_peered_cluster_uses_the_hub_s_gateway_once_the_hub_offers_it() -> None:
    hub_side, cluster_side = ground_graph("dev").of_type("azure-native:network:VirtualNetworkPeering")
    assert (hub_side.inputs["allowGatewayTransit"], hub_side.inputs["useRemoteGateways"]) == (True, False)
    assert (cluster_side.inputs["allowGatewayTransit"], cluster_side.inputs["useRemoteGateways"]) == (False, True)
    assert hub_side.urn in cluster_side.dependencies
    assert [side.inputs["allowForwardedTraffic"] for side in (hub_side, cluster_side)] == [False, False]


@pytest.mark.parametrize("region", REGIONS)
def test_a_nat_gateway_and_its_addresses_stand_in_the_zone_of_its_machines(region: str) -> None:
    graph = ground_graph(region)
    gateways = {body["natGatewayName"]: body.get("zones") for body in bodies(graph.of_type("azure-native:network:NatGateway"))}
    prefixes = {
        body["publicIpPrefixName"]: (body["prefixLength"], body["zones"])
        for body in bodies(graph.of_type("azure-native:network:PublicIPPrefix"))
    }
    plans = [gateway for cluster in planned(region).clusters for gateway in cluster.network.nat_gateways]
    assert gateways == {plan.name: [plan.zone] if plan.zone else None for plan in plans}
    assert prefixes == {plan.prefix_name: (plan.prefix_length, [plan.zone] if plan.zone else ["1", "2", "3"]) for plan in plans}


def test_a_cluster_in_a_subscription_of_its_own_leaves_in_the_base_only_what_belongs_there() -> None:
    plan = planned("dev")
    moved = replace(plan, clusters=tuple(replace(cluster, subscription=OTHER_SUBSCRIPTION) for cluster in plan.clusters))
    graph = lay_ground(moved, base_graph("dev"))
    elsewhere = {str(item.id).rpartition("/providers/")[0] for item in graph if item.type.startswith("azure-native:")}
    base = f"/subscriptions/{plan.spec.subscription}/resourceGroups/{plan.base_resource_group}"
    own = f"/subscriptions/{OTHER_SUBSCRIPTION}/resourceGroups/{plan.clusters[0].resource_group}"
    scopes = {str(item.inputs["scope"]) for item in graph.of_type("azure-native:authorization:RoleAssignment")}
    assert elsewhere == {base, own} | scopes
    in_base = {item.type for item in graph if item.type.startswith("azure-native:") and str(item.id).startswith(f"{base}/")}
    assert in_base == {
        "azure-native:authorization:RoleAssignment",
        "azure-native:keyvault:Secret",
        "azure-native:network:VirtualNetworkPeering",
    }
    acting = {item.urn: item.inputs["subscriptionId"] for item in graph if item.type == "pulumi:providers:azure-native"}
    made = [item for item in graph if item.type.startswith("azure-native:")]
    assert [acting[str(item.provider)] for item in made] == [str(item.id).split("/")[2] for item in made]
    assigned = graph.of_type("azure-native:authorization:RoleAssignment")
    assert [item.inputs["roleDefinitionId"].split("/")[2] for item in assigned] == [item.inputs["scope"].split("/")[2] for item in assigned]


def test_names_of_other_peoples_vaults_and_accounts_are_still_found() -> None:
    links = bodies(ground_graph("southcentralus").of_type("azure-native:privatedns:VirtualNetworkLink"))
    policies = {(link["privateZoneName"], link.get("resolutionPolicy")) for link in links if link["privateZoneName"] in SERVICE_ZONES}
    assert policies == {(zone, "NxDomainRedirect") for zone in SERVICE_ZONES}
