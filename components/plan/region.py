"""Plan of a region, computed from its region file and the image catalog."""

from __future__ import annotations

import math

from components.plan import addresses, naming
from components.plan.access import BOOTSTRAP_TOKEN
from components.plan.control_plane import plan_api_servers, plan_etcd
from components.plan.model import (
    BackupPlan,
    ClusterPlan,
    GalleryPlan,
    HubPlan,
    IdentityPlan,
    ImagePlan,
    IngressPlan,
    PoolPlan,
    RegionPlan,
    VaultPlan,
)
from components.plan.network import plan_hub, plan_network
from components.plan.pod_network import plan_pod_network
from components.plan.pools import concurrent_sets, plan_pool, pool_layout
from components.plan.vm_sizes import VM_SIZES
from components.spec.cluster import Cluster
from components.spec.images import ImageCatalog
from components.spec.region import Region

MACHINES_PER_REPLICA = 50
"""Machines that can be created at the same time from one image replica:
https://github.com/MicrosoftDocs/azure-compute-docs/blob/06c2de23cadd3bca694a68fb65f2a6dfd270f19c/articles/virtual-machines/azure-compute-gallery.md"""
VAULT_SECRETS = {
    "etcd": ("etcd-ca-cert", "events-ca-cert"),
    "control": (
        "cluster-ca-cert",
        "cluster-ca-key",
        "front-proxy-ca-cert",
        "front-proxy-client-cert",
        "front-proxy-client-key",
        "etcd-ca-cert",
        "etcd-client-cert",
        "etcd-client-key",
        "events-ca-cert",
        "events-client-cert",
        "events-client-key",
        "apiserver-cert",
        "apiserver-key",
        "apiserver-kubelet-client-cert",
        "apiserver-kubelet-client-key",
        "service-account-key",
        "service-account-public-key",
        "controller-manager-cert",
        "controller-manager-key",
        "scheduler-cert",
        "scheduler-key",
        "csr-approver-cert",
        "csr-approver-key",
        "admin-cert",
        "admin-key",
        "encryption-key",
    ),
    "node": ("cluster-ca-cert", BOOTSTRAP_TOKEN),
}
"""Secrets of a cluster by vault; a machine's identity can read one vault. Certificate and key of each etcd member are added."""


def _creates(pin: str, cluster: Cluster, catalog: ImageCatalog) -> int:
    """Return the number of machines of a cluster that are created in parallel from an image version."""
    plane = cluster.control_plane
    groups = sum(group.count for group in (plane.api_servers, plane.etcd, plane.events_etcd) if group.image == pin)
    store = catalog.definition(pin).store
    pools = (pool for pool in cluster.pools if pool.image == pin)
    return groups + sum(min(pool.nodes, concurrent_sets(pool, pool_layout(pool, store)[0]) * pool_layout(pool, store)[0]) for pool in pools)


def _image(region: Region, catalog: ImageCatalog, pin: str) -> ImagePlan:
    """Return the plan of a published image version."""
    name, _, version = pin.partition("@")
    group, gallery = naming.base_resource_group(region.name), naming.gallery(region.name)
    creates = sum(_creates(pin, cluster, catalog) for cluster in region.clusters)
    path = ("galleries", gallery, "images", name)
    return ImagePlan(
        pin=pin,
        definition=catalog.definition(pin),
        version=version,
        definition_id=naming.resource_id(region.subscription, group, "Microsoft.Compute", *path),
        version_id=naming.resource_id(region.subscription, group, "Microsoft.Compute", *path, "versions", version),
        capture=catalog.captures(pin).get(region.location),
        replicas=max(1, math.ceil(creates / MACHINES_PER_REPLICA)),
    )


def gallery_pins(region: Region, catalog: ImageCatalog) -> tuple[str, ...]:
    """Return the pins in the region's gallery, sorted: all pinned versions, and of each pinned image the versions captured in its location.

    A version leaves the gallery when it leaves node-images/versions.yaml, not when a pin changes, since machines may still run it.
    """
    planes = [cluster.control_plane for cluster in region.clusters]
    pins = [group.image for plane in planes for group in (plane.api_servers, plane.etcd, plane.events_etcd)]
    pins += [pool.image for cluster in region.clusters for pool in cluster.pools]
    names = {pin.partition("@")[0] for pin in pins}
    return tuple(sorted({*pins, *(pin for pin in catalog.pins(region.location) if pin.partition("@")[0] in names)}))


def _vault(region: Region, subscription: str, cluster: str, role: str, secrets: tuple[str, ...]) -> VaultPlan:
    """Return the plan of a vault of a cluster, in the base stack's resource group."""
    name = naming.vault(subscription, region.name, cluster, role)
    return VaultPlan(
        role=role,
        name=name,
        id=naming.resource_id(region.subscription, naming.base_resource_group(region.name), "Microsoft.KeyVault", "vaults", name),
        uri=f"https://{name}.vault.azure.net",
        endpoint_name=naming.of_cluster(cluster, f"vault-{role}-endpoint"),
        secrets=secrets,
    )


def _vaults(region: Region, cluster: Cluster) -> tuple[VaultPlan, ...]:
    """Return the three vaults of a cluster; the etcd vault includes the secrets of each etcd member."""
    plane = cluster.control_plane
    members = [f"{role}-{number}" for role, group in (("etcd", plane.etcd), ("events", plane.events_etcd)) for number in range(group.count)]
    own = tuple(f"{member}-{part}" for member in members for part in ("cert", "key"))
    return tuple(
        _vault(region, region.subscription, cluster.name, role, secrets + (own if role == "etcd" else ()))
        for role, secrets in VAULT_SECRETS.items()
    )


def _identity(region: Region, cluster: Cluster, role: str) -> IdentityPlan:
    """Return the plan of an identity of a cluster, in the cluster's resource group."""
    name, group = naming.of_cluster(cluster.name, f"id-{role}"), naming.resource_group(region.name, cluster.name)
    subscription = cluster.subscription or region.subscription
    return IdentityPlan(role, name, naming.resource_id(subscription, group, "Microsoft.ManagedIdentity", "userAssignedIdentities", name))


def _ingress(cluster: Cluster, pools: tuple[PoolPlan, ...], block: addresses.Network) -> IngressPlan | None:
    """Return the plan of the ingress load balancer; None without load-balanced pools."""
    balanced = [pool for pool in pools if pool.spec.load_balanced]
    if not balanced:
        return None
    return IngressPlan(
        load_balancer=naming.of_cluster(cluster.name, "ingress-lb"),
        address=addresses.host(addresses.control_subnet(block, "ingress"), addresses.FIRST_USABLE),
        pools=tuple(pool.name for pool in balanced),
        machines=sum(pool.spec.nodes for pool in balanced),
    )


def plan_region(region: Region, catalog: ImageCatalog) -> RegionPlan:
    """Return the plan of a region; it exists for every region file that the reader accepts.

    A plan may break limits; components.plan.limits.check returns them. Raise KeyError for an unknown VM size or image pin, which the
    reader rejects.
    """
    hub = plan_hub(region)
    images = {pin: _image(region, catalog, pin) for pin in gallery_pins(region, catalog)}
    return RegionPlan(
        spec=region,
        base_resource_group=naming.base_resource_group(region.name),
        base_stack=f"{region.name}-base",
        stack=region.name,
        tags=naming.tags(region.name),
        hub=hub,
        gallery=GalleryPlan(naming.gallery(region.name), tuple(image for image in images.values() if image.in_gallery)),
        backup=BackupPlan(
            account=naming.storage_account(region.subscription, region.name),
            sku="Standard_ZRS" if region.backup.zone_redundant else "Standard_LRS",
            retention_days=region.backup.retention_days,
        ),
        clusters=tuple(_cluster(region, cluster, images, hub) for cluster in region.clusters),
    )


def _cluster(region: Region, cluster: Cluster, images: dict[str, ImagePlan], hub: HubPlan) -> ClusterPlan:
    """Return the plan of a cluster."""
    plane = cluster.control_plane
    block = addresses.cluster_block(region.address_space, cluster.slot)
    pools = tuple(plan_pool(cluster.name, pool, VM_SIZES[pool.vm_size], images[pool.image]) for pool in cluster.pools)
    nodes = sum(pool.spec.nodes for pool in pools)
    network = plan_network(region, cluster, pools, hub)
    zone = network.private_zone
    return ClusterPlan(
        spec=cluster,
        subscription=cluster.subscription or region.subscription,
        resource_group=naming.resource_group(region.name, cluster.name),
        tags=naming.tags(region.name, cluster.name),
        connectivity=cluster.connectivity,
        network=network,
        pod_network=plan_pod_network(cluster, network, hub),
        etcd=plan_etcd(region.name, cluster, "etcd", plane.etcd, images[plane.etcd.image], nodes, zone, block),
        events_etcd=plan_etcd(region.name, cluster, "events", plane.events_etcd, images[plane.events_etcd.image], nodes, zone, block),
        api_servers=plan_api_servers(
            cluster, cluster.slot, images[plane.api_servers.image], nodes, zone, block, addresses.Network(hub.subnet("endpoints").cidr)
        ),
        ingress=_ingress(cluster, pools, block),
        pools=pools,
        vaults=_vaults(region, cluster),
        identities=tuple(_identity(region, cluster, role) for role in VAULT_SECRETS),
        backup_container=cluster.name,
        backup_url=f"https://{naming.storage_account(region.subscription, region.name)}.blob.core.windows.net/{cluster.name}",
        backup_endpoint_name=naming.of_cluster(cluster.name, "backup-endpoint"),
    )
