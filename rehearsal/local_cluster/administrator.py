"""Administrator of a local control plane: the user of the kubeconfig that the program exports, or the same user with a new certificate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from components.pki import kubeconfig
from components.pki_certificates import certificates_of
from components.plan.model import ClusterPlan, RegionPlan
from components.x509 import Authority, issue_leaf
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.stack_records import stacks_of
from rehearsal.azure.vaults import data_plane, vault_named
from rehearsal.local_cluster.provisioned_machines import NotProvisionedError

KUBECONFIGS = "kubeconfigs"
"""Name of the program's export that contains administrators' kubeconfigs by cluster."""
LIFETIME = timedelta(days=1)
VAULT = "control"
"""Role of the vault with the cluster's certificate authority, which the controller manager uses."""


def administrators_kubeconfig(cloud: Cloud, plan: RegionPlan, cluster: ClusterPlan) -> str:
    """Return the kubeconfig of the break-glass administrator as YAML; raise NotProvisionedError.

    If the program ran on Pulumi's engine, its exports are in the engine's state. The model then has only the authority, in a vault.
    """
    exported = stacks_of(cloud).of(plan.stack).exports.get(KUBECONFIGS) or {}
    # A secret is wrapped in an envelope.
    found = exported.get("value", exported).get(cluster.name) if isinstance(exported, dict) else None
    text = found.get("value") if isinstance(found, dict) else found
    return text if isinstance(text, str) else _issued(cloud, cluster)


def _issued(cloud: Cloud, cluster: ClusterPlan) -> str:
    authority = Authority(_secret(cloud, cluster, "cluster-ca-cert"), _secret(cloud, cluster, "cluster-ca-key"))
    subject = next(one.subject for one in certificates_of(cluster) if one.name == "admin")
    leaf = issue_leaf(subject, authority, LIFETIME, datetime.now(UTC))
    return kubeconfig(cluster, authority.certificate, leaf.certificate, leaf.private_key)


def _secret(cloud: Cloud, cluster: ClusterPlan, name: str) -> str:
    """Return the value of one of the cluster's secrets; raise NotProvisionedError."""
    vault = vault_named(cloud, cluster.vault(VAULT).name)
    if vault is None:
        raise NotProvisionedError(cluster.vault(VAULT).name, "Azure has no vault of this name")
    try:
        return str(data_plane.get_secret(cloud, vault, name)["value"])
    except AzureError:
        raise NotProvisionedError(cluster.vault(VAULT).name, f"it holds no secret {name}") from None
