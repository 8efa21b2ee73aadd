"""Which names and fixed addresses the cluster's DNS has, besides the addresses of its services."""

from __future__ import annotations

CLUSTER_DOMAIN = "cluster.local"
"""Domain of services and pods; kubelets and CoreDNS must agree on it."""
NODE_LOCAL_DNS_ADDRESS = "169.254.20.10"
"""Address of the DNS cache on every node: https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns/"""
AZURE_DNS_ADDRESS = "168.63.129.16"
"""Azure's resolver, the same in every virtual network: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""
