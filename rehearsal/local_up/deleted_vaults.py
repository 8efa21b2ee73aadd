"""Deleted vaults whose reserved names block a region."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from components.errors import GpufleetError
from components.plan.model import RegionPlan
from rehearsal.azure.arm_id import parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.resource import Resource
from rehearsal.azure.vaults import deleted_vaults


@dataclass(frozen=True, slots=True)
class ReservedName:
    """The reserved name of a deleted vault: the day on which Azure releases it, and whether its region may purge it earlier."""

    name: str
    until: str
    purgeable: bool


class ReservedVaultNameError(GpufleetError):
    """Vaults of a region whose names are reserved by deleted vaults; the update has not started."""

    exit_status = 1

    def __init__(self, held: Iterable[ReservedName]) -> None:
        self.held = tuple(held)
        super().__init__(f"deleted vaults reserve the names {', '.join(one.name for one in self.held)}")


def deleted_vaults_of(plan: RegionPlan, cloud: Cloud) -> list[Resource]:
    """Return the deleted vaults of the base stack's resource group."""
    found = deleted_vaults(cloud, plan.spec.subscription)
    return [vault for vault in found if parse(vault.state.vault_id).group.lower() == plan.base_resource_group.lower()]


def reserved_names(plan: RegionPlan, cloud: Cloud) -> list[ReservedName]:
    """Return the names that the region's own deleted vaults reserve."""
    return [_reserved_name(vault, own=True) for vault in deleted_vaults_of(plan, cloud)]


def refuse_reserved_names(plan: RegionPlan, cloud: Cloud) -> None:
    """Raise ReservedVaultNameError where a planned vault has the name of a deleted one; vault names are unique in Azure."""
    planned = {vault.name.lower() for cluster in plan.clusters for vault in cluster.vaults}
    own = {vault.key for vault in deleted_vaults_of(plan, cloud)}
    deleted = (vault for one in sorted(cloud.subscriptions) for vault in deleted_vaults(cloud, one))
    if held := [_reserved_name(vault, own=vault.key in own) for vault in deleted if vault.id.name.lower() in planned]:
        raise ReservedVaultNameError(held)


def _reserved_name(vault: Resource, *, own: bool) -> ReservedName:
    until = str(vault.properties["scheduledPurgeDate"])[:10]
    return ReservedName(vault.id.name, until, own and not vault.properties["purgeProtectionEnabled"])
