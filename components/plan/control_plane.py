"""Plan of the control plane: sizes, names and addresses of its machines."""

from __future__ import annotations

from components.plan import addresses, naming
from components.plan.model import ApiServersPlan, EtcdMemberPlan, EtcdPlan, ImagePlan
from components.plan.vm_sizes import GIB, VM_SIZES
from components.spec.cluster import Cluster, Connectivity, MachineGroup

HEAP_PER_NODE_BYTES = 9_300_000
"""API-server heap per node: up to 70 GB at 7,500 nodes, https://openai.com/index/scaling-kubernetes-to-7500-nodes/"""
BESIDE_API_SERVER_BYTES = 4 * GIB
"""Memory of an API-server machine for controller manager, scheduler and the system; measured at 7,500 nodes: 0.33 GB and below 1 GB."""
STORE_PER_NODE_BYTES = 320_000
"""etcd bytes per node: 32 GB at 100,000 nodes, https://aws.amazon.com/blogs/containers/under-the-hood-amazon-eks-ultra-scale-clusters/"""
EVENTS_PER_NODE_BYTES = 100_000
"""Event bytes per node in their lifetime of an hour: about 100 events of 1 kB."""
STORE_HEADROOM = 2
"""Factor for the history between two compactions and space to defragment."""
QUOTA_STEPS = (2 * GIB, 4 * GIB, 8 * GIB, 16 * GIB)
"""Possible etcd quotas; 2 GiB is etcd's default: https://etcd.io/docs/v3.6/dev-guide/limit/"""
DISK_PER_QUOTA = 3
"""Database, snapshots and write-ahead log together, as multiples of the quota."""
INFLIGHT_BY_MEMORY = ((128, 3_000, 1_000), (64, 1_500, 500), (0, 400, 200))
"""Maximum requests in flight, all and mutating, by GiB of an API server's machine, largest first. This project chose the numbers, starting
from the default of 400 and 200. They do not depend on the number of nodes, since growth would then change the boot files of API servers."""
FIRST_MEMBER_OFFSET = 10
ETCD_PLAYBOOK = "playbooks/etcd-replace.yml"
PRIVATE_LINK_ADDRESSES = 2
"""Source addresses of a private link service; each supports about 64,000 connections."""
HUB_ENDPOINT_OFFSET = 10


def quota_bytes(nodes: int, per_node: int) -> int:
    """Return the etcd quota for a number of nodes: the smallest step of at least twice their data, otherwise the largest step."""
    needed = nodes * per_node * STORE_HEADROOM
    return next((step for step in QUOTA_STEPS if step >= needed), QUOTA_STEPS[-1])


def plan_etcd(
    region: str, cluster: Cluster, role: str, group: MachineGroup, image: ImagePlan, nodes: int, zone: str, block: addresses.Network
) -> EtcdPlan:
    """Return the plan of an etcd cluster; role is "etcd" or "events", zone the private DNS zone of the members' names."""
    subnet = addresses.control_subnet(block, role)
    members = tuple(
        EtcdMemberPlan(
            member=number,
            name=naming.of_cluster(cluster.name, f"{role}-{number}"),
            nic_name=naming.of_cluster(cluster.name, f"{role}-{number}-nic"),
            disk_name=naming.of_cluster(cluster.name, f"{role}-{number}-os"),
            dns_name=f"{role}-{number}.{zone}",
            address=addresses.host(subnet, FIRST_MEMBER_OFFSET + number),
            zone=group.zones[number % len(group.zones)].value,
        )
        for number in range(min(group.count, addresses.usable(subnet) - FIRST_MEMBER_OFFSET))
    )
    quota = quota_bytes(nodes, STORE_PER_NODE_BYTES if role == "etcd" else EVENTS_PER_NODE_BYTES)
    return EtcdPlan(
        role=role,
        size=VM_SIZES[group.vm_size],
        image=image,
        members=members,
        token=f"{region}-{cluster.name}-{role}",
        quota_bytes=quota,
        data_bytes_needed=quota * DISK_PER_QUOTA,
        changed_by=ETCD_PLAYBOOK,
    )


def plan_api_servers(
    cluster: Cluster, region_slot: int, image: ImagePlan, nodes: int, zone: str, block: addresses.Network, hub: addresses.Network
) -> ApiServersPlan:
    """Return the plan of the API servers; region_slot is the cluster's slot, which sets the address of its private endpoint in the hub."""
    group = cluster.control_plane.api_servers
    size = VM_SIZES[group.vm_size]
    name = naming.of_cluster(cluster.name, "api")
    linked = cluster.connectivity is Connectivity.PRIVATE_LINK
    link = addresses.control_subnet(block, "private-link")
    inflight = next(row for row in INFLIGHT_BY_MEMORY if size.memory_gib >= row[0])
    return ApiServersPlan(
        name=name,
        computer_name_prefix=naming.computer_name_prefix(name),
        size=size,
        image=image,
        count=group.count,
        zones=tuple(item.value for item in group.zones),
        load_balancer=naming.of_cluster(cluster.name, "api-lb"),
        address=addresses.host(addresses.control_subnet(block, "api"), addresses.FIRST_USABLE),
        dns_name=f"api.{zone}",
        private_link_name=naming.of_cluster(cluster.name, "api-link") if linked else None,
        private_link_addresses=tuple(addresses.host(link, addresses.FIRST_USABLE + n) for n in range(PRIVATE_LINK_ADDRESSES))
        if linked
        else (),
        endpoint_name=naming.of_cluster(cluster.name, "api-endpoint") if linked else None,
        endpoint_address=addresses.host(hub, HUB_ENDPOINT_OFFSET + region_slot) if linked else None,
        memory_needed_bytes=nodes * HEAP_PER_NODE_BYTES + BESIDE_API_SERVER_BYTES,
        heap_limit_bytes=max(size.memory_gib * GIB - BESIDE_API_SERVER_BYTES, GIB) * 9 // 10,
        max_requests_inflight=inflight[1],
        max_mutating_requests_inflight=inflight[2],
    )
