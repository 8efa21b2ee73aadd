"""Objects applied through a network and an API server that do not always answer, or not at all."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml
from api_client import Api, eventually
from plane_tls import context, get
from resetting_relay import resets

from components.manifests.flow_control import VERSION as FLOW_CONTROL_VERSION
from components.manifests.owned import FLEET_NAMESPACE
from components.plan.model import API_SERVER_PORT
from lifecycle.kubernetes_api.connection import ApiServerUnreachableError
from lifecycle.kubernetes_api.kubeconfig import KubeconfigError
from rehearsal.local_cluster.control_plane import ControlPlane
from rehearsal.local_cluster.objects.apply import NothingDeclaredError, apply
from rehearsal.local_cluster.objects.kinds import PRUNED_KINDS
from rehearsal.local_cluster.objects.results import KubernetesObject

Objects = tuple[KubernetesObject, ...]
SPACE = f"/api/v1/namespaces/{FLEET_NAMESPACE}"


def _quiet(_: str) -> None:
    """Print nothing."""


@contextmanager
def _seat_taken(port: int, authority: Path, token: str, schema: str) -> Iterator[None]:
    """An API server at work, by a flow schema, on a request whose body does not come: all others of the level are turned away."""
    trust = context(authority, None)
    flow = "X-Kubernetes-PF-FlowSchema-UID"
    eventually(lambda: get(port, "/version", trust, token).headers.get(flow) == schema, "the flow schema is in force")
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=trust)
    connection.putrequest("POST", f"{SPACE}/configmaps")
    for name, value in {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Content-Length": "2"}.items():
        connection.putheader(name, value)
    connection.endheaders()
    try:
        eventually(lambda: get(port, "/version", trust, token).status == 429, "another request is turned away")
        yield
    finally:
        connection.close()


def test_an_answer_of_too_many_requests_is_waited_out(
    control_plane: ControlPlane, kubeconfig: Path, declared: Objects, api: Api, tmp_path: Path
) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "throttled", "namespace": FLEET_NAMESPACE}}
    api.make(f"{SPACE}/serviceaccounts", account)
    subject = {"kind": "ServiceAccount", "name": "throttled", "namespace": FLEET_NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    api.make(bindings, {"metadata": {"name": "throttled"}, "roleRef": role, "subjects": [subject]})
    flows = f"/apis/{FLOW_CONTROL_VERSION}"
    # One request at a time, and none waits.
    narrow = {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}},
    }
    api.make(f"{flows}/prioritylevelconfigurations", {"metadata": {"name": "narrow"}, "spec": narrow})
    rule = {
        "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"namespace": FLEET_NAMESPACE, "name": "throttled"}}],
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    schema = {"matchingPrecedence": 50, "priorityLevelConfiguration": {"name": "narrow"}, "rules": [rule]}
    uid = api.make(f"{flows}/flowschemas", {"metadata": {"name": "narrow"}, "spec": schema})["metadata"]["uid"]
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    token = api.request("POST", f"{SPACE}/serviceaccounts/throttled/token", request).body["status"]["token"]
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    mine = tmp_path / "kubeconfig"
    mine.write_text(yaml.safe_dump(document))
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        held.close()

    try:
        with ExitStack() as held:
            for server in control_plane.api_servers:
                held.enter_context(_seat_taken(server.port(API_SERVER_PORT), control_plane.authority, token, uid))
            applied = apply(mine, declared, say)
    finally:
        for path in (f"{flows}/flowschemas/narrow", f"{flows}/prioritylevelconfigurations/narrow", f"{bindings}/throttled"):
            api.remove(path)
        api.remove(f"{SPACE}/serviceaccounts/throttled")
    assert "HTTP 429" in said[0]
    assert applied.complete
    assert applied.requests > 2 + len(PRUNED_KINDS) + len(declared)


@pytest.mark.usefixtures("api")
def test_connections_that_are_reset_are_made_again(kubeconfig: Path, declared: Objects, tmp_path: Path) -> None:
    document = yaml.safe_load(kubeconfig.read_text())
    server = document["clusters"][0]["cluster"]
    said: list[str] = []
    with resets(server["server"], every=25) as port:
        server["server"] = f"https://127.0.0.1:{port}"
        mine = tmp_path / "kubeconfig"
        mine.write_text(yaml.safe_dump(document))
        applied = apply(mine, declared, said.append)
    assert applied.complete
    assert len(applied.unchanged) == len(declared)
    assert len(said) >= 2


def test_a_cluster_that_does_not_answer_is_told_in_one_line(kubeconfig: Path, declared: Objects, tmp_path: Path) -> None:
    document = yaml.safe_load(kubeconfig.read_text())
    with resets(document["clusters"][0]["cluster"]["server"], every=0) as port:
        document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        mine = tmp_path / "kubeconfig"
        mine.write_text(yaml.safe_dump(document))
        began = time.monotonic()
        with pytest.raises(ApiServerUnreachableError, match=r"GET /api: \w+, for 1 s; look at the API servers"):
            apply(mine, declared, _quiet, patience=1.0)
        assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        ("]", "ParserError"),
        ("a: b", "KeyError"),
        ("current-context: c\ncontexts: []\nclusters: []\nusers: []", "StopIteration"),
    ],
)
def test_a_kubeconfig_that_is_none_is_refused_with_what_is_wrong(declared: Objects, tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    with pytest.raises(KubeconfigError, match=said):
        apply(path, declared, _quiet)


def test_a_program_that_declares_nothing_takes_nothing_away(kubeconfig: Path) -> None:
    with pytest.raises(NothingDeclaredError, match="registered none"):
        apply(kubeconfig, (), _quiet)
