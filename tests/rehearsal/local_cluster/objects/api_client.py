"""Client of a real API server for tests: as the break-glass administrator, as an impersonated user, or by a token."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import urllib3
from api_calls import Reply
from waiting import until

from lifecycle.kubernetes_api import kubeconfig as kubeconfigs

MERGE = "application/merge-patch+json"
AUTHENTICATED = "system:authenticated"


@dataclass(frozen=True)
class Caller:
    """An impersonated client: user, groups, and the extra fields of a token."""

    user: str
    groups: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)

    def headers(self) -> list[tuple[str, str]]:
        """Impersonation: https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/"""
        groups = [("Impersonate-Group", group) for group in self.groups]
        extra = [(f"Impersonate-Extra-{quote(key, safe='')}", text) for key, text in self.extra.items()]
        return [("Impersonate-User", self.user), *groups, *extra]


def service_account(namespace: str, name: str) -> Caller:
    """Return a service account with the groups of its token."""
    return Caller(
        f"system:serviceaccount:{namespace}:{name}", ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    )


def node(name: str) -> Caller:
    """Return a node's kubelet."""
    return Caller(f"system:node:{name}", ("system:nodes", AUTHENTICATED))


class Api:
    """An API server, reached over connection pools with and without the administrator's certificate."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._access = access = kubeconfigs.read(path)
        self._pool = urllib3.HTTPSConnectionPool(
            access.host, access.port, ssl_context=access.tls, server_hostname=access.name, retries=False, maxsize=4
        )
        self._anonymous = urllib3.HTTPSConnectionPool(
            access.host, access.port, ssl_context=self._without_certificate(), server_hostname=access.name, retries=False, maxsize=4
        )

    def _without_certificate(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        authorities = self._access.tls.get_ca_certs(binary_form=True)
        context.load_verify_locations(cadata="".join(ssl.DER_cert_to_PEM_cert(one) for one in authorities))
        return context

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()
        self._anonymous.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        by: Caller | None = None,
        token: str | None = None,
        kind: str = "application/json",
    ) -> Reply:
        """Send a request as the administrator, as an impersonated caller, or with a token; token "" sends no credentials."""
        headers = urllib3.HTTPHeaderDict([("Content-Type", kind), *(by.headers() if by else [])])
        if token:
            headers.add("Authorization", f"Bearer {token}")
        pool = self._pool if token is None else self._anonymous
        response = pool.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
        return Reply(response.status, response.headers, response.data.decode())

    def make(self, path: str, item: Mapping[str, Any]) -> Any:
        """Create an object unless one of its name exists."""
        reply = self.request("POST", path, item)
        assert reply.status in (201, 409), reply.message
        return reply.body

    def remove(self, path: str) -> None:
        """Delete an object at once."""
        reply = self.request("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})
        assert reply.status in (200, 202, 404), reply.message


eventually = partial(until, seconds=120.0)
"""Waits until a condition holds, at most as long as a controller may take."""
