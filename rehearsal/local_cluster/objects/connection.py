"""How one request to an API server is made, and how long one that may yet succeed is repeated."""

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
from rehearsal.local_cluster.objects.kubeconfig import ApiAccess

APPLY = "application/apply-patch+yaml"
JSON = "application/json"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""All kinds of all groups in one answer: https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery"""
REQUEST_SECONDS = 60.0
FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 5.0
AGAIN = frozenset({429, 502, 503, 504})
"""Answers after which the same request may succeed: too many at a time, a server that starts or stops, storage that is slow."""
UNAUTHORIZED = 401
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
"""One warning of a Warning header: https://www.rfc-editor.org/rfc/rfc7234#section-5.5"""


@dataclass(frozen=True)
class ApiResponse:
    """What the server answered: HTTP status, JSON body, warnings."""

    status: int
    body: Mapping[str, Any]
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        """The server's reason."""
        return str(self.body.get("message", f"HTTP {self.status}"))


class ApiServerUnreachableError(GpufleetError):
    """The API server did not answer, or not this caller: where, why, what to do."""

    def __init__(self, where: str, reason: str, remedy: str) -> None:
        self.where, self.reason, self.remedy = where, reason, remedy
        super().__init__(f"{where}: {reason}; {remedy}")


class Connection:
    """One connection, kept open. Every request made here may be made twice, so it is repeated after whatever may pass."""

    def __init__(self, access: ApiAccess, patience: float, say: Callable[[str], None]) -> None:
        self.access, self.patience = access, patience
        self.requests = 0
        self._say = say
        self._http: http.client.HTTPSConnection = _Named(access)
        self._headers = access.headers

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()

    @property
    def where(self) -> str:
        """The server's address."""
        return f"https://{self.access.host}:{self.access.port}"

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: object = None, kind: str = JSON, accept: str = JSON
    ) -> ApiResponse:
        """The server's answer, good or bad; NoAnswer where patience (seconds) ended before it had one, or it does not know the caller."""
        target = f"{path}?{urlencode(query)}" if query else path
        text = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        end, wait = time.monotonic() + self.patience, FIRST_WAIT_SECONDS
        while True:
            answer, reason, after = self._once(method, target, text, {"Content-Type": kind, "Accept": accept})
            if answer is not None and answer.status == UNAUTHORIZED:
                raise ApiServerUnreachableError(self.where, "does not know who is asking", "renew the kubeconfig's certificate or token")
            if answer is not None and answer.status not in AGAIN:
                return answer
            pause = max(after, wait * random.uniform(0.5, 1.0))  # noqa: S311 (spreads callers, guards nothing)
            if time.monotonic() + pause > end:
                remedy = "look at the API servers' logs, or try again later"
                raise ApiServerUnreachableError(self.where, f"{method} {path}: {reason}, for {self.patience:g} s", remedy)
            self._say(f"{method} {path}: {reason}; again in {pause:.1f} s")
            time.sleep(pause)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)

    def _once(self, method: str, target: str, text: bytes | None, headers: dict[str, str]) -> tuple[ApiResponse | None, str, float]:
        """One try: the answer if there was one, why it may be none, and for how many seconds the server asks to be left alone."""
        self.requests += 1
        try:
            self._http.request(method, target, text, headers | self._headers)
            response = self._http.getresponse()
            raw = response.read()
        except ssl.SSLCertVerificationError as error:
            self._http.close()
            raise ApiServerUnreachableError(
                self.where, f"shows a certificate that is not trusted: {error.verify_message}", "renew the kubeconfig"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            self._http.close()
            return None, type(error).__name__, 0.0
        after = response.getheader("Retry-After", "")
        answer = parse_response(response.status, response.headers.get_all("Warning", []), raw)
        return answer, f"HTTP {answer.status} {answer.message}"[:200], float(after) if after.isdigit() else 0.0


def parse_response(status: int, warnings: Iterable[str], raw: bytes) -> ApiResponse:
    """An answer from its status, its Warning headers and its body."""
    said = tuple(re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(", ".join(warnings)))
    return ApiResponse(status, _json(raw), said)


def _json(raw: bytes) -> Mapping[str, Any]:
    """A body, or its text as a message where it is none of Kubernetes' own: a proxy's, or a filter's."""
    try:
        body = json.loads(raw)
    except ValueError:
        return {"message": raw.decode(errors="replace").strip()}
    return body if isinstance(body, dict) else {"message": str(body)}


class _Named(http.client.HTTPSConnection):
    """A connection to a server that proves another name than the address by which it is reached."""

    def __init__(self, access: ApiAccess) -> None:
        super().__init__(access.host, access.port, timeout=REQUEST_SECONDS, context=access.tls)
        self._access = access

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._access.tls.wrap_socket(self.sock, server_hostname=self._access.name)
