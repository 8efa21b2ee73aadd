"""Every physical name, tag and Azure resource id, with Azure's length and alphabet rules."""

from __future__ import annotations

import hashlib
import re
import uuid

CLUSTER_DOMAIN = "cluster.local"
"""Domain of services and pods; kubelets and CoreDNS must agree on it."""
SOURCE = "https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules"
GALLERY_NAME_MAX = 80
VAULT_NAME_MAX = 24
STORAGE_ACCOUNT_MAX = 24
SCALE_SET_NAME_MAX = 64
COMPUTER_NAME_PREFIX_MAX = 58
POOL_MACHINE = re.compile(r"([a-z][a-z0-9-]*-[0-9]{3,})-[a-z0-9]{6}")
"""A pool's scale set, which ends in its index, and the six characters that Azure appends to its machines' host names."""


def short_hash(*parts: str) -> str:
    """Six hexadecimal digits that tell globally unique names of different subscriptions apart."""
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:6]


def base_resource_group(region: str) -> str:
    """Resource group of the base stack."""
    return f"gf-{region}-base"


def resource_group(region: str, cluster: str) -> str:
    """Resource group of one cluster."""
    return f"gf-{region}-{cluster}"


def of_cluster(cluster: str, role: str) -> str:
    """Name of a resource of one cluster, unique in the cluster's resource group."""
    return f"{cluster}-{role}"


def of_hub(region: str, role: str) -> str:
    """Name of a resource of the hub, unique in the base resource group."""
    return f"{region}-hub-{role}"


def scale_set(cluster: str, pool: str, index: int) -> str:
    """Name of a pool's scale set; index is its place in the pool, from 0."""
    return f"{cluster}-{pool}-{index:03d}"


def computer_name_prefix(scale_set_name: str) -> str:
    """Prefix of the host names, and so the node names, of a scale set's instances; Azure appends six characters."""
    return f"{scale_set_name}-"


def pool_scale_set_of(machine: str) -> str | None:
    """Scale set of a pool's machine, by the machine's host name in lower case; None for every other name, an API server's for example."""
    match = POOL_MACHINE.fullmatch(machine)
    return match[1] if match else None


def vault(subscription: str, region: str, cluster: str, role: str) -> str:
    """Globally unique vault name of at most 24 letters, digits and hyphens."""
    return f"gf-{cluster[:7].rstrip('-')}-{role[:5]}-{short_hash(subscription, region, cluster)}"


def storage_account(subscription: str, region: str) -> str:
    """Globally unique storage account name of at most 24 lower-case letters and digits."""
    return f"gf{region[:14]}{short_hash(subscription, region)}bk"


def gallery(region: str) -> str:
    """Gallery name: letters, digits, underscores and dots."""
    return f"gpufleet_{region}"


def tags(region: str, cluster: str | None = None, pool: str | None = None) -> dict[str, str]:
    """Tags that every resource of a region, of one of its clusters, or of one of a cluster's pools carries."""
    words = {"gpufleet-region": region, "gpufleet-cluster": cluster, "gpufleet-pool": pool}
    return {key: value for key, value in words.items() if value}


def resource_id(subscription: str, group: str, provider: str, *path: str) -> str:
    """Azure resource id, for example of provider Microsoft.Compute and path galleries, NAME, images, NAME."""
    return f"/subscriptions/{subscription}/resourceGroups/{group}/providers/{provider}/{'/'.join(path)}"


def role_assignment(*parts: str) -> str:
    """Name of a role assignment, by Azure's rule a UUID, from who gets which role where: the same parts give the same name.

    So an assignment made twice collides with itself and leaves no second one.
    """
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts)))
