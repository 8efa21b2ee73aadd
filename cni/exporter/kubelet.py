"""Pods by address, from the kubelet of the same machine; no request goes to the API server.

The kubelet requires access to the resource nodes/pods, which shows only pods, whereas nodes/proxy would run commands in them:
https://kubernetes.io/docs/reference/access-authn-authz/kubelet-authn-authz/#fine-grained-authorization
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cni.exporter.attribution import Pod

SECONDS = 10.0
OVER = frozenset({"Succeeded", "Failed"})
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_KEPT = frozenset(("items", "metadata", "uid", "namespace", "name", "spec", "hostNetwork", "status", "phase", "podIP", "podIPs", "ip"))


class KubeletUnreachableError(Exception):
    """The kubelet did not tell; the message says why, and what to do about it."""


def parse(text: bytes) -> dict[str, list[Pod]]:
    """Return the pods of a PodList by address, without pods on the machine's own address and pods without one.

    Unneeded fields are dropped while the list is parsed: 250 whole pods take more memory than the rest of the exporter.
    """
    document = json.loads(text, object_hook=_lighter)
    found: dict[str, list[Pod]] = {}
    for item in document.get("items") or []:
        meta, status = item["metadata"], item.get("status", {})
        if item.get("spec", {}).get("hostNetwork"):
            continue
        pod = Pod(meta["uid"], meta["namespace"], meta["name"], status.get("phase") in OVER)
        for address in {status.get("podIP"), *(row.get("ip") for row in status.get("podIPs") or [])} - {None, ""}:
            found.setdefault(address, []).append(pod)
    return found


def _lighter(table: dict[str, Any]) -> dict[str, Any]:
    return {key: table[key] for key in _KEPT & table.keys()}


class _ByName(http.client.HTTPSConnection):
    """A connection to an address whose certificate names another host."""

    def __init__(self, host: str, port: int, name: str, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=SECONDS)
        self._name, self._trust = name, context

    def connect(self) -> None:
        plain = socket.create_connection((self.host, self.port), SECONDS)
        self.sock = self._trust.wrap_socket(plain, server_hostname=self._name)


@dataclass(frozen=True)
class Kubelet:
    """The kubelet at host and port, whose certificate names node and is issued by the cluster's authority."""

    node: str
    host: str = "127.0.0.1"
    port: int = 10250
    token: Path = ACCOUNT / "token"
    authority: Path = ACCOUNT / "ca.crt"

    def pods(self) -> Mapping[str, list[Pod]]:
        """Return the present pods by address; raise KubeletUnreachableError if the kubelet does not answer or rejects the request."""
        return self._guarded(lambda: parse(self._asked()))

    def _asked(self) -> bytes:
        # Read every time: the token is renewed in place before it ends.
        headers = {"Authorization": f"Bearer {self.token.read_text().strip()}", "Accept": "application/json"}
        link = _ByName(self.host, self.port, self.node, ssl.create_default_context(cafile=str(self.authority)))
        try:
            link.request("GET", "/pods", headers=headers)
            answer = link.getresponse()
            said = answer.read()
        finally:
            link.close()
        if answer.status != http.client.OK:
            raise KubeletUnreachableError(
                f"it answered {answer.status}, not 200, to {self._where()}: get on nodes/pods is what it asks for"
            )
        return said

    def _guarded(self, ask: Callable[[], Mapping[str, list[Pod]]]) -> Mapping[str, list[Pod]]:
        try:
            return ask()
        except ssl.SSLError as error:
            raise KubeletUnreachableError(f"{self._where()} is not {self.node} by {self.authority}: {error.reason or error}") from None
        except (OSError, http.client.HTTPException) as error:
            raise KubeletUnreachableError(f"{self._where()} cannot be asked: {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise KubeletUnreachableError(f"{self._where()} answered something else than a list of pods: {type(error).__name__}") from None

    def _where(self) -> str:
        return f"https://{self.host}:{self.port}/pods"
