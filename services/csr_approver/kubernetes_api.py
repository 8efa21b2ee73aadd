"""Signing requests from the API server, and decisions written to it."""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import urllib3
from kubernetes import client, watch

from services.csr_approver.approval_loop import RequestChangedError, ServiceUnreachableError
from services.csr_approver.attested_data import DOCUMENT_BYTES, ISSUER_BYTES
from services.csr_approver.first_requests import DOCUMENT_ANNOTATION, ISSUERS_ANNOTATION
from services.csr_approver.verdicts import CLIENT_SIGNER, PEM_BYTES, SIGNER, SigningRequest

OTHER_SIGNERS = ("kubernetes.io/kube-apiserver-client", "kubernetes.io/legacy-unknown")
"""Kubernetes' other signers, whose requests the API server leaves out; a field selector cannot select two signers."""
SELECTOR = ",".join(f"spec.signerName!={signer}" for signer in OTHER_SIGNERS)
SIGNERS = (SIGNER, CLIENT_SIGNER)
PAGE = 500
WATCH_SECONDS = 600
"""Time after which a watch ends and the requests are listed again: the listing returns requests that did not fit into the queue."""
QUIET_SECONDS = 180
"""Silence after which a watch counts as dead; the API server sends a bookmark about once a minute."""
REQUEST_SECONDS = 30
CONDITION_REASON = "GpufleetCsrApprover"
CHANGED_STATUSES = (404, 409)

Json = dict[str, Any]


@dataclass(frozen=True)
class PendingEvent:
    """A request without a decision."""

    request: SigningRequest


@dataclass(frozen=True)
class SettledEvent:
    """A request that is decided, issued or deleted."""

    name: str


def decoded(text: object, most: int) -> bytes:
    """Return at most one byte more than `most` of a text in base64, nothing for another text."""
    try:
        return base64.b64decode(str(text)[: 4 * most], validate=True)[: most + 1]
    except (binascii.Error, ValueError):
        return b""


def request_of(item: Json, seen: float) -> SigningRequest:
    """Convert a request from JSON; of a text that is too long only enough to detect that."""
    spec = item["spec"]
    annotations = item["metadata"].get("annotations") or {}
    return SigningRequest(
        name=item["metadata"]["name"],
        version=item["metadata"]["resourceVersion"],
        signer=str(spec.get("signerName", "")),
        username=str(spec.get("username", "")),
        groups=frozenset(spec.get("groups") or ()),
        usages=frozenset(spec.get("usages") or ()),
        pem=decoded(spec.get("request", ""), PEM_BYTES),
        seen=seen,
        document=decoded(annotations.get(DOCUMENT_ANNOTATION, ""), DOCUMENT_BYTES),
        issuers=str(annotations.get(ISSUERS_ANNOTATION, ""))[: ISSUER_BYTES + 1].encode(),
    )


def event_of(item: Json, kind: str, seen: float) -> PendingEvent | SettledEvent:
    """Convert an event of the watch, or an entry of a listing; a request for another signer counts as settled."""
    status = item.get("status") or {}
    if kind == "DELETED" or item["spec"].get("signerName") not in SIGNERS or status.get("conditions") or status.get("certificate"):
        return SettledEvent(item["metadata"]["name"])
    return PendingEvent(request_of(item, seen))


class SigningRequests:
    """The signing requests of kubelets, and the decisions on them."""

    def __init__(self, api: client.CertificatesV1Api) -> None:
        self._api = api
        self.heard_at = time.monotonic()
        """Monotonic time of the last response of the API server, in seconds."""

    def events(self) -> Iterator[PendingEvent | SettledEvent]:
        """Yield one listing, then every change until the watch ends; ApiException or urllib3's HTTPError without a response."""
        following = ""
        while True:
            page = self._page(following)
            self.heard_at = time.monotonic()
            for listed in page["items"]:
                yield event_of(listed, "ADDED", self.heard_at)
            following = page["metadata"].get("continue", "")
            if not following:
                break
        stream = watch.Watch(return_type="object").stream(  # type: ignore[no-untyped-call]
            self._api.list_certificate_signing_request,
            field_selector=SELECTOR,
            resource_version=page["metadata"]["resourceVersion"],
            timeout_seconds=WATCH_SECONDS,
            allow_watch_bookmarks=True,
            _request_timeout=(REQUEST_SECONDS, QUIET_SECONDS),
        )
        for event in stream:
            self.heard_at = time.monotonic()
            if event is not None and event["type"] != "BOOKMARK":
                yield event_of(event["object"], event["type"], self.heard_at)

    def _page(self, following: str) -> Json:
        """Return one page of the listing as JSON: the client's models reject fields of later API servers."""
        response: Any = self._api.list_certificate_signing_request(
            field_selector=SELECTOR, limit=PAGE, _continue=following or None, _request_timeout=REQUEST_SECONDS, _preload_content=False
        )
        page: Json = json.loads(response.data)
        return page

    def approve(self, request: SigningRequest, reason: str) -> None:
        """Approve a request; RequestChangedError if it changed since it was read, ServiceUnreachableError without a response."""
        self._decide(request, "Approved", reason)

    def deny(self, request: SigningRequest, reason: str) -> None:
        """Deny a request; RequestChangedError if it changed since it was read, ServiceUnreachableError without a response."""
        self._decide(request, "Denied", reason)

    def _decide(self, request: SigningRequest, kind: str, reason: str) -> None:
        """Write one condition for the version that was checked; the API server rejects it for any other version."""
        decided_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        condition = {"type": kind, "status": "True", "reason": CONDITION_REASON, "message": reason, "lastUpdateTime": decided_at}
        body = {
            "metadata": {"name": request.name, "resourceVersion": request.version},
            # The API server ignores this specification, and requires one.
            "spec": {"request": "", "signerName": request.signer},
            "status": {"conditions": [condition]},
        }
        try:
            # Without the client's models, whose decoding of the response costs more than the call.
            response: Any = self._api.replace_certificate_signing_request_approval(
                request.name,
                body,  # type: ignore[arg-type]
                _request_timeout=REQUEST_SECONDS,
                _preload_content=False,
            )
            response.read()
        except client.ApiException as error:
            if error.status in CHANGED_STATUSES:
                raise RequestChangedError(f"HTTP {error.status}") from error
            raise ServiceUnreachableError(f"HTTP {error.status} {error.reason}") from error
        except urllib3.exceptions.HTTPError as error:
            raise ServiceUnreachableError(type(error).__name__) from error
