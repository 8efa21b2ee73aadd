"""Region file model of a region: location, access, hub, backup, quotas and clusters."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from components.spec.cluster import Cluster
from components.spec.types import AzureLocation, Cidr, Domain, Model, RegionName, SshPublicKey, Uuid, VmSizeName, form


class GatewaySize(StrEnum):
    """Zone-redundant sizes of the VPN gateway: https://learn.microsoft.com/azure/vpn-gateway/about-gateway-skus"""

    VPNGW1AZ = "VpnGw1AZ"
    VPNGW2AZ = "VpnGw2AZ"
    VPNGW3AZ = "VpnGw3AZ"
    VPNGW4AZ = "VpnGw4AZ"
    VPNGW5AZ = "VpnGw5AZ"


class Access(Model):
    """Identities with access to the region."""

    tenant: Uuid
    """Entra ID tenant of people and managed identities."""
    client_id: Uuid
    """Entra ID application for logging in to the API servers."""
    operators_group: Uuid
    """Object id of the group whose members administer all clusters of the region."""
    ssh_public_key: SshPublicKey
    """SSH public key of the administrator account on every machine."""


class Hub(Model):
    """Network through which people reach all clusters."""

    gateway: GatewaySize
    """Size of the VPN gateway for people."""


class Backup(Model):
    """Storage of etcd snapshots."""

    retention_days: Annotated[int, Field(ge=1, le=365)] = 30
    """Days during which a snapshot cannot be deleted."""
    zone_redundant: bool = True
    """True: store each snapshot in three zones."""


class Vaults(Model):
    """Recovery of deleted key vaults and their secrets."""

    retention_days: Annotated[int, Field(ge=7, le=90)] = 90
    """Days during which a deleted vault can be recovered and its name cannot be reused."""
    purge_protection: bool = True
    """True: a deleted vault cannot be purged earlier. Set false for a fleet that is destroyed and created again."""


class Quota(Model):
    """vCPUs that Azure has granted; a plan that needs more is refused before it starts."""

    family: Annotated[str, form(r"^[a-zA-Z0-9_]{3,60}$", "a VM family as `az vm list-usage` names it: standardNDSH100v5Family")]
    """VM family as in `az vm list-usage`, for example standardNDSH100v5Family; cores for all families, lowPriorityCores for spot."""
    vcpus: Annotated[int, Field(ge=0, le=100_000_000)]
    """Granted vCPUs of the family in the region."""
    subscription: Uuid | None = None
    """Subscription of the quota, if it differs from the region's."""


class NegotiatedPrice(Model):
    """A price that was agreed with Azure, in place of the list price."""

    vm_size: VmSizeName
    """VM size of machines of this region, for example Standard_ND96isr_H100_v5."""
    usd_per_hour: Annotated[float, Field(gt=0, le=10_000)]
    """Price of one machine in US dollars per hour."""


class Region(Model):
    """One region file: all decisions about a region."""

    name: RegionName
    """Name of the region and of its stacks; equals the file's name."""
    location: AzureLocation
    """Azure location, for example southcentralus."""
    subscription: Uuid
    """Azure subscription of the hub, the gallery, the vaults, and of each cluster without its own."""
    address_space: Cidr
    """Block of 10.0.0.0/8, /9 to /13: one /14 for the hub and one per cluster slot. It must not overlap that of another region."""
    domain: Domain
    """Private DNS domain of the region's names."""
    access: Access
    """Identities with access to the region."""
    hub: Hub
    """Network through which people reach all clusters."""
    backup: Backup = Backup()
    """Storage of etcd snapshots."""
    vaults: Vaults = Vaults()
    """Recovery of deleted key vaults and their secrets."""
    quotas: tuple[Quota, ...] = Field(default=(), max_length=200)
    """Granted vCPUs per VM family and subscription."""
    prices: tuple[NegotiatedPrice, ...] = Field(default=(), max_length=100)
    """Negotiated prices per VM size; a size without one has its list price."""
    clusters_rotating_at_once: Annotated[int, Field(ge=1, le=32)] = 1
    """Clusters of the region on which rotation may run at the same time; they share the call limits of their subscription."""
    clusters: tuple[Cluster, ...] = Field(min_length=1, max_length=31)
    """The region's clusters."""
