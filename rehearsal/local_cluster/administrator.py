"""Decides who administers a control plane here: whoever the program exports a kubeconfig for, else the same user, newly certified."""

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
"""Name under which the program exports administrators' kubeconfigs, by cluster."""
LIFETIME = timedelta(days=1)
VAULT = "control"
"""Role of the vault that has the cluster's authority, with which the controller manager signs."""


def administrators_kubeconfig(cloud: Cloud, plan: RegionPlan, cluster: ClusterPlan) -> str:
    """A kubeconfig, as YAML, of the break-glass administrator; NotProvisioned.

    Where the program ran on Pulumi's own engine its exports are in that one's state, and the model has the authority alone, in a vault.
    """
    told = stacks_of(cloud).of(plan.stack).exports.get(KUBECONFIGS) or {}
    # A secret lies in the wire's envelope.
    found = told.get("value", told).get(cluster.name) if isinstance(told, dict) else None
    text = found.get("value") if isinstance(found, dict) else found
    return text if isinstance(text, str) else _issued(cloud, cluster)


def _issued(cloud: Cloud, cluster: ClusterPlan) -> str:
    authority = Authority(_secret(cloud, cluster, "cluster-ca-cert"), _secret(cloud, cluster, "cluster-ca-key"))
    subject = next(one.subject for one in certificates_of(cluster) if one.name == "admin")
    leaf = issue_leaf(subject, authority, LIFETIME, datetime.now(UTC))
    return kubeconfig(cluster, authority.certificate, leaf.certificate, leaf.private_key)


def _secret(cloud: Cloud, cluster: ClusterPlan, name: str) -> str:
    """Value of a secret of the cluster's; NotProvisioned."""
    vault = vault_named(cloud, cluster.vault(VAULT).name)
    if vault is None:
        raise NotProvisionedError(cluster.vault(VAULT).name, "Azure has no vault of this name")
    try:
        return str(data_plane.get_secret(cloud, vault, name)["value"])
    except AzureError:
        raise NotProvisionedError(cluster.vault(VAULT).name, f"it holds no secret {name}") from None
