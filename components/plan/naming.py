"""Physical names, tags and Azure resource ids, within Azure's rules on length and characters."""

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
"""Host name of a pool's machine: the name of its scale set, which ends in an index, and six characters from Azure."""


def short_hash(*parts: str) -> str:
    """Return six hexadecimal digits that make names globally unique."""
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:6]


def base_resource_group(region: str) -> str:
    """Return the resource group of the base stack."""
    return f"gf-{region}-base"


def resource_group(region: str, cluster: str) -> str:
    """Return the resource group of a cluster."""
    return f"gf-{region}-{cluster}"


def of_cluster(cluster: str, role: str) -> str:
    """Return the name of a resource of a cluster, unique in the cluster's resource group."""
    return f"{cluster}-{role}"


def of_hub(region: str, role: str) -> str:
    """Return the name of a resource of the hub, unique in the base resource group."""
    return f"{region}-hub-{role}"


def scale_set(cluster: str, pool: str, index: int) -> str:
    """Return the name of a pool's scale set; index counts the sets of the pool from 0."""
    return f"{cluster}-{pool}-{index:03d}"


def computer_name_prefix(scale_set_name: str) -> str:
    """Return the prefix of the host names and node names of a scale set's instances; Azure appends six characters."""
    return f"{scale_set_name}-"


def pool_scale_set_of(machine: str) -> str | None:
    """Return the scale set of a pool's machine, given its host name in lower case; None for any other name, such as an API server's."""
    match = POOL_MACHINE.fullmatch(machine)
    return match[1] if match else None


def vault(subscription: str, region: str, cluster: str, role: str) -> str:
    """Return a globally unique vault name of at most 24 letters, digits and hyphens."""
    return f"gf-{cluster[:7].rstrip('-')}-{role[:5]}-{short_hash(subscription, region, cluster)}"


def storage_account(subscription: str, region: str) -> str:
    """Return a globally unique storage account name of at most 24 lower-case letters and digits."""
    return f"gf{region[:14]}{short_hash(subscription, region)}bk"


def gallery(region: str) -> str:
    """Return the gallery's name: letters, digits, underscores and dots."""
    return f"gpufleet_{region}"


def tags(region: str, cluster: str | None = None, pool: str | None = None) -> dict[str, str]:
    """Return the tags of resources of a region, of a cluster, or of a pool."""
    words = {"gpufleet-region": region, "gpufleet-cluster": cluster, "gpufleet-pool": pool}
    return {key: value for key, value in words.items() if value}


def resource_id(subscription: str, group: str, provider: str, *path: str) -> str:
    """Return an Azure resource id, for example of provider Microsoft.Compute and path galleries, NAME, images, NAME."""
    return f"/subscriptions/{subscription}/resourceGroups/{group}/providers/{provider}/{'/'.join(path)}"


def role_assignment(*parts: str) -> str:
    """Return the name of a role assignment, a UUID derived from principal, role and scope: the same parts give the same name.

    Therefore the same assignment cannot exist twice.
    """
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts)))
