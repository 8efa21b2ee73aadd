"""Every limit that a plan can reach, as data: what is bounded, by how much, who says so, what a breach means and what to do about it.

Azure's figures are dated pages of its documentation; compare them with the current page before a large order:
https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
"""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.pools import PLACEMENT_GROUPS
from components.spec.pool import NODE_SUBNET_SLOTS, NODES_PER_CLUSTER

_DOCS = "https://github.com/MicrosoftDocs/azure-docs/blob/"
_COMPUTE = "https://github.com/MicrosoftDocs/azure-compute-docs/blob/"
_NETWORK = f"{_DOCS}04cb4ea055a71c3905902eea87fa5d417de31501/includes/azure-virtual-network-limits.md"
_SERVICE_LIMITS = "https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits"
_NAT = f"{_DOCS}00595da9da44c880f778908815c2180ad72f60c8/articles/nat-gateway/nat-gateway-resource.md"
_THROTTLING = f"{_COMPUTE}1a043fb3a20b0f90dff80bad2dd8cbdff8984386/articles/virtual-machines/compute-throttling-limits.md"
_GALLERY = f"{_COMPUTE}06c2de23cadd3bca694a68fb65f2a6dfd270f19c/articles/virtual-machines/azure-compute-gallery.md"
_SCALE_SETS = f"{_DOCS}02d00dc8728a58aaf3d8af94e7223857d9a6155f/includes/azure-virtual-machine-scale-sets-limits.md"
_LARGE_CLUSTERS = "https://kubernetes.io/docs/setup/best-practices/cluster-large/"
_REFERENCE = "https://openai.com/index/scaling-kubernetes-to-7500-nodes/"
_ETCD_SIZE = "https://etcd.io/docs/v3.6/dev-guide/limit/"
_ETCD_FAQ = "https://etcd.io/docs/v3.6/faq/"
_QUOTAS = "https://learn.microsoft.com/azure/virtual-machines/quotas"


@dataclass(frozen=True)
class Limit:
    """One limit: bound in unit, None where the plan or the region file gives it; reason says what a breach means, remedy what to do.

    at_least turns the comparison round: the use must reach the bound. rule marks a bound that a plan is meant to sit at, so that
    nearness says nothing.
    """

    name: str
    bound: float | None
    unit: str
    source: str
    reason: str
    remedy: str
    at_least: bool = False
    rule: bool = False


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
VNET_ADDRESSES = Limit(
    "private addresses per virtual network",
    65_536,
    "addresses",
    _NETWORK,
    "Azure gives one virtual network no more, however large its address space",
    "lower pods_per_node (each pod has an address of its own), or move nodes to another cluster",
)
PEERED_ADDRESSES = Limit(
    "private addresses per peered group",
    128_000,
    "addresses",
    _NETWORK,
    "networks peered with one hub count together",
    "set connectivity: private-link on the largest clusters, so that they are not peered",
)
SUBNET_ADDRESSES = Limit(
    "addresses in the subnet",
    None,
    "addresses",
    "https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq",
    "a subnet holds its size less the five addresses that Azure keeps",
    "use fewer machines in this subnet",
)
NIC_ADDRESSES = Limit(
    "private addresses per network interface",
    256,
    "addresses",
    _NETWORK,
    "Azure accepts no more ipConfigurations on one interface",
    "lower pods_per_node to 255 or fewer",
)
NODE_SUBNETS = Limit(
    "last node-subnet slot",
    NODE_SUBNET_SLOTS - 1,
    "slot",
    "docs/adr/0002-addresses-by-slot.md",
    "the cluster's address block has 24 node-subnet slots, 0 to 23",
    "lower pods_per_node or nodes, or give the pool a lower slot",
)
SET_SIZE = Limit(
    "machines per scale set",
    None,
    "machines",
    PLACEMENT_GROUPS,
    "",
    "lower machines_per_set to the bound, or leave it out",
    rule=True,
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
    "spread the members over more zones",
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
BACKENDS = Limit(
    "machines behind a load balancer",
    5_000,
    "machines",
    _SERVICE_LIMITS,
    "a Standard load balancer's pool holds 5,000",
    "set load_balanced: true on fewer or smaller pools, or lower the count",
)
BACKEND_RULES = Limit(
    "backend ipConfigurations per front end",
    10_000,
    "ipConfigurations",
    _SERVICE_LIMITS,
    "each rule counts every machine once",
    "put fewer machines behind the load balancer",
)
NAT_ADDRESSES = Limit(
    "public addresses per NAT gateway",
    16,
    "addresses",
    _NAT,
    "a NAT gateway takes 16 at most",
    "use nat_prefix_length: 28 or longer",
    rule=True,
)
SNAT_PORTS = Limit(
    "SNAT ports per machine and destination",
    256,
    "ports",
    _NAT,
    "below that a few hundred parallel downloads exhaust a machine's share of its gateway",
    "use a shorter nat_prefix_length, down to 28",
    at_least=True,
)
SECURITY_RULES = Limit(
    "rules per security group",
    1_000,
    "rules",
    _NETWORK,
    "Azure accepts no more",
    "merge rules",
)
SUBNETS = Limit("subnets per virtual network", 3_000, "subnets", _NETWORK, "Azure accepts no more", "use fewer pools")
ALLOCATED = Limit(
    "machines allocated to teams",
    None,
    "machines",
    "docs/region-file.md",
    "teams are promised more machines than the pool has",
    "lower the allocations, or grow the pool",
)
MACHINES = Limit(
    "machines per subscription and region",
    25_000,
    "machines",
    _SERVICE_LIMITS,
    "Azure creates no more in one region of a subscription",
    "give the cluster a subscription of its own: clusters[].subscription",
)
SCALE_SETS = Limit(
    "scale sets per subscription and region",
    2_500,
    "scale sets",
    _SCALE_SETS,
    "Azure creates no more in one region of a subscription",
    "give the cluster a subscription of its own: clusters[].subscription",
)
SET_CREATES = Limit(
    "scale sets created in one burst",
    375,
    "requests",
    _THROTTLING,
    "Azure answers 429 beyond 375 at once, then grants 125 per minute",
    "lower create_at_once, so that fewer sets are created side by side",
)
VCPUS = Limit(
    "vCPUs granted",
    None,
    "vCPU",
    _QUOTAS,
    "Azure has granted fewer vCPUs of the family than the plan needs",
    "ask for quota (az quota update), then raise quotas[].vcpus in the region file",
)
INTERFACES = Limit(
    "network interfaces per subscription and region",
    65_536,
    "interfaces",
    _NETWORK,
    "Azure creates no more in one region of a subscription",
    "give the cluster a subscription of its own: clusters[].subscription",
)
PUBLIC_ADDRESSES = Limit(
    "public addresses per subscription and region",
    1_000,
    "addresses",
    _NETWORK,
    "Azure grants an enterprise subscription 1,000 (others 10 until they ask)",
    "use a longer nat_prefix_length, or give the cluster a subscription of its own",
)
VNETS = Limit("virtual networks per subscription and region", 1_000, "networks", _NETWORK, "Azure creates no more", "use fewer clusters")
SECURITY_GROUPS = Limit(
    "security groups per subscription and region",
    5_000,
    "groups",
    _NETWORK,
    "Azure creates no more",
    "use fewer clusters",
)
RESOURCE_GROUPS = Limit(
    "resource groups per subscription",
    980,
    "groups",
    _SERVICE_LIMITS,
    "Azure creates no more",
    "use another subscription",
)
INSTANCE_CALLS = Limit(
    "instance operations per minute and subscription",
    500,
    "requests/min",
    _THROTTLING,
    "Azure refills its bucket at 500 per minute and answers 429 beyond it",
    "lower rotation.azure_calls_per_minute of the subscription's clusters",
)
PEERINGS = Limit(
    "peerings of the hub", 500, "peerings", _NETWORK, "Azure accepts no more", "set connectivity: private-link on some clusters"
)
REPLICAS = Limit(
    "image replicas",
    100,
    "replicas",
    _GALLERY,
    "Azure keeps 100 replicas of a version, and each serves 50 machines that are created at once",
    "lower create_at_once of the pools that pin this image",
)
IMAGE_DEFINITIONS = Limit("image definitions", 1_000, "definitions", _GALLERY, "Azure keeps no more", "retire images")
IMAGE_VERSIONS = Limit("image versions", 10_000, "versions", _GALLERY, "Azure keeps no more", "retire versions")
