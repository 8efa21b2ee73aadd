"""A flood of node agents through the balancer, and an API server's response times for other clients meanwhile."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from api_calls import PATIENCE_SECONDS, Client
from faulty_plane import FaultyPlane

from components.manifests.flow_control import AGENTS, HAND, QUEUE_LENGTH, seats
from components.manifests.owned import FLEET_NAMESPACE
from components.plan.access import entra_group
from rehearsal.local_cluster.joining.cluster_access import issuer_of
from rehearsal.local_cluster.joining.node_object import NODE_USER, NODES_GROUP

NAMESPACE, ACCOUNT = FLEET_NAMESPACE, "telemetry"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
SECRETS, SECRET_BYTES = 40, 100_000
CONNECTIONS = 1_050
"""A quarter more requests than two of the smallest servers process and queue for one account, so that some are always refused."""
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
PAUSE_SECONDS = 0.2
EXECUTING = re.compile(
    r'^apiserver_flowcontrol_current_executing_(seats|requests){flow_schema="([^"]+)",priority_level="[^"]+"} (\S+)$', re.MULTILINE
)


def prepare(plane: FaultyPlane) -> None:
    """Create the account with its rights, and enough objects that a list has a cost."""
    client = plane.client()
    client.make(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": ACCOUNT}})
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["list"]}
    client.make(f"{rbac}/clusterroles", {"metadata": {"name": ACCOUNT}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT}
    subject = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": ACCOUNT}
    client.make(f"{rbac}/clusterrolebindings", {"metadata": {"name": ACCOUNT}, "roleRef": role, "subjects": [subject]})
    for number in range(SECRETS):
        item = {"metadata": {"name": f"large-{number}"}, "stringData": {"data": "x" * SECRET_BYTES}}
        client.make("/api/v1/namespaces/default/secrets", item)


@dataclass
class Asked:
    """Response times in seconds, and failed requests."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(len(self.seconds) * share))]


class RepeatingClient(threading.Thread):
    """A client that repeats one request until it is stopped."""

    def __init__(self, client: Client, method: str, path: str, item: object = None) -> None:
        super().__init__(daemon=True)
        self.asked, self.over = Asked(), threading.Event()
        self._client, self._request = client, (method, path, item)

    def run(self) -> None:
        self._until_over()
        self._client.close()

    def _until_over(self) -> None:
        while not self.over.wait(PAUSE_SECONDS):
            began = time.monotonic()
            try:
                reply = self._client.request(*self._request)
            except OSError as error:
                self.asked.failures.append(str(error))
            else:
                self.asked.seconds.append(time.monotonic() - began)
                if reply.status >= 300:
                    self.asked.failures.append(f"{reply.status} {reply.message}")


@dataclass
class Flood:
    """A flood and its results: other clients, responses to the agents, and the maximum of seats and requests per flow schema."""

    askers: Mapping[str, RepeatingClient]
    agents: dict[str, int] = field(default_factory=dict)
    seats: dict[str, int] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)

    def observe(self, client: Client, over: threading.Event) -> None:
        """Record the seats in use and the executing requests until the flood ends."""
        while not over.wait(PAUSE_SECONDS):
            for kind, schema, used in EXECUTING.findall(client.request("GET", "/metrics").text):
                most = self.seats if kind == "seats" else self.requests
                most[schema] = max(most.get(schema, 0), int(float(used)))

    def asked(self, who: str) -> Asked:
        return self.askers[who].asked

    def told(self) -> str:
        rows = [
            f"{who} p50 {one.asked.quantile(0.5):.3f} s, p99 {one.asked.quantile(0.99):.3f} s of {len(one.asked.seconds)}, "
            f"{len(one.asked.failures)} failed"
            for who, one in self.askers.items()
        ]
        return f"{'; '.join(rows)}; agents were answered {self.agents}; most seats {dict(sorted(self.seats.items()))}"


def _as_node(plane: FaultyPlane, server: Path, name: str) -> Path:
    """Write a node's kubeconfig next to the administrator's."""
    identity = issuer_of(plane.control).issue(f"{NODE_USER}{name}", NODES_GROUP)
    document = yaml.safe_load(server.read_text())
    pem = {"client-certificate-data": identity.certificate, "client-key-data": identity.key}
    document["users"][0]["user"] = {key: base64.b64encode(value).decode() for key, value in pem.items()}
    path = plane.folder / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def askers(plane: FaultyPlane, kubeconfig: Path) -> dict[str, RepeatingClient]:
    """Return clients of one server: break-glass, an operator, and a kubelet's heartbeat."""
    operators = entra_group(str(plane.plan.spec.access.operators_group))
    headers = {"Impersonate-User": "entra:operator", "Impersonate-Group": operators}
    node = min(one.name for one in plane.machines())
    beat = {"spec": {"holderIdentity": node}}
    patching = {"Content-Type": "application/merge-patch+json"}
    return {
        "break-glass": RepeatingClient(Client(kubeconfig, keep_open=True), "GET", "/api/v1/nodes?limit=5"),
        "operator": RepeatingClient(Client(kubeconfig, headers=headers, keep_open=True), "GET", "/api/v1/nodes?limit=5"),
        "heartbeat": RepeatingClient(
            Client(_as_node(plane, kubeconfig, node), headers=patching, keep_open=True), "PATCH", f"{LEASES}/{node}", beat
        ),
    }


@contextmanager
def flood(plane: FaultyPlane, seconds: float) -> Iterator[Flood]:
    """Flood for that many seconds; other clients send requests to the first API server, and count after two seconds."""
    server = plane.control.api_servers[0]
    kubeconfig = plane.control.direct_kubeconfig(server)
    client = Client(kubeconfig)
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
    reply = client.request("POST", path, {"spec": {"expirationSeconds": 600}})
    token = plane.folder / "token"
    token.write_text(reply.body["status"]["token"])
    program = Path(__file__).parent / "node_agents.py"
    room = len(plane.control.api_servers) * (HAND * QUEUE_LENGTH + seats(AGENTS, plane.control.cluster.api_servers))
    assert room * 5 // 4 == CONNECTIONS
    arguments = [urlsplit(plane.control.url).port, plane.control.authority, token, CONNECTIONS, seconds]
    running = subprocess.Popen([sys.executable, str(program), *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    made, over = Flood(askers(plane, kubeconfig)), threading.Event()
    observer = threading.Thread(target=made.observe, args=(client, over), daemon=True)
    observer.start()
    try:
        time.sleep(2)
        for one in made.askers.values():
            one.start()
        yield made
        made.agents = json.loads(running.communicate(timeout=PATIENCE_SECONDS)[0])
    finally:
        over.set()
        observer.join()
        running.kill()
        running.communicate()
        for one in made.askers.values():
            one.over.set()
        for one in made.askers.values():
            if one.ident:
                one.join()
