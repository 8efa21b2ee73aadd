"""Requests to an API server over one connection, with retries."""

from __future__ import annotations

import http.client
import json
import random
import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from components.errors import GpufleetError
from lifecycle.kubernetes_api.kubeconfig import ApiAccess

APPLY = "application/apply-patch+yaml"
JSON = "application/json"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""All kinds of all groups in one response: https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery"""
REQUEST_SECONDS = 60.0
FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 5.0
RETRIED = frozenset({429, 502, 503, 504})
"""Statuses that are retried: too many requests, a server that starts or stops, slow storage."""
UNAUTHORIZED = 401
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
"""One warning of a Warning header: https://www.rfc-editor.org/rfc/rfc7234#section-5.5"""


@dataclass(frozen=True)
class ApiResponse:
    """Response of the server: HTTP status, JSON body, warnings."""

    status: int
    body: Mapping[str, Any]
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        """Return the server's message, or the status if it has none."""
        return str(self.body.get("message", f"HTTP {self.status}"))


class ApiServerUnreachableError(GpufleetError):
    """An API server that does not respond, or does not accept the client: address, reason and remedy."""

    def __init__(self, where: str, reason: str, remedy: str) -> None:
        self.where, self.reason, self.remedy = where, reason, remedy
        super().__init__(f"{where}: {reason}; {remedy}")


class Connection:
    """One open connection to an API server. Every request is idempotent, so it is retried after transient failures."""

    def __init__(self, access: ApiAccess, patience: float, say: Callable[[str], None]) -> None:
        self.access, self.patience = access, patience
        self.requests = 0
        self._say = say
        self._http: http.client.HTTPSConnection = _ServerNameConnection(access)
        self._headers = access.headers

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    @property
    def where(self) -> str:
        """Return the server's URL."""
        return f"https://{self.access.host}:{self.access.port}"

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: object = None, kind: str = JSON, accept: str = JSON
    ) -> ApiResponse:
        """Send a request and return the response, whatever its status.

        Raises ApiServerUnreachableError if no response came within patience (seconds), or if the server rejects the credentials.
        """
        target = f"{path}?{urlencode(query)}" if query else path
        text = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        end, wait = time.monotonic() + self.patience, FIRST_WAIT_SECONDS
        while True:
            response, reason, after = self._once(method, target, text, {"Content-Type": kind, "Accept": accept})
            if response is not None and response.status == UNAUTHORIZED:
                raise ApiServerUnreachableError(self.where, "rejects the credentials", "renew the kubeconfig's certificate or token")
            if response is not None and response.status not in RETRIED:
                return response
            pause = max(after, wait * random.uniform(0.5, 1.0))  # noqa: S311 (not for security)
            if time.monotonic() + pause > end:
                remedy = "look at the API servers' logs, or retry later"
                raise ApiServerUnreachableError(self.where, f"{method} {path}: {reason}, for {self.patience:g} s", remedy)
            self._say(f"{method} {path}: {reason}; retry in {pause:.1f} s")
            time.sleep(pause)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)

    def _once(self, method: str, target: str, text: bytes | None, headers: dict[str, str]) -> tuple[ApiResponse | None, str, float]:
        """Send a request once; return the response or None, the reason for a retry, and the seconds of Retry-After."""
        self.requests += 1
        try:
            self._http.request(method, target, text, headers | self._headers)
            response = self._http.getresponse()
            raw = response.read()
        except ssl.SSLCertVerificationError as error:
            self._http.close()
            raise ApiServerUnreachableError(
                self.where, f"has a certificate that is not trusted: {error.verify_message}", "renew the kubeconfig"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            self._http.close()
            return None, type(error).__name__, 0.0
        after = response.getheader("Retry-After", "")
        parsed = parse_response(response.status, response.headers.get_all("Warning", []), raw)
        return parsed, f"HTTP {parsed.status} {parsed.message}"[:200], float(after) if after.isdigit() else 0.0


def parse_response(status: int, warnings: Iterable[str], raw: bytes) -> ApiResponse:
    """Return the response with this status, these Warning headers and this body."""
    texts = tuple(re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(", ".join(warnings)))
    return ApiResponse(status, _json(raw), texts)


def _json(raw: bytes) -> Mapping[str, Any]:
    """Return a body, or its text as the message if it is not JSON of Kubernetes, for example from a proxy."""
    try:
        body = json.loads(raw)
    except ValueError:
        return {"message": raw.decode(errors="replace").strip()}
    return body if isinstance(body, dict) else {"message": str(body)}


class _ServerNameConnection(http.client.HTTPSConnection):
    """A connection to a server whose certificate carries another name than the address that it is reached by."""

    def __init__(self, access: ApiAccess) -> None:
        super().__init__(access.host, access.port, timeout=REQUEST_SECONDS, context=access.tls)
        self._access = access

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._access.tls.wrap_socket(self.sock, server_hostname=self._access.name)
