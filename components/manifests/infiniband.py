"""How InfiniBand devices become schedulable: the RDMA shared device plugin on the nodes of InfiniBand pools.

A pod that asks for one rdma/ib gets all InfiniBand devices of its node, which a whole-node job wants: eight, one beside each GPU.
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
"""Where the plugin looks for config.json: https://github.com/Mellanox/k8s-rdma-shared-dev-plugin"""
MELLANOX_VENDOR = "15b3"
"""PCI vendor of ConnectX adapters and of their virtual functions: https://pci-ids.ucw.cz/read/PC/15b3"""
RESCAN_SECONDS = 300


def infiniband_pools(cluster: ClusterPlan) -> list[PoolPlan]:
    """Pools whose machines are joined by InfiniBand."""
    return [pool for pool in cluster.pools if pool.spec.interconnect is Interconnect.INFINIBAND]


def plugin_configuration(cluster: ClusterPlan) -> Object:
    """Configuration of the plugin: the resource rdma/ib, of all interfaces ib0 upwards, for as many pods as a node can hold.

    By interface name, because the machine's Ethernet adapter is of the same vendor, and RDMA over it is not what a job wants.
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
    """The plugin on every InfiniBand node."""
    container = {
        "name": NAME,
        "image": images.RDMA_SHARED_DEVICE_PLUGIN.reference,
        "resources": pods.resources(cpu=("10m", "200m"), memory=("32Mi", "128Mi")),
        # User 0, because the kubelet's plug-in directories are root's; NET_ADMIN brings the interfaces up.
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
    """All objects of this concern; none where no pool has InfiniBand."""
    if not infiniband_pools(cluster):
        return []
    data = {"config.json": json.dumps(plugin_configuration(cluster), indent=2) + "\n"}
    config = frozen_config(NAME, CONCERN, FLEET_NAMESPACE, data)
    return [service_account(NAME, CONCERN, FLEET_NAMESPACE), config, _daemon_set(name_of(config))]
