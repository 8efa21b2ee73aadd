"""Base stack of a region: hub, image gallery, vaults and backup storage, in the region's subscription."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_azure_native as azure
from pulumi_azure_native import resources

from components.backup import Backup, BackupArgs
from components.gallery import Gallery, GalleryArgs
from components.hub import Hub, HubArgs
from components.plan.model import RegionPlan
from components.vaults import Vaults, VaultsArgs


@dataclass(frozen=True)
class RegionBaseArgs:
    plan: RegionPlan


class RegionBase(pulumi.ComponentResource):
    """A region's base stack; exports are the stack outputs, which components.base_outputs reads."""

    exports: dict[str, pulumi.Input[Any]]

    def __init__(self, name: str, args: RegionBaseArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:base:RegionBase", name, {}, opts)
        plan = args.plan
        provider = azure.Provider(
            f"{name}-azure",
            subscription_id=plan.spec.subscription,
            tenant_id=plan.spec.access.tenant,
            opts=pulumi.ResourceOptions(parent=self),
        )
        child = pulumi.ResourceOptions(parent=self, provider=provider)
        group = resources.ResourceGroup(
            f"{name}-group", resource_group_name=plan.base_resource_group, location=plan.spec.location, tags=plan.tags, opts=child
        )
        hub = Hub(f"{name}-hub", HubArgs(plan, group.name), child)
        gallery = Gallery(f"{name}-gallery", GalleryArgs(plan, group.name), child)
        vaults = Vaults(f"{name}-vaults", VaultsArgs(plan, group.name), child)
        backup = Backup(f"{name}-backup", BackupArgs(plan, group.name), child)
        self.exports = {
            "resource_group": group.name,
            "hub_vnet_id": hub.vnet_id,
            "hub_endpoints_subnet_id": hub.subnet_ids["endpoints"],
            "hub_private_zone": hub.private_zone,
            "image_version_ids": gallery.version_ids,
            "vault_ids": vaults.ids,
            "backup_account_id": backup.account_id,
        }
        self.register_outputs(self.exports)
