"""Limits of one cluster besides Azure's, as data: Kubernetes, etcd, API servers, and rules of this project."""

from __future__ import annotations

from components.plan.limit import Limit
from components.spec.pool import NODE_SUBNET_SLOTS, NODES_PER_CLUSTER, PLACEMENT_GROUPS

_DOCS = "https://github.com/MicrosoftDocs/azure-docs/blob/"
NAT = f"{_DOCS}00595da9da44c880f778908815c2180ad72f60c8/articles/nat-gateway/nat-gateway-resource.md"
_LARGE_CLUSTERS = "https://kubernetes.io/docs/setup/best-practices/cluster-large/"
_REFERENCE = "https://openai.com/index/scaling-kubernetes-to-7500-nodes/"
_ETCD_SIZE = "https://etcd.io/docs/v3.6/dev-guide/limit/"
_ETCD_FAQ = "https://etcd.io/docs/v3.6/faq/"

NODES = Limit(
    "nodes per cluster",
    NODES_PER_CLUSTER,
    "nodes",
    _REFERENCE,
    "no published design runs more, and one API server's memory grows with every node",
    "move nodes to another cluster of the region",
)
PODS = Limit(
    "pods per cluster",
    150_000,
    "pods",
    _LARGE_CLUSTERS,
    "Kubernetes is tested to 150,000 pods",
    "lower pods_per_node, or move nodes to another cluster",
)
PODS_PER_NODE = Limit(
    "pods per node",
    110,
    "pods",
    _LARGE_CLUSTERS,
    "Kubernetes is tested to 110 pods on a node",
    "lower pods_per_node to 110 or fewer",
)
NODE_SUBNETS = Limit(
    "last node-subnet slot",
    NODE_SUBNET_SLOTS - 1,
    "slot",
    "docs/adr/0002-addresses-by-slot.md",
    "the cluster's address block has 24 node-subnet slots, 0 to 23",
    "lower pods_per_node or nodes, or move nodes to another cluster",
)
GANG = Limit(
    "machines of the largest gang",
    None,
    "machines",
    PLACEMENT_GROUPS,
    "InfiniBand connects machines of one scale set only, so a gang must fit one set",
    "lower largest_gang to the bound, or run the job over Ethernet",
    rule=True,
)
ETCD_MEMBERS = Limit(
    "etcd members",
    None,
    "members",
    _ETCD_FAQ,
    "an even number survives no more failures than the odd number below it, and more than seven slow every write",
    "use 3, 5 or 7 members",
    rule=True,
)
ETCD_ZONE = Limit(
    "etcd members in one zone",
    None,
    "members",
    _ETCD_FAQ,
    "the loss of that zone would leave no quorum",
    "use an odd number of members over all three zones",
    rule=True,
)
ETCD_STORE = Limit(
    "etcd data",
    8,
    "GiB",
    _ETCD_SIZE,
    "etcd suggests at most 8 GiB, and refuses writes at its quota",
    "move nodes to another cluster",
)
ETCD_DISK = Limit(
    "etcd disk",
    None,
    "GiB",
    _ETCD_SIZE,
    "database, snapshots and write-ahead log need three times the quota on the machine's local NVMe",
    "choose a VM size with more local NVMe, for example Standard_L8s_v3",
)
API_MEMORY = Limit(
    "API server memory",
    None,
    "GiB",
    _REFERENCE,
    "each API server needs about 9.3 MB per node, and 4 GiB for what runs beside it",
    "choose a larger VM size for the API servers, for example Standard_D32s_v5 (128 GiB) or Standard_E32s_v5 (256 GiB)",
)
SNAT_PORTS = Limit(
    "SNAT ports per machine and destination",
    256,
    "ports",
    NAT,
    "below that a few hundred parallel downloads exhaust a machine's share of its gateway",
    "use a shorter nat_prefix_length, down to 28",
    at_least=True,
)
NAT_DESTINATION_CONNECTIONS = Limit(
    "NAT connections per machine to one destination",
    256,
    "connections",
    NAT,
    "a gateway carries 50,000 to one destination for each public address, fewer than the address has ports",
    "use a shorter nat_prefix_length, down to 28",
    at_least=True,
)
NAT_CONNECTIONS = Limit(
    "NAT connections per machine",
    256,
    "connections",
    NAT,
    "a gateway carries 2,000,000 to all destinations together, and a machine could not use its ports to one of them",
    "lower machines_per_set, or raise pods_per_node, so that fewer machines share a subnet",
    at_least=True,
)
# Packets have no limit here: a gateway carries 1 to 5 million per second, but the plan has no packet sizes of jobs.
NAT_THROUGHPUT = Limit(
    "NAT throughput per machine",
    None,
    "Mbit/s",
    NAT,
    "a gateway carries 50 Gbit/s, and what its machines fetch at once no region file declares",
    "fetch images and data over private endpoints, which pass no gateway",
    at_least=True,
)
ALLOCATED = Limit(
    "machines allocated to teams",
    None,
    "machines",
    "docs/region-file.md",
    "teams are promised more machines than the pool has",
    "lower the allocations, or grow the pool",
    rule=True,
)
