"""Key vaults of all clusters, one per role of machines, with private endpoints only."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import keyvault

from components.base_outputs import vault_key
from components.plan.model import RegionPlan, VaultPlan


@dataclass(frozen=True)
class VaultsArgs:
    plan: RegionPlan
    resource_group: pulumi.Input[str]


class Vaults(pulumi.ComponentResource):
    """The vaults; ids maps a vault_key to the vault's id."""

    ids: dict[str, pulumi.Output[str]]

    def __init__(self, name: str, args: VaultsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:vaults:Vaults", name, {}, opts)
        self.ids = {
            vault_key(cluster.name, vault.role): self._vault(f"{name}-{cluster.name}-{vault.role}", args, vault, cluster.tags)
            for cluster in args.plan.clusters
            for vault in cluster.vaults
        }
        self.register_outputs({"ids": self.ids})

    def _vault(self, name: str, args: VaultsArgs, plan: VaultPlan, tags: dict[str, str]) -> pulumi.Output[str]:
        vault = keyvault.Vault(
            name,
            vault_name=plan.name,
            resource_group_name=args.resource_group,
            location=args.plan.spec.location,
            properties=keyvault.VaultPropertiesArgs(
                tenant_id=args.plan.spec.access.tenant,
                sku=keyvault.SkuArgs(family="A", name=keyvault.SkuName.STANDARD),
                enable_rbac_authorization=True,
                enable_soft_delete=True,
                soft_delete_retention_in_days=args.plan.spec.vaults.retention_days,
                # Azure does not accept false here, only a missing value: https://learn.microsoft.com/azure/key-vault/general/soft-delete-overview
                enable_purge_protection=args.plan.spec.vaults.purge_protection or None,
                public_network_access="Disabled",
                # Secrets are written through Azure Resource Manager, which is a trusted service:
                # https://learn.microsoft.com/azure/key-vault/general/overview-vnet-service-endpoints#trusted-services
                network_acls=keyvault.NetworkRuleSetArgs(default_action="Deny", bypass="AzureServices"),
            ),
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self, protect=True),
        )
        return vault.id
