"""Admission rules beyond RBAC, on real API servers: the node's owner, labels and taints."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from api_client import AUTHENTICATED, MERGE, Api, Caller, Reply, eventually, node

from components.manifests.owned import FLEET_NAMESPACE
from components.plan.access import (
    BOOTSTRAP_GROUP,
    BOOTSTRAP_TOKEN_IDS,
    CSR_APPROVER_USER,
    PREFLIGHT_ACCOUNT,
    PREFLIGHT_KEY,
    REIMAGED_AT,
    ROTATION_ACCOUNT,
)

OWN, OTHER = "admission-own", "admission-other"
UNTESTED = {"key": PREFLIGHT_KEY, "value": "pending", "effect": "NoSchedule"}
SPOT = {"key": "gpufleet.io/spot", "value": "true", "effect": "NoSchedule"}
LABELS = {PREFLIGHT_KEY: "pending", "gpufleet.io/pool": "gpu"}
PODS = f"/api/v1/namespaces/{FLEET_NAMESPACE}/pods"


def _token(api: Api, account: str, bound_to: dict[str, str] | None = None) -> str:
    spec: dict[str, Any] = {"expirationSeconds": 600} | ({"boundObjectRef": bound_to} if bound_to else {})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    reply = api.request("POST", f"/api/v1/namespaces/{FLEET_NAMESPACE}/serviceaccounts/{account}/token", request)
    assert reply.status == 201, reply.message
    return str(reply.body["status"]["token"])


@pytest.fixture
def nodes(api: Api) -> Iterator[None]:
    """Two nodes that have just joined: with the taint and label of the untested, and a taint and a label of their pool."""
    for name in (OWN, OTHER):
        api.remove(f"/api/v1/nodes/{name}")
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": LABELS}, "spec": {"taints": [UNTESTED, SPOT]}}
        api.make("/api/v1/nodes", body)
    yield
    for name in (OWN, OTHER):
        api.remove(f"/api/v1/nodes/{name}")


@pytest.fixture
def preflight(api: Api, nodes: None) -> Iterator[str]:  # noqa: ARG001
    """Token of a test's pod on the first node, as its kubelet would mount it.

    The pod has a name that none had before: an API server that still knows an earlier pod of that name takes no token of a later one.
    """
    name = f"admission-preflight-{uuid.uuid4().hex[:8]}"
    container = {"name": "test", "image": "registry.k8s.io/pause:3.10"}
    spec = {
        "nodeName": OWN,
        "serviceAccountName": PREFLIGHT_ACCOUNT,
        "containers": [container],
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
    }
    made = api.make(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    bound = {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": made["metadata"]["uid"]}
    yield _token(api, PREFLIGHT_ACCOUNT, bound)
    api.remove(f"{PODS}/{name}")


@pytest.fixture
def rotation(api: Api, nodes: None) -> str:  # noqa: ARG001
    """Token of a run of the rotation."""
    return _token(api, ROTATION_ACCOUNT)


def _patch(api: Api, name: str, token: str, change: dict[str, Any], kind: str = MERGE) -> Reply:
    return api.request("PATCH", f"/api/v1/nodes/{name}", change, token=token, kind=kind)


def _change(api: Api, name: str, token: str, *, preflight: bool, **more: Any) -> Reply:
    """Put the mark of the untested on a node (True), or take it away (False), beside other changes.

    Taints are changed all or none, and those of others come and go meanwhile: so the change is of the version that was read.
    """
    while True:
        seen = api.request("GET", f"/api/v1/nodes/{name}").body
        others = [taint for taint in seen["spec"].get("taints", []) if taint["key"] != PREFLIGHT_KEY]
        labels = {PREFLIGHT_KEY: "pending" if preflight else None}
        change = {
            "metadata": {"resourceVersion": seen["metadata"]["resourceVersion"], "labels": labels},
            "spec": {"taints": [*([UNTESTED] if preflight else []), *others], **more},
        }
        if (reply := _patch(api, name, token, change)).status != 409:
            return reply


def _passed(api: Api, name: str, token: str) -> Reply:
    """Remove the label and taint as after a passed test, and leave the rest unchanged."""
    return _change(api, name, token, preflight=False)


def test_a_test_that_has_passed_opens_its_own_node(api: Api, preflight: str) -> None:
    opened = _passed(api, OWN, preflight)
    assert opened.status == 200, opened.message
    assert opened.body["metadata"]["labels"] == {"gpufleet.io/pool": "gpu"}
    assert UNTESTED not in opened.body["spec"]["taints"]
    assert SPOT in opened.body["spec"]["taints"]
    again = _passed(api, OWN, preflight)
    assert again.status == 200, again.message


def test_a_test_opens_no_other_node(api: Api, preflight: str) -> None:
    refused = _passed(api, OTHER, preflight)
    assert refused.status == 403
    assert "only the node that its own pod runs on" in refused.message


@pytest.mark.usefixtures("nodes")
def test_a_token_of_no_pod_opens_no_node(api: Api) -> None:
    refused = _passed(api, OWN, _token(api, PREFLIGHT_ACCOUNT))
    assert refused.status == 403
    assert "by the token of that pod" in refused.message


def _label(key: str, value: str | None) -> dict[str, Any]:
    return {"metadata": {"labels": {key: value}}}


BEYOND_A_TEST: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("another label put on", _label("gpufleet.io/team", "mine"), "no other"),
    ("another label changed", _label("gpufleet.io/pool", "cpu"), "no other"),
    ("another label taken away", _label("gpufleet.io/pool", None), "no other"),
    ("its label changed", _label(PREFLIGHT_KEY, "passed"), "take the label"),
    ("another taint taken away", {"spec": {"taints": [UNTESTED]}}, "no other"),
    ("another taint put on", {"spec": {"taints": [UNTESTED, SPOT, SPOT | {"key": "mine"}]}}, "no other"),
    ("another taint changed", {"spec": {"taints": [UNTESTED, SPOT | {"value": "false"}]}}, "no other"),
    ("its taint changed", {"spec": {"taints": [UNTESTED | {"effect": "NoExecute"}, SPOT]}}, "take the taint"),
    ("an annotation put on", {"metadata": {"annotations": {"mine": "yes"}}}, "no annotation"),
    ("cordoned", {"spec": {"unschedulable": True}}, "neither cordons"),
    ("given a provider id", {"spec": {"providerID": "azure:///mine"}}, "provider id"),
    ("given a finalizer", {"metadata": {"finalizers": ["gpufleet.io/mine"]}}, "finalizers"),
    (
        "given an owner",
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": OTHER, "uid": "1"}]}},
        "owners",
    ),
)


@pytest.mark.parametrize(("what", "change", "said"), BEYOND_A_TEST, ids=[row[0] for row in BEYOND_A_TEST])
def test_a_test_changes_nothing_else_of_its_own_node(api: Api, preflight: str, what: str, change: dict[str, Any], said: str) -> None:
    refused = _patch(api, OWN, preflight, change)
    assert refused.status == 403, what
    assert said in refused.message


def test_a_test_does_not_close_a_node_that_is_open(api: Api, preflight: str) -> None:
    assert _passed(api, OWN, preflight).status == 200
    for refused in (_patch(api, OWN, preflight, _label(PREFLIGHT_KEY, "pending")), _change(api, OWN, preflight, preflight=True)):
        assert refused.status == 403
        assert "not put it on" in refused.message


def test_a_rotation_cordons_says_why_and_marks_a_node_untested(api: Api, rotation: str, preflight: str) -> None:
    assert _passed(api, OWN, preflight).status == 200
    why = {"gpufleet.io/cordoned-by": "rotation", "gpufleet.io/cordoned-until": "2026-11-22T00:00:00Z"}
    cordoned = _patch(api, OWN, rotation, {"spec": {"unschedulable": True}, "metadata": {"annotations": why}})
    assert cordoned.status == 200, cordoned.message
    marked = _change(api, OWN, rotation, preflight=True)
    assert marked.status == 200, marked.message
    assert UNTESTED in marked.body["spec"]["taints"]
    uncordoned = _patch(api, OWN, rotation, {"spec": {"unschedulable": None}, "metadata": {"annotations": dict.fromkeys(why)}})
    assert uncordoned.status == 200, uncordoned.message


BEYOND_A_ROTATION: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("another pool's", _label("gpufleet.io/pool", "cpu"), "of a node's labels"),
    ("given to a team", {"spec": {"taints": [UNTESTED, SPOT, SPOT | {"key": "gpufleet.io/team"}]}}, "of a node's taints"),
    ("a stranger's annotation", {"metadata": {"annotations": {"kubectl.kubernetes.io/x": "y"}}}, "of a node's annotations"),
    ("another machine's", {"spec": {"providerID": "azure:///other"}}, "provider id"),
)


@pytest.mark.parametrize(("what", "change", "said"), BEYOND_A_ROTATION, ids=[row[0] for row in BEYOND_A_ROTATION])
def test_a_rotation_changes_nothing_else_of_a_node(api: Api, rotation: str, what: str, change: dict[str, Any], said: str) -> None:
    refused = _patch(api, OTHER, rotation, change)
    assert refused.status == 403, what
    assert said in refused.message


def _ready(api: Api, status: str) -> None:
    condition = {"type": "Ready", "status": status, "reason": "Test", "message": "", "lastHeartbeatTime": None, "lastTransitionTime": None}
    reply = api.request("PATCH", f"/api/v1/nodes/{OTHER}/status", {"status": {"conditions": [condition]}}, kind=MERGE)
    assert reply.status == 200, reply.message


def test_a_rotation_deletes_a_node_only_when_it_is_cordoned_and_silent(api: Api, rotation: str) -> None:
    def delete() -> Reply:
        return api.request("DELETE", f"/api/v1/nodes/{OTHER}", token=rotation)

    _ready(api, "True")
    assert _patch(api, OTHER, rotation, {"spec": {"unschedulable": True}}).status == 200
    refused = delete()
    assert refused.status == 403
    assert "no longer reports" in refused.message
    _ready(api, "Unknown")
    assert _patch(api, OTHER, rotation, {"spec": {"unschedulable": None}}).status == 200
    assert delete().status == 403
    assert _patch(api, OTHER, rotation, {"spec": {"unschedulable": True}}).status == 200
    gone = delete()
    assert gone.status == 200, gone.message


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("its taints", {"spec": {"taints": []}}),
        ("a label that only administrators give", _label("node-restriction.kubernetes.io/trusted", "true")),
        ("a label of Kubernetes' own", _label("kubernetes.io/role", "master")),
    ],
)
@pytest.mark.usefixtures("nodes")
def test_a_kubelet_does_not_change_of_its_own_node(api: Api, what: str, change: dict[str, Any]) -> None:
    refused = api.request("PATCH", f"/api/v1/nodes/{OWN}", change, by=node(OWN), kind=MERGE)
    assert refused.status == 403, what
    assert "is not allowed" in refused.message


@pytest.mark.usefixtures("nodes")
def test_a_kubelet_changes_its_own_node_and_no_other(api: Api) -> None:
    change = {"metadata": {"annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}}
    assert api.request("PATCH", f"/api/v1/nodes/{OWN}", change, by=node(OWN), kind=MERGE).status == 200
    for path in (f"/api/v1/nodes/{OTHER}", f"/api/v1/nodes/{OTHER}/status"):
        refused = api.request("PATCH", path, change, by=node(OWN), kind=MERGE)
        assert refused.status == 403, path
        assert "is not allowed to modify node" in refused.message


@pytest.mark.usefixtures("nodes")
def test_nobody_elses_changes_are_looked_at(api: Api) -> None:
    eventually(lambda: api.request("GET", f"/api/v1/nodes/{OTHER}").status == 200, "the node")
    assert api.request("PATCH", f"/api/v1/nodes/{OTHER}", _label("gpufleet.io/pool", "other"), kind=MERGE).status == 200


def test_a_kubelet_does_not_record_a_reimage_and_the_rotation_does(api: Api, nodes: None, rotation: str) -> None:  # noqa: ARG001
    record = {"metadata": {"annotations": {REIMAGED_AT: "2026-11-24T12:00:00Z"}}}
    for path in (f"/api/v1/nodes/{OWN}", f"/api/v1/nodes/{OWN}/status"):
        reply = api.request("PATCH", path, record, by=node(OWN), kind=MERGE)
        assert (reply.status, f"nodes do not set annotation {REIMAGED_AT}" in reply.message) == (403, True), path
    assert _patch(api, OWN, rotation, record).status == 200
    later = {"metadata": {"annotations": {REIMAGED_AT: "2026-11-25T12:00:00Z"}}}
    assert api.request("PATCH", f"/api/v1/nodes/{OWN}", later, by=node(OWN), kind=MERGE).status == 403
    harmless = {"metadata": {"annotations": {"example.org/any": "thing"}}}
    assert api.request("PATCH", f"/api/v1/nodes/{OWN}", harmless, by=node(OWN), kind=MERGE).status == 200
    api.remove(f"/api/v1/nodes/{OWN}")
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": OWN, **record["metadata"]}}
    assert api.request("POST", "/api/v1/nodes", body, by=node(OWN)).status == 403
    body["metadata"] = {"name": OWN}
    assert api.request("POST", "/api/v1/nodes", body, by=node(OWN)).status == 201


def test_the_approver_writes_bootstrap_tokens_of_new_machines_and_no_other_secret(api: Api) -> None:
    approver, secrets = Caller(CSR_APPROVER_USER, (AUTHENTICATED,)), "/api/v1/namespaces/kube-system/secrets"
    fields = {
        "token-id": BOOTSTRAP_TOKEN_IDS[0],
        "token-secret": "0123456789abcdef",
        "expiration": "2099-01-01T00:00:00Z",
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": BOOTSTRAP_GROUP,
    }

    def written(name: str = f"bootstrap-token-{BOOTSTRAP_TOKEN_IDS[0]}", kind: str = "bootstrap.kubernetes.io/token", **more: str) -> Reply:
        body = {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": {"name": name}, "stringData": fields | more}
        return api.request("POST", f"{secrets}?dryRun=All", body, by=approver)

    refused = {
        "another name": written("bootstrap-token-zzzzzz"),
        "another kind": written(kind="Opaque"),
        "another group": written(**{"auth-extra-groups": "system:bootstrappers:others"}),
        "another use": written(**{"usage-bootstrap-signing": "true"}),
    }
    assert {why: reply.status for why, reply in refused.items()} == dict.fromkeys(refused, 403)
    assert all("the approver writes only bootstrap tokens" in reply.message for reply in refused.values())
    # 409 where an approver of this control plane has created the token.
    assert written().status in (201, 409)
    own = f"bootstrap-token-{BOOTSTRAP_TOKEN_IDS[0]}"
    for method, path in (("GET", f"{secrets}/coredns"), ("PUT", f"{secrets}/coredns"), ("DELETE", f"{secrets}/{own}"), ("GET", secrets)):
        assert api.request(method, path, {} if method == "PUT" else None, by=approver).status == 403, (method, path)
