"""CNI configuration list of Microsoft's plugins, which is the same on every machine.

The node program writes the list of the native network, because that list contains the machine's own addresses.
"""

from __future__ import annotations

import json

from components.plan.addresses import NODE_LOCAL_DNS_ADDRESS
from components.plan.pod_network import PodNetworkPlan
from components.spec.pod_network import Cni

AZURE_PATH = "/etc/cni/net.d/10-azure.conflist"
MODE = "0600"
"""File mode that Azure's own installation sets:
https://github.com/Azure/aks-engine/blob/master/parts/k8s/cloud-init/artifacts/cse_config.sh
"""
AZURE_PLUGINS = ("azure-vnet", "azure-vnet-ipam", "portmap", "loopback")
"""Programs in /opt/cni/bin that the list and containerd call: docs/node-images.md."""
CNI_VERSION = "0.3.0"
"""Second newest version that the plugins support, and the one in their published example:
https://github.com/Azure/azure-container-networking/blob/cbd7560cfc18572a7182d30a68e882b6107c004c/docs/cni.md#network-configuration
"""
MASTER = "eth0"


def planned(network: PodNetworkPlan) -> dict[str, str]:
    """Return the lists that a machine's boot writes, by path; none for the native network."""
    return {AZURE_PATH: azure_vnet()} if network.cni is Cni.AZURE_VNET else {}


def azure_vnet() -> str:
    """Return the list of
    https://github.com/Azure/azure-container-networking/blob/cbd7560cfc18572a7182d30a68e882b6107c004c/cni/azure-linux.conflist.

    mode: without it the plugin uses tunnel, which bridges the card and sends packets between two pods of a machine through Azure
    (network/network.go, docs/network.md there).
    master: without it the plugin uses the first link with an address of the subnet (cni/network/network.go).
    ipsToRouteViaHost: the node's DNS cache answers on the machine itself.
    """
    plugins = [
        {
            "type": "azure-vnet",
            "mode": "transparent",
            "master": MASTER,
            "ipsToRouteViaHost": [NODE_LOCAL_DNS_ADDRESS],
            "ipam": {"type": "azure-vnet-ipam"},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True},
    ]
    return json.dumps({"cniVersion": CNI_VERSION, "name": "azure", "plugins": plugins}, indent=1) + "\n"
