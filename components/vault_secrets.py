"""Secrets of a cluster in its vaults, as the plan lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import keyvault

from components.base_outputs import BaseOutputs
from components.plan.access import BOOTSTRAP_TOKEN
from components.plan.model import ClusterPlan, VaultPlan


@dataclass(frozen=True)
class VaultSecretsArgs:
    """secrets maps (vault role, secret name) to a value; base_provider acts in the base stack's subscription."""

    plan: ClusterPlan
    secrets: Mapping[tuple[str, str], pulumi.Output[str]]
    base: BaseOutputs
    base_provider: pulumi.ProviderResource


class VaultSecrets(pulumi.ComponentResource):
    """A cluster's secrets in its vaults; machines that read them depend on written.

    bootstrap_token_id is the id of the secret that the approver may write; a role assignment requires that it exists.
    """

    written: tuple[pulumi.Resource, ...]
    bootstrap_token_id: pulumi.Output[str]

    def __init__(self, name: str, args: VaultSecretsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:vault_secrets:VaultSecrets", name, {}, opts)
        written = {
            (vault.role, secret): self._secret(f"{name}-{vault.role}-{secret}", args, vault, secret)
            for vault in args.plan.vaults
            for secret in vault.secrets
        }
        self.written = tuple(written.values())
        self.bootstrap_token_id = written["node", BOOTSTRAP_TOKEN].id
        self.register_outputs({})

    def _secret(self, name: str, args: VaultSecretsArgs, vault: VaultPlan, secret: str) -> keyvault.Secret:
        return keyvault.Secret(
            name,
            secret_name=secret,
            vault_name=vault.name,
            resource_group_name=args.base.resource_group,
            properties=keyvault.SecretPropertiesArgs(value=pulumi.Output.secret(args.secrets[vault.role, secret])),
            opts=pulumi.ResourceOptions(
                parent=self,
                provider=args.base_provider,
                # A delete would call the vault itself, whose network denies all access, and would reserve the name for 90 days:
                # https://learn.microsoft.com/azure/key-vault/general/soft-delete-overview
                retain_on_delete=True,
                # The approver writes the token every few hours.
                ignore_changes=["properties"] if secret == BOOTSTRAP_TOKEN else None,
            ),
        )
