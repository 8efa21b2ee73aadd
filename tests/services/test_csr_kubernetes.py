"""Signing requests are read from the API server's JSON, and no more of it than is needed."""

from __future__ import annotations

import base64
from typing import Any

import signing_requests as made

from services.csr_approver.kubernetes_api import PendingEvent, SettledEvent, event_of, request_of
from services.csr_approver.verdicts import PEM_BYTES


def shown(text: bytes, **status: object) -> dict[str, Any]:
    """A CertificateSigningRequest in JSON."""
    return {
        "metadata": {"name": "csr-1", "resourceVersion": "7"},
        "spec": {
            "request": base64.b64encode(text).decode(),
            "signerName": "kubernetes.io/kubelet-serving",
            "username": f"system:node:{made.NODE}",
            "groups": ["system:nodes", "system:authenticated"],
            "usages": ["digital signature", "server auth"],
        },
        "status": status,
    }


def test_a_pending_request_is_what_the_kubelet_sent() -> None:
    expected = made.request(made.pem(), seen=3.0)
    found = request_of(shown(expected.pem), 3.0)
    assert (found.version, found.name) == ("7", "csr-1")
    assert (found.pem, found.username, found.groups, found.usages, found.signer, found.seen) == (
        expected.pem,
        expected.username,
        expected.groups,
        expected.usages,
        expected.signer,
        3.0,
    )


def test_of_a_text_that_is_too_long_no_more_is_kept_than_shows_it() -> None:
    assert len(request_of(shown(b"x" * 1_000_000), 0.0).pem) == PEM_BYTES + 1


def test_a_request_without_a_readable_text_is_an_empty_one() -> None:
    item = shown(b"")
    item["spec"]["request"] = "%%%"
    assert request_of(item, 0.0).pem == b""


def test_a_request_that_is_decided_issued_or_deleted_is_settled() -> None:
    assert event_of(shown(b"", conditions=[{"type": "Denied"}]), "MODIFIED", 0.0) == SettledEvent("csr-1")
    assert event_of(shown(b"", certificate="Zm9v"), "MODIFIED", 0.0) == SettledEvent("csr-1")
    assert event_of(shown(b""), "DELETED", 0.0) == SettledEvent("csr-1")
    assert isinstance(event_of(shown(b""), "ADDED", 0.0), PendingEvent)
