"""Access of machines to a running control plane: its balancer, its authority, tokens, and the files that their boot fetched.

The rehearsal's own programs authenticate with tokens of service accounts, which an API server caches for ten seconds. It verifies a client
certificate anew at every request, which costs 0.1 ms of CPU time:
https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubeapiserver/options/authentication.go (TokenSuccessCacheTTL)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from components.boot import control_keys
from lifecycle.kubernetes_api.connection import ApiServerUnreachableError, Connection
from lifecycle.kubernetes_api.kubeconfig import read
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.local_cluster.azure_service import AzureService
from rehearsal.local_cluster.control_plane import ControlPlane
from rehearsal.local_cluster.joining.boot_programs import fetch_error
from rehearsal.local_cluster.joining.certificates import LIFETIME, Issuer
from rehearsal.local_cluster.joining.machines import FetchedIdentity, JoiningMachine, fetched_identity
from rehearsal.local_cluster.joining.rbac import ACTOR, SPACE

PATIENCE_SECONDS = 30.0
TOKEN_SECONDS = 60.0
"""Time in which the approver creates its first bootstrap token: it needs its lease, and its rights, which were just applied."""
CREATED = 201


@dataclass(frozen=True)
class ClusterAccess:
    """Access to a cluster: the API server's URL, its authority (PEM), and credentials.

    first contains the credentials that a machine's boot fetched, by scale set. attest returns attested data of a machine, given its
    resource id, for a nonce. issuer signs certificates for ISSUED. actor is the token of the account that acts for nodes in IMPERSONATED.
    """

    url: str
    authority: str
    first: Mapping[str, FetchedIdentity]
    attest: Callable[[str, str], str]
    issuer: Issuer | None = None
    actor: str | None = field(default=None, repr=False)


def issuer_of(control: ControlPlane) -> Issuer:
    """Return the issuer of the cluster's authority, from the disk of an API server's machine."""
    machine = control.api_servers[0]
    return Issuer(machine.path(control_keys.path("cluster-ca-cert")), machine.path(control_keys.path("cluster-ca-key")))


def fetched_identities(cloud: Cloud, machines: Sequence[JoiningMachine]) -> dict[str, FetchedIdentity]:
    """Return the credentials that the machines' boot fetches from their vault, by scale set."""
    sets = {one.of_set.name: one.of_set.boot for one in machines}
    return {name: fetched_identity(cloud, boot) for name, boot in sets.items()}


def access_to(control: ControlPlane, azure: AzureService, machines: Sequence[JoiningMachine]) -> ClusterAccess:
    """Return access to a control plane for these machines with every identity. Raises ApiServerUnreachableError unless rights() were
    applied."""
    authority, actor = control.authority.read_text(), token_of(control.kubeconfig, ACTOR)
    return ClusterAccess(control.url, authority, _first_token(azure, machines), azure.attested_document, issuer_of(control), actor)


def _first_token(azure: AzureService, machines: Sequence[JoiningMachine]) -> dict[str, FetchedIdentity]:
    """Return the credentials of machines; wait for the approver's first bootstrap token, as gpufleet-node does."""
    end = time.monotonic() + TOKEN_SECONDS
    while True:
        try:
            return azure.call(lambda cloud: fetched_identities(cloud, machines))
        except (AzureError, fetch_error()):
            if time.monotonic() > end:
                raise
        time.sleep(0.2)


def token_of(kubeconfig: Path, account: str) -> str:
    """Return a token of one of the rehearsal's service accounts, valid as long as client certificates. Raises ApiServerUnreachableError."""
    connection = Connection(read(kubeconfig), PATIENCE_SECONDS, lambda _: None)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": int(LIFETIME.total_seconds())}}
    path = f"/api/v1/namespaces/{SPACE}/serviceaccounts/{account}/token"
    try:
        answer = connection.request("POST", path, body=body)
    finally:
        connection.close()
    if answer.status != CREATED:
        raise ApiServerUnreachableError(
            connection.where, f"returned no token of {SPACE}/{account}: {answer.message}", "apply rights() first"
        )
    return str(answer.body["status"]["token"])
