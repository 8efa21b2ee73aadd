"""Certificates and keys of a cluster, by secret of its vaults."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import yaml

from components.pki_certificates import AUTHORITIES, certificates_of
from components.pki_provider import Certificate, CertificateAuthority, EncryptionKey, KeyPair
from components.plan.access import BOOTSTRAP_TOKEN
from components.plan.model import ClusterPlan
from components.spec.region import Access


@dataclass(frozen=True)
class PkiArgs:
    """A higher ca_generation replaces all authorities and certificates."""

    plan: ClusterPlan
    ca_generation: int = 1


class Pki(pulumi.ComponentResource):
    """A cluster's PKI.

    secrets maps (vault role, secret name) to a value, for all secrets of the plan; admin_kubeconfig is for break-glass access only.
    """

    secrets: dict[tuple[str, str], pulumi.Output[str]]
    ca_certificate: pulumi.Output[str]
    admin_kubeconfig: pulumi.Output[str]

    def __init__(self, name: str, args: PkiArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:pki:Pki", name, {}, opts)
        plan, child = args.plan, pulumi.ResourceOptions(parent=self)
        authorities = {
            role: CertificateAuthority(f"{name}-{role}-ca", f"{plan.name} {role} CA", args.ca_generation, child) for role in AUTHORITIES
        }
        leaves = {
            leaf.name: Certificate(f"{name}-{leaf.name}", leaf.subject, authorities[leaf.authority], child)
            for leaf in certificates_of(plan)
        }
        accounts = KeyPair(f"{name}-service-account", child)
        values = {
            **{f"{role}-ca-{part}": value for role, authority in authorities.items() for part, value in _parts(authority)},
            **{f"{leaf}-{part}": value for leaf, certificate in leaves.items() for part, value in _parts(certificate)},
            "service-account-key": accounts.private_key,
            "service-account-public-key": accounts.public_key,
            # The approver writes the tokens; until then a machine finds none.
            BOOTSTRAP_TOKEN: pulumi.Output.from_input("none"),
            "encryption-key": EncryptionKey(f"{name}-encryption-key", child).key,
        }
        self.secrets = {(vault.role, secret): values[secret] for vault in plan.vaults for secret in vault.secrets}
        self.ca_certificate = authorities["cluster"].certificate
        self.admin_kubeconfig = pulumi.Output.all(self.ca_certificate, leaves["admin"].certificate, leaves["admin"].private_key).apply(
            lambda pems: kubeconfig(plan, *pems)
        )
        self.register_outputs({"ca_certificate": self.ca_certificate})


def _parts(issued: CertificateAuthority | Certificate) -> tuple[tuple[str, pulumi.Output[str]], ...]:
    return (("cert", issued.certificate), ("key", issued.private_key))


def kubeconfig(plan: ClusterPlan, ca_certificate: str, certificate: str, private_key: str) -> str:
    """Return a kubeconfig, as YAML, with a client certificate, for use in the hub's network."""
    user = {"client-certificate-data": _base64(certificate), "client-key-data": _base64(private_key)}
    return _kubeconfig(plan, ca_certificate, "break-glass", user)


def people_kubeconfig(plan: ClusterPlan, access: Access, ca_certificate: str) -> str:
    """Return a kubeconfig, as YAML and without secrets, for users who have logged in with the Azure CLI.

    https://azure.github.io/kubelogin/concepts/login-modes/azurecli.html
    """
    args = ["get-token", "--login", "azurecli", "--server-id", str(access.client_id), "--tenant-id", str(access.tenant)]
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "kubelogin", "args": args, "interactiveMode": "Never"}
    return _kubeconfig(plan, ca_certificate, "people", {"exec": plugin})


def _base64(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()


def _kubeconfig(plan: ClusterPlan, ca_certificate: str, name: str, user: Mapping[str, object]) -> str:
    """Return a kubeconfig with one user."""
    cluster = {"server": plan.api_servers.url, "certificate-authority-data": _base64(ca_certificate)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": plan.name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": plan.name, "context": {"cluster": plan.name, "user": name}}],
        "current-context": plan.name,
    }
    return yaml.safe_dump(config, sort_keys=False)
