"""Decides which deleted vaults keep a region from coming up, and which of them a person may purge for it."""

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
    """The name of a deleted vault: the day until which Azure holds it, and whether a purge by its region frees it before."""

    name: str
    until: str
    purgeable: bool


class ReservedVaultNameError(GpufleetError):
    """The region declares vaults whose names deleted ones hold; nothing was tried."""

    exit_status = 1

    def __init__(self, held: Iterable[ReservedName]) -> None:
        self.held = tuple(held)
        super().__init__(f"deleted vaults hold the names {', '.join(one.name for one in self.held)}")


def deleted_vaults_of(plan: RegionPlan, cloud: Cloud) -> list[Resource]:
    """The deleted vaults that the base stack's group had."""
    found = deleted_vaults(cloud, plan.spec.subscription)
    return [vault for vault in found if parse(vault.state.vault_id).group.lower() == plan.base_resource_group.lower()]


def reserved_names(plan: RegionPlan, cloud: Cloud) -> list[ReservedName]:
    """The names that the region's own deleted vaults hold."""
    return [_held(vault, own=True) for vault in deleted_vaults_of(plan, cloud)]


def refuse_reserved_names(plan: RegionPlan, cloud: Cloud) -> None:
    """NamesHeld where a vault that the plan declares has a deleted namesake, whoever had it: Azure knows a vault's name once."""
    wanted = {vault.name.lower() for cluster in plan.clusters for vault in cluster.vaults}
    own = {vault.key for vault in deleted_vaults_of(plan, cloud)}
    gone = (vault for one in sorted(cloud.subscriptions) for vault in deleted_vaults(cloud, one))
    if held := [_held(vault, own=vault.key in own) for vault in gone if vault.id.name.lower() in wanted]:
        raise ReservedVaultNameError(held)


def _held(vault: Resource, *, own: bool) -> ReservedName:
    until = str(vault.properties["scheduledPurgeDate"])[:10]
    return ReservedName(vault.id.name, until, own and not vault.properties["purgeProtectionEnabled"])
