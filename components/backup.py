"""Storage of etcd snapshots: an account with one immutable container per cluster."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import storage

from components.plan.model import ClusterPlan, RegionPlan


@dataclass(frozen=True)
class BackupArgs:
    plan: RegionPlan
    resource_group: pulumi.Input[str]


class Backup(pulumi.ComponentResource):
    """The account, its container per cluster, and the retention of snapshots."""

    account_id: pulumi.Output[str]

    def __init__(self, name: str, args: BackupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:backup:Backup", name, {}, opts)
        account = storage.StorageAccount(
            f"{name}-account",
            account_name=args.plan.backup.account,
            resource_group_name=args.resource_group,
            location=args.plan.spec.location,
            kind="StorageV2",
            sku=storage.SkuArgs(name=args.plan.backup.sku),
            access_tier=storage.AccessTier.HOT,
            allow_blob_public_access=False,
            allow_cross_tenant_replication=False,
            allow_shared_key_access=False,
            default_to_o_auth_authentication=True,
            enable_https_traffic_only=True,
            minimum_tls_version="TLS1_2",
            public_network_access="Disabled",
            network_rule_set=storage.NetworkRuleSetArgs(default_action=storage.DefaultAction.DENY, bypass="None"),
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self, protect=True),
        )
        self._retention(name, args, account)
        for cluster in args.plan.clusters:
            self._container(f"{name}-{cluster.name}", args, account, cluster)
        self.account_id = account.id
        self.register_outputs({"account_id": self.account_id})

    def _retention(self, name: str, args: BackupArgs, account: storage.StorageAccount) -> None:
        """Delete a snapshot after its retention, and make it recoverable for the same time."""
        days, child = args.plan.backup.retention_days, pulumi.ResourceOptions(parent=self)
        deleted = storage.DeleteRetentionPolicyArgs(enabled=True, days=days)
        storage.BlobServiceProperties(
            f"{name}-blobs",
            blob_services_name="default",
            account_name=account.name,
            resource_group_name=args.resource_group,
            is_versioning_enabled=True,
            delete_retention_policy=deleted,
            container_delete_retention_policy=deleted,
            opts=child,
        )
        storage.ManagementPolicy(
            f"{name}-lifecycle",
            management_policy_name="default",
            account_name=account.name,
            resource_group_name=args.resource_group,
            policy=storage.ManagementPolicySchemaArgs(rules=[expiry(days)]),
            opts=child,
        )

    def _container(self, name: str, args: BackupArgs, account: storage.StorageAccount, cluster: ClusterPlan) -> None:
        container = storage.BlobContainer(
            f"{name}-container",
            container_name=cluster.backup_container,
            account_name=account.name,
            resource_group_name=args.resource_group,
            public_access=storage.PublicAccess.NONE,
            opts=pulumi.ResourceOptions(parent=self, protect=True),
        )
        storage.BlobContainerImmutabilityPolicy(
            f"{name}-immutability",
            immutability_policy_name="default",
            container_name=container.name,
            account_name=account.name,
            resource_group_name=args.resource_group,
            immutability_period_since_creation_in_days=args.plan.backup.retention_days,
            allow_protected_append_writes=False,
            # The provider cannot delete the policy, which is deleted with its container: https://github.com/pulumi/pulumi-azure-native/issues/2156
            opts=pulumi.ResourceOptions(parent=self, retain_on_delete=True),
        )


def expiry(days: int) -> storage.ManagementPolicyRuleArgs:
    """Return a rule that deletes block blobs and their versions more than `days` days after their creation."""
    return storage.ManagementPolicyRuleArgs(
        name="expire-snapshots",
        type="Lifecycle",
        enabled=True,
        definition=storage.ManagementPolicyDefinitionArgs(
            filters=storage.ManagementPolicyFilterArgs(blob_types=["blockBlob"]),
            actions=storage.ManagementPolicyActionArgs(
                base_blob=storage.ManagementPolicyBaseBlobArgs(
                    delete=storage.DateAfterModificationArgs(days_after_creation_greater_than=days)
                ),
                version=storage.ManagementPolicyVersionArgs(delete=storage.DateAfterCreationArgs(days_after_creation_greater_than=days)),
            ),
        ),
    )
