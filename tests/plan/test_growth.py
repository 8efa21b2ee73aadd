"""Growth moves nothing: more nodes, pools, clusters or teams leave every address, name, subnet and set where it is."""

from __future__ import annotations

import copy
import ipaddress
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import event, given, settings
from hypothesis import strategies as st

from components.plan.cluster_limits import NODE_SUBNETS
from components.plan.limits import broken
from components.plan.model import ClusterPlan, RegionPlan
from components.plan.region import plan_region
from components.plan.validation import validate_region
from components.spec.region import Region
from stacks.load import REGIONS, load_catalog, load_plan, region_names

CATALOG = load_catalog()
DOCUMENTS: dict[str, dict[str, Any]] = {name: yaml.safe_load((REGIONS / f"{name}.yaml").read_text()) for name in region_names()}


def plan_of(document: dict[str, Any]) -> RegionPlan:
    """Plan of a raw document."""
    return plan_region(Region.model_validate(document), CATALOG)


def layout(plan: RegionPlan) -> dict[str, object]:
    """Return all deployed names and addresses that must not move, by key, without capacities, replicas and sizes."""
    facts: dict[str, object] = {
        "hub": (plan.hub.vnet_name, plan.hub.address_prefix, plan.hub.client_pool, plan.hub.subnets, plan.hub.resolver_address),
        "gallery": plan.gallery.name,
        "backup": plan.backup,
    }
    for cluster in plan.clusters:
        facts |= {f"{cluster.name}/{key}": value for key, value in cluster_layout(cluster).items()}
    return facts


def cluster_layout(cluster: ClusterPlan) -> dict[str, object]:
    """The part of a cluster that must not move."""
    network = cluster.network
    facts: dict[str, object] = {
        "group": (cluster.resource_group, cluster.subscription),
        "network": (network.vnet_name, network.address_prefixes, network.service_cidr, network.dns_service_address, network.private_zone),
        "api": (cluster.api_servers.name, cluster.api_servers.address, cluster.api_servers.dns_name, cluster.api_servers.endpoint_address),
        "identities": cluster.identities,
    }
    facts |= {f"subnet {subnet.role}": (subnet.name, subnet.cidr, subnet.nat_gateway, subnet.security_group) for subnet in network.subnets}
    facts |= {f"gateway {gateway.role}": gateway for gateway in network.nat_gateways}
    facts |= {f"rules {group.role}": group for group in network.security_groups}
    facts |= {f"vault {vault.role}": (vault.name, vault.id) for vault in cluster.vaults}
    for member in (*cluster.etcd.members, *cluster.events_etcd.members):
        facts[f"member {member.name}"] = member
    for pool in cluster.pools:
        for item in pool.scale_sets:
            facts[f"set {item.name}"] = (item.computer_name_prefix, item.subnet_role, item.infiniband_domain, item.single_placement_group)
        facts[f"pool {pool.name}"] = (pool.addresses_per_machine, pool.machines_per_set, pool.labels, pool.taints)
    return facts


def more_nodes(document: dict[str, Any], cluster: int, pool: int, count: int) -> None:
    """Grow a pool."""
    target = document["clusters"][cluster % len(document["clusters"])]
    chosen = target["pools"][pool % len(target["pools"])]
    chosen["nodes"] = min(chosen["nodes"] + count, 7_500)


def more_pools(document: dict[str, Any], cluster: int, pool: int, count: int) -> None:
    """Add a pool in the cluster's last node-subnet slot, before or after the others."""
    target = document["clusters"][cluster % len(document["clusters"])]
    new = dict(copy.deepcopy(target["pools"][0]), name="added", slot=23, nodes=count % 400, load_balanced=False)
    new.pop("largest_gang", None)  # it may be more than the few nodes
    target["pools"].insert(pool % (len(target["pools"]) + 1), new)


def more_clusters(document: dict[str, Any], cluster: int, pool: int, count: int) -> None:
    """Add a cluster in a free slot, before or after the others."""
    new = copy.deepcopy(document["clusters"][pool % len(document["clusters"])])
    slot = max(other["slot"] for other in document["clusters"]) + 1 + count % 2
    document["clusters"].insert(cluster % (len(document["clusters"]) + 1), dict(new, name="added", slot=slot))


def more_teams(document: dict[str, Any], cluster: int, pool: int, count: int) -> None:
    """Add a team."""
    teams = document["clusters"][cluster % len(document["clusters"])]["tenancy"]["teams"]
    teams.insert(pool % (len(teams) + 1), {"name": f"team-{count}", "group": "0f8c1f0e-6a54-4b58-9e0a-1d8b8e2f4aff"})


GROWTH: tuple[Callable[[dict[str, Any], int, int, int], None], ...] = (more_nodes, more_pools, more_clusters, more_teams)
STEPS = st.lists(st.tuples(st.sampled_from(GROWTH), st.integers(0, 5), st.integers(0, 5), st.integers(1, 3_000)), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(region_names()), steps=STEPS)
def test_growth_moves_no_address_name_subnet_or_set(name: str, steps: list[Any]) -> None:
    document = copy.deepcopy(DOCUMENTS[name])
    for grow, *numbers in steps:
        before = copy.deepcopy(document)
        grow(document, *numbers)
        if validate_region(document, name, CATALOG, {}):
            document = before
        else:
            event(grow.__name__)
    old, new = plan_of(DOCUMENTS[name]), plan_of(document)
    moved = {key: (value, layout(new).get(key)) for key, value in layout(old).items() if layout(new).get(key) != value}
    assert moved == {}
    assert_only_last_sets_grow(old, new)


def assert_only_last_sets_grow(old: RegionPlan, new: RegionPlan) -> None:
    """Check that no set shrank, and that only the last set of a pool grew."""
    clusters = {cluster.name: cluster for cluster in new.clusters}
    for cluster in old.clusters:
        pools = {pool.name: pool for pool in clusters[cluster.name].pools}
        for pool in cluster.pools:
            for index, item in enumerate(pool.scale_sets):
                grown = pools[pool.name].scale_sets[index].capacity - item.capacity
                assert grown >= 0
                assert grown == 0 or index == len(pool.scale_sets) - 1


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(region_names()), steps=STEPS)
def test_every_subnet_lies_inside_its_network_and_overlaps_no_other(name: str, steps: list[Any]) -> None:
    document = copy.deepcopy(DOCUMENTS[name])
    for grow, *numbers in steps:
        grow(document, *numbers)
    plan = plan_of(document)
    if validate_region(document, name, CATALOG, {}):
        return
    space = ipaddress.IPv4Network(plan.spec.address_space)
    taken: list[ipaddress.IPv4Network] = [ipaddress.IPv4Network(plan.hub.client_pool)]
    for prefixes, subnets, services in (
        ((plan.hub.address_prefix,), plan.hub.subnets, None),
        *((cluster.network.address_prefixes, cluster.network.subnets, cluster.network.service_cidr) for cluster in plan.clusters),
    ):
        nets = [ipaddress.IPv4Network(subnet.cidr) for subnet in subnets]
        for net in nets:
            assert sum(net.subnet_of(ipaddress.IPv4Network(prefix)) for prefix in prefixes) == 1
        taken += nets + ([ipaddress.IPv4Network(services)] if services else [])
    assert all(net.subnet_of(space) for net in taken)
    assert not any(one.overlaps(two) for one, two in itertools.combinations(taken, 2))


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(region_names()), steps=STEPS)
def test_scale_sets_hold_exactly_the_pools_machines_and_fit_their_subnets(name: str, steps: list[Any]) -> None:
    document = copy.deepcopy(DOCUMENTS[name])
    for grow, *numbers in steps:
        grow(document, *numbers)
    plan = plan_of(document)
    if validate_region(document, name, CATALOG, {}) or any(row.limit == NODE_SUBNETS.name for row in broken(plan)):
        return
    for cluster in plan.clusters:
        for pool in cluster.pools:
            assert sum(item.capacity for item in pool.scale_sets) == pool.spec.nodes
            assert all(0 < item.capacity <= item.bound for item in pool.scale_sets)
            for role in pool.subnet_roles:
                machines = sum(item.capacity for item in pool.scale_sets if item.subnet_role == role)
                usable = ipaddress.IPv4Network(cluster.network.subnet(role).cidr).num_addresses - 5
                assert machines <= 1_000
                assert machines * pool.addresses_per_machine <= usable


@pytest.mark.parametrize("name", region_names())
def test_the_layout_of_a_shipped_region_is_pinned(name: str, golden: Callable[[str, str], None]) -> None:
    lines = [f"{key}: {value}" for key, value in layout(load_plan(name)).items()]
    golden(f"plan/{name}-layout.txt", "\n".join(lines) + "\n")


def test_no_hub_puts_its_dns_resolver_where_azure_refuses_one() -> None:
    refused = (ipaddress.IPv4Address("10.0.1.0"), ipaddress.IPv4Address("10.0.16.255"))
    for space in ("10.0.0.0/9", "10.0.0.0/13", "10.128.0.0/11"):
        address = ipaddress.IPv4Address(plan_of(dict(DOCUMENTS["dev"], address_space=space)).hub.resolver_address)
        assert not refused[0] <= address <= refused[1]
