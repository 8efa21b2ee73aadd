"""Decides by what the rehearsal's own programs prove themselves: tokens of service accounts, which a server remembers for ten seconds.

It verifies a client certificate anew at every request, which cost 0.1 ms of processor time:
https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubeapiserver/options/authentication.go (TokenSuccessCacheTTL)
"""

from __future__ import annotations

from pathlib import Path

from rehearsal.local_cluster.joining.certificates import LIFETIME
from rehearsal.local_cluster.joining.rbac import SPACE
from rehearsal.local_cluster.objects.connection import ApiServerUnreachableError, Connection
from rehearsal.local_cluster.objects.kubeconfig import read

PATIENCE_SECONDS = 30.0
CREATED = 201


def token_of(kubeconfig: Path, account: str) -> str:
    """A token of one of the rehearsal's service accounts, good for as long as client certificates; NoAnswer where it has none, too."""
    connection = Connection(read(kubeconfig), PATIENCE_SECONDS, lambda _: None)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": int(LIFETIME.total_seconds())}}
    path = f"/api/v1/namespaces/{SPACE}/serviceaccounts/{account}/token"
    try:
        answer = connection.request("POST", path, body=body)
    finally:
        connection.close()
    if answer.status != CREATED:
        raise ApiServerUnreachableError(connection.where, f"gives {SPACE}/{account} no token: {answer.message}", "apply rights() first")
    return str(answer.body["status"]["token"])
