"""RDMA shared device plugin on the nodes of InfiniBand pools.

A pod that requests one rdma/ib gets all InfiniBand devices of its node (eight, one near each GPU), which a whole-node job needs.
"""

from __future__ import annotations

import json

from components.manifests import images, pods
from components.manifests.owned import FLEET_NAMESPACE, Object, frozen_config, name_of, service_account
from components.manifests.priorities import NODE_CRITICAL
from components.plan.model import ClusterPlan, PoolPlan
from components.spec.pool import Interconnect

CONCERN = "infiniband"
NAME = "rdma-shared-device-plugin"
CONFIG_PATH = "/k8s-rdma-shared-dev-plugin"
"""Directory of the plugin's config.json: https://github.com/Mellanox/k8s-rdma-shared-dev-plugin"""
MELLANOX_VENDOR = "15b3"
"""PCI vendor of ConnectX adapters and of their virtual functions: https://pci-ids.ucw.cz/read/PC/15b3"""
RESCAN_SECONDS = 300


def infiniband_pools(cluster: ClusterPlan) -> list[PoolPlan]:
    """Return the pools with InfiniBand."""
    return [pool for pool in cluster.pools if pool.spec.interconnect is Interconnect.INFINIBAND]


def plugin_configuration(cluster: ClusterPlan) -> Object:
    """Return the plugin's configuration: the resource rdma/ib of all interfaces from ib0, for the maximum number of pods of a node.

    It selects by interface name, because the machine's Ethernet adapter has the same vendor, and jobs do not need RDMA over Ethernet.
    """
    pools = infiniband_pools(cluster)
    ports = max(pool.size.infiniband_ports for pool in pools)
    selectors = {"vendors": [MELLANOX_VENDOR], "ifNames": [f"ib{port}" for port in range(ports)]}
    resource = {
        "resourceName": "ib",
        "resourcePrefix": "rdma",
        "rdmaHcaMax": max(pool.spec.pods_per_node for pool in pools),
        "selectors": selectors,
    }
    return {"periodicUpdateInterval": RESCAN_SECONDS, "configList": [resource]}


def _daemon_set(config: str) -> Object:
    """Return the DaemonSet of the plugin."""
    container = {
        "name": NAME,
        "image": images.RDMA_SHARED_DEVICE_PLUGIN.reference,
        "resources": pods.resources(cpu=("10m", "200m"), memory=("32Mi", "128Mi")),
        # User 0, because root owns the kubelet's plugin directories; NET_ADMIN activates the interfaces.
        "securityContext": pods.root("NET_ADMIN"),
        "volumeMounts": [
            pods.config_mount(CONFIG_PATH),
            {"name": "device-plugins", "mountPath": "/var/lib/kubelet/device-plugins"},
            {"name": "plugins-registry", "mountPath": "/var/lib/kubelet/plugins_registry"},
        ],
    }
    volumes = [
        pods.config_volume(config),
        pods.host_path("device-plugins", "/var/lib/kubelet/device-plugins", "Directory"),
        pods.host_path("plugins-registry", "/var/lib/kubelet/plugins_registry", "Directory"),
    ]
    selector = {"gpufleet.io/interconnect": Interconnect.INFINIBAND.value}
    spec = pods.pod(NAME, NODE_CRITICAL, nodeSelector=selector, containers=[container], volumes=volumes)
    return pods.daemon_set(NAME, CONCERN, FLEET_NAMESPACE, spec)


def infiniband_objects(cluster: ClusterPlan) -> list[Object]:
    """Return all objects of this concern; empty if no pool has InfiniBand."""
    if not infiniband_pools(cluster):
        return []
    data = {"config.json": json.dumps(plugin_configuration(cluster), indent=2) + "\n"}
    config = frozen_config(NAME, CONCERN, FLEET_NAMESPACE, data)
    return [service_account(NAME, CONCERN, FLEET_NAMESPACE), config, _daemon_set(name_of(config))]
