"""Decides by which way machines enter a running control plane: its balancer, its authority, and what their boot fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from components.boot import control_keys
from rehearsal.azure.cloud import Cloud
from rehearsal.local_cluster.azure_service import AzureService
from rehearsal.local_cluster.control_plane import ControlPlane
from rehearsal.local_cluster.joining.certificates import Issuer
from rehearsal.local_cluster.joining.machines import FirstIdentity, JoiningMachine, first_identity
from rehearsal.local_cluster.joining.rbac import ACTOR
from rehearsal.local_cluster.joining.service_account_tokens import token_of


@dataclass(frozen=True)
class Gate:
    """The way into a cluster: the API server's URL, the authority that it proves itself by (PEM), and who may open it.

    first is what a machine's boot fetched, by scale set; issuer signs for ISSUED; actor is the token of who acts for nodes in IMPERSONATED.
    """

    url: str
    authority: str
    first: Mapping[str, FirstIdentity]
    issuer: Issuer | None = None
    actor: str | None = field(default=None, repr=False)


def issuer_of(control: ControlPlane) -> Issuer:
    """The cluster's authority, from the disk of an API server's machine."""
    machine = control.api_servers[0]
    return Issuer(machine.path(control_keys.path("cluster-ca-cert")), machine.path(control_keys.path("cluster-ca-key")))


def first_identities(cloud: Cloud, machines: Sequence[JoiningMachine]) -> dict[str, FirstIdentity]:
    """What the machines' boot fetches from their vault, by scale set."""
    sets = {one.of_set.name: one.of_set.boot for one in machines}
    return {name: first_identity(cloud, boot) for name, boot in sets.items()}


def gate_to(control: ControlPlane, azure: AzureService, machines: Sequence[JoiningMachine]) -> Gate:
    """The way into a control plane for these machines, whichever identities they use; NoAnswer unless rights() were applied."""
    first = azure.call(lambda cloud: first_identities(cloud, machines))
    return Gate(control.url, control.authority.read_text(), first, issuer_of(control), token_of(control.kubeconfig, ACTOR))
