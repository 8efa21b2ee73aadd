"""Limits of Azure, as data; sources are dated pages, so compare a figure with the current page before you order capacity.

https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
"""

from __future__ import annotations

from components.plan.limit import Limit
from components.spec.pool import PLACEMENT_GROUPS

_DOCS = "https://github.com/MicrosoftDocs/azure-docs/blob/"
_COMPUTE = "https://github.com/MicrosoftDocs/azure-compute-docs/blob/"
_NETWORK = f"{_DOCS}04cb4ea055a71c3905902eea87fa5d417de31501/includes/azure-virtual-network-limits.md"
_SERVICE_LIMITS = "https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits"
_NAT = f"{_DOCS}00595da9da44c880f778908815c2180ad72f60c8/articles/nat-gateway/nat-gateway-resource.md"
_THROTTLING = f"{_COMPUTE}1a043fb3a20b0f90dff80bad2dd8cbdff8984386/articles/virtual-machines/compute-throttling-limits.md"
_GALLERY = f"{_COMPUTE}06c2de23cadd3bca694a68fb65f2a6dfd270f19c/articles/virtual-machines/azure-compute-gallery.md"
_SCALE_SETS = f"{_DOCS}02d00dc8728a58aaf3d8af94e7223857d9a6155f/includes/azure-virtual-machine-scale-sets-limits.md"
_ARM_THROTTLING = (
    f"{_DOCS}03dc00740993dc1f8ba14bd7a85a99258bd5574a/articles/azure-resource-manager/management/request-limits-and-throttling.md"
)
_QUOTAS = "https://learn.microsoft.com/azure/virtual-machines/quotas"

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
SET_SIZE = Limit(
    "machines per scale set",
    None,
    "machines",
    PLACEMENT_GROUPS,
    "",
    "lower machines_per_set to the bound, or leave it out",
    rule=True,
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
SECURITY_RULES = Limit(
    "rules per security group",
    1_000,
    "rules",
    _NETWORK,
    "Azure accepts no more",
    "merge rules",
)
SUBNETS = Limit("subnets per virtual network", 3_000, "subnets", _NETWORK, "Azure accepts no more", "use fewer pools")
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
REGIONAL_VCPUS = Limit(
    "vCPUs granted to all families together",
    None,
    "vCPU",
    _QUOTAS,
    "Azure bounds the sum over all families beside each family (Total Regional vCPUs), and new subscriptions meet that bound first",
    "ask for quota of the total too (az quota update, resource cores), then raise it under quotas: {family: cores, vcpus: …}",
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
    "lower rotation.azure_calls_per_minute of the subscription's clusters, or clusters_rotating_at_once",
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
GALLERIES = Limit(
    "image galleries per subscription and region",
    100,
    "galleries",
    _GALLERY,
    "Azure keeps no more in one region of a subscription",
    "give some of the regions a subscription of their own",
)
IMAGE_DEFINITIONS = Limit(
    "image definitions per subscription and region", 1_000, "definitions", _GALLERY, "Azure keeps no more", "retire images"
)
IMAGE_VERSIONS = Limit("image versions per subscription and region", 10_000, "versions", _GALLERY, "Azure keeps no more", "retire versions")
NETWORK_WRITES = Limit(
    "network resources written by one update",
    1_000,
    "writes",
    _ARM_THROTTLING,
    "Azure takes 1,000 writes to Microsoft.Network in 5 minutes and answers 429 beyond them",
    "give some of the clusters a subscription of their own, or add them one update at a time",
)
REQUEST_BODY = Limit(
    "request body",
    4_194_304,
    "bytes",
    _SERVICE_LIMITS,
    "Azure Resource Manager takes no longer request",
    "put less into one resource, for example fewer rules or addresses",
)
CUSTOM_DATA = Limit(
    "custom data of a machine",
    87_380,
    "base64 characters",
    "https://github.com/Azure/aks-engine/issues/1663",
    "Azure takes 65,535 bytes, which are 87,380 characters in base64",
    "move a script or a configuration file that no plan decides into the machine's image",
)
