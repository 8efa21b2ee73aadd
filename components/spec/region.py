"""What a person writes about one region: where it lies, who may enter, and its clusters."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from components.spec.cluster import Cluster
from components.spec.types import AzureLocation, Cidr, Domain, Model, RegionName, SshPublicKey, Uuid, form


class GatewaySize(StrEnum):
    """Zone-redundant sizes of the VPN gateway: https://learn.microsoft.com/azure/vpn-gateway/about-gateway-skus"""

    VPNGW1AZ = "VpnGw1AZ"
    VPNGW2AZ = "VpnGw2AZ"
    VPNGW3AZ = "VpnGw3AZ"
    VPNGW4AZ = "VpnGw4AZ"
    VPNGW5AZ = "VpnGw5AZ"


class Access(Model):
    """Who may enter the region."""

    tenant: Uuid
    """Entra ID tenant that vouches for people and managed identities."""
    client_id: Uuid
    """Entra ID application that people log in to the API servers with."""
    operators_group: Uuid
    """Object id of the group whose members administer every cluster of the region."""
    ssh_public_key: SshPublicKey
    """Public key of the administrator account on every machine."""


class Hub(Model):
    """The network through which people reach every cluster."""

    gateway: GatewaySize
    """Size of the VPN gateway that people dial into."""


class Backup(Model):
    """Where etcd snapshots go."""

    retention_days: Annotated[int, Field(ge=1, le=365)] = 30
    """Days for which a snapshot cannot be deleted."""
    zone_redundant: bool = True
    """True keeps every snapshot in three zones."""


class Vaults(Model):
    """How long deleted vaults and their secrets can be brought back."""

    retention_days: Annotated[int, Field(ge=7, le=90)] = 90
    """Days for which a deleted vault, and its name, is kept."""
    purge_protection: bool = True
    """True refuses to purge a deleted vault before that; false suits a fleet that is destroyed and made again."""


class Quota(Model):
    """vCPUs that Azure has granted, so that a plan beyond them is refused before it starts."""

    family: Annotated[str, form(r"^[a-zA-Z0-9_]{3,60}$", "a VM family as `az vm list-usage` names it: standardNDSH100v5Family")]
    """VM family as `az vm list-usage` names it, for example standardNDSH100v5Family; cores for all together, lowPriorityCores for spot."""
    vcpus: Annotated[int, Field(ge=0, le=100_000_000)]
    """Granted vCPUs of the family in the region."""
    subscription: Uuid | None = None
    """Subscription of the grant, where it is not the region's."""


class Region(Model):
    """One region file: everything that a person decides about a region."""

    name: RegionName
    """Name of the region and of its stacks; equals the file's name."""
    location: AzureLocation
    """Azure location, for example southcentralus."""
    subscription: Uuid
    """Azure subscription of the hub, the gallery, the vaults and of every cluster that names no other."""
    address_space: Cidr
    """The region's block of 10.0.0.0/8, /9 to /13: a /14 for the hub and one for each cluster slot; overlaps no other region's."""
    domain: Domain
    """Private DNS domain under which the region's names are made."""
    access: Access
    """Who may enter the region."""
    hub: Hub
    """The network through which people reach every cluster."""
    backup: Backup = Backup()
    """Where etcd snapshots go."""
    vaults: Vaults = Vaults()
    """How long deleted vaults and their secrets can be brought back."""
    quotas: tuple[Quota, ...] = Field(default=(), max_length=200)
    """vCPUs granted per family and subscription."""
    clusters: tuple[Cluster, ...] = Field(min_length=1, max_length=31)
    """The region's clusters."""
