"""Managed identities of a cluster's machines, one per role, and their role assignments."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import authorization, managedidentity

from components.base_outputs import BaseOutputs
from components.plan import naming
from components.plan.model import ClusterPlan, IdentityPlan, RegionPlan

SECRETS_USER = "4633458b-17de-408a-b874-0445c86b69e6"
BLOB_CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
SECRETS_OFFICER = "b86a8fe4-44ce-4948-aee5-eccb2c155cd7"
READER = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
"""Built-in roles: https://learn.microsoft.com/azure/role-based-access-control/built-in-roles"""


@dataclass(frozen=True)
class Grant:
    """One role assignment of an identity: where is a name for the scope, subscription that of the scope."""

    where: str
    role_definition: str
    scope: pulumi.Input[str]
    subscription: str


@dataclass(frozen=True)
class IdentityArgs:
    """base_provider acts in the base stack's subscription, which contains vaults and backup account.

    bootstrap_token_id is the id of the secret that the CSR approver writes.
    """

    plan: ClusterPlan
    region: RegionPlan
    resource_group: pulumi.Input[str]
    base: BaseOutputs
    base_provider: pulumi.ProviderResource
    bootstrap_token_id: pulumi.Input[str]


class Identity(pulumi.ComponentResource):
    """The identities; ids maps a role ("etcd", "control" or "node") to an id.

    assigned are the role assignments, which a machine needs to read its secrets.
    """

    ids: dict[str, pulumi.Output[str]]
    assigned: tuple[pulumi.Resource, ...]

    def __init__(self, name: str, args: IdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:identity:Identity", name, {}, opts)
        identities = {plan.role: self._identity(f"{name}-{plan.role}", plan, args) for plan in args.plan.identities}
        self.ids = {role: identity.id for role, identity in identities.items()}
        self.assigned = tuple(
            self._assignment(f"{name}-{plan.role}-{grant.where}", plan, grant, identities[plan.role], args)
            for plan in args.plan.identities
            for grant in self._grants(plan.role, args)
        )
        self.register_outputs({"ids": self.ids})

    def _identity(self, name: str, plan: IdentityPlan, args: IdentityArgs) -> managedidentity.UserAssignedIdentity:
        return managedidentity.UserAssignedIdentity(
            name,
            resource_name_=plan.name,
            resource_group_name=args.resource_group,
            location=args.region.spec.location,
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _grants(self, role: str, args: IdentityArgs) -> tuple[Grant, ...]:
        """Return the grants of a role: each reads its own vault, etcd writes snapshots, and the CSR approver reads machines and writes the
        bootstrap token, one secret of the nodes' vault."""
        base, plan = args.region.spec.subscription, args.plan
        own_vault = Grant("vault", SECRETS_USER, args.base.vault_id(plan.name, role), base)
        if role == "etcd":
            container = pulumi.Output.concat(args.base.backup_account_id, "/blobServices/default/containers/", plan.backup_container)
            return (own_vault, Grant("backup", BLOB_CONTRIBUTOR, container, base))
        if role == "control":
            group = pulumi.Output.concat("/subscriptions/", plan.subscription, "/resourceGroups/", args.resource_group)
            return (
                own_vault,
                Grant("token", SECRETS_OFFICER, args.bootstrap_token_id, base),
                Grant("group", READER, group, plan.subscription),
            )
        return (own_vault,)

    def _assignment(
        self, name: str, plan: IdentityPlan, grant: Grant, identity: managedidentity.UserAssignedIdentity, args: IdentityArgs
    ) -> authorization.RoleAssignment:
        definition = f"/subscriptions/{grant.subscription}/providers/Microsoft.Authorization/roleDefinitions/{grant.role_definition}"
        in_base = grant.where != "group"
        return authorization.RoleAssignment(
            name,
            role_assignment_name=naming.role_assignment(
                args.plan.subscription, args.plan.resource_group, plan.name, grant.role_definition, grant.where
            ),
            role_definition_id=definition,
            scope=grant.scope,
            principal_id=identity.principal_id,
            # Without it, Azure looks up the principal and does not find one that was just created:
            # https://learn.microsoft.com/azure/role-based-access-control/troubleshooting#symptom---assigning-a-role-to-a-new-principal-sometimes-fails
            principal_type="ServicePrincipal",
            opts=pulumi.ResourceOptions(parent=self, provider=args.base_provider if in_base else None),
        )
