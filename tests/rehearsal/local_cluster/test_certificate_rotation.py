"""Leaves are renewed while everything runs: new ones are shown within seconds, no service is restarted, and no request fails."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from plane_tls import KEYS, context, get, identity
from renewed_leaves import Callee, callee, own_address, renew, served
from running_plane import RunningPlane
from waiting import until

from components.plan.model import API_SERVER_PORT, ETCD_CLIENT_PORT
from components.x509 import Authority
from rehearsal.local_cluster.machine import Machine

REFRESH = "gpufleet-secrets-refresh.service"
SEEN_SECONDS = 75
"""kube-apiserver looks at its files when they change, and every minute whatever happens."""
STEADY_SECONDS = 10
LEAVES = ("apiserver", "apiserver-kubelet-client", "front-proxy-client", "etcd-0", "etcd-client", "controller-manager", "scheduler")
GROUP = "callee.gpufleet.test"


@dataclass
class Client:
    """A client that sends requests repeatedly, each on a new connection: the number of requests, and the failures."""

    requests: int = 0
    failures: list[str] = field(default_factory=list)


@contextmanager
def asking(running: RunningPlane) -> Iterator[Client]:
    """A client of the balancer that reads through to etcd, ten times a second, and holds one connection open meanwhile."""
    trust = context(running.control.authority, identity(running.control.api_servers[0], "admin"))
    port = int(running.control.url.rpartition(":")[2])
    client, end = Client(), threading.Event()
    held = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=trust)

    def ask() -> None:
        while not end.wait(0.1):
            for on_new in (True, False):
                client.requests += 1
                try:
                    status = get(port, "/api/v1/namespaces/default", trust).status if on_new else _on(held)
                except (OSError, http.client.HTTPException) as error:
                    client.failures.append(repr(error))
                else:
                    client.failures += [] if status == 200 else [f"HTTP {status}"]

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield client
    finally:
        end.set()
        thread.join()
        held.close()


def _on(held: http.client.HTTPSConnection) -> int:
    """One more request on a connection that stays; the server may ask for a new one between two."""
    held.request("GET", "/api/v1/namespaces/kube-system")
    answer = held.getresponse()
    answer.read()
    return answer.status


def _restarts(running: RunningPlane) -> dict[str, tuple[int, int | None]]:
    """Restarts and process of every service of the control plane that goes on."""
    services = [
        (machine.name, name, service)
        for machine in running.control.machines
        for name, service in machine.services.items()
        if not service.program.oneshot
    ]
    return {f"{machine}/{name}": (service.restarts, service.pid) for machine, name, service in services}


def refresh(machine: Machine) -> None:
    """Run the refresh that the timer starts every six hours."""
    machine.services[REFRESH].start()
    machine.services[REFRESH].wait_ready(300)


def test_leaves_are_renewed_under_a_client_that_sees_nothing_of_it(running_plane: RunningPlane, tmp_path: Path) -> None:
    plane, server = running_plane.control, running_plane.control.api_servers[0]
    trust = context(plane.authority, None)
    of_etcd = context(server.path(f"{KEYS}/etcd-authorities.pem"), identity(server, "etcd-client"))
    before, etcd_port = _settled(running_plane), plane.etcd[0].port(ETCD_CLIENT_PORT)
    issuer = Authority(*(server.path(f"{KEYS}/cluster-ca-{part}.pem").read_text() for part in ("cert", "key")))
    trusted = (plane.authority, server.path(f"{KEYS}/front-proxy-ca-cert.pem"))
    address = own_address()
    discovery = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1", "resources": []}
    with callee(tmp_path, address, issuer, trusted, {f"/apis/{GROUP}/v1": discovery}) as endpoint, asking(running_plane) as client:
        _register(running_plane, address, endpoint.port)
        first = {name: _seen(running_plane, server, endpoint, name) for name in ("kubelet", "front-proxy")}
        stack, cluster = running_plane.plan.stack, running_plane.cluster
        serials = running_plane.azure.call(lambda cloud: renew(cloud, stack, cluster, LEAVES))
        began = time.monotonic()
        for machine in (plane.etcd[0], *plane.api_servers):
            refresh(machine)
        for machine in plane.api_servers:
            _wait_served(machine.port(API_SERVER_PORT), trust, serials["apiserver"])
        _wait_served(etcd_port, of_etcd, serials["etcd-0"])
        seconds = time.monotonic() - began
        shown = {"kubelet": serials["apiserver-kubelet-client"], "front-proxy": serials["front-proxy-client"]}
        for name, serial in shown.items():
            assert first[name] != serial
            _wait_seen(running_plane, server, endpoint, name, serial)
        running_plane.kubectl("create", "configmap", "after-renewal")
        running_plane.kubectl("delete", "configmap", "after-renewal")
    _unregister(running_plane)
    assert client.requests > 20
    assert client.failures == []
    assert _restarts(running_plane) == before
    assert seconds < SEEN_SECONDS


def _wait_served(port: int, trust: ssl.SSLContext, serial: int) -> None:
    until(lambda: served(port, trust) == serial, f"port {port} shows the new leaf", SEEN_SECONDS)


def _wait_seen(running: RunningPlane, server: Machine, endpoint: Callee, name: str, serial: int) -> None:
    until(lambda: _seen(running, server, endpoint, name) == serial, f"the new leaf is shown to the {name}", SEEN_SECONDS)


def _settled(running: RunningPlane) -> dict[str, tuple[int, int | None]]:
    """Restarts and processes, once none has begun for a while: at first programs begin again until API servers know them."""
    seen = _restarts(running)

    def steady() -> bool:
        nonlocal seen
        time.sleep(STEADY_SECONDS)
        before, seen = seen, _restarts(running)
        return before == seen and all(pid is not None for _, pid in seen.values())

    until(steady, "no service begins again", 180)
    return seen


def _seen(running: RunningPlane, server: Machine, endpoint: Callee, name: str) -> int:
    """Serial number that an API server shows when it calls a kubelet or, as front proxy, an aggregated server."""
    admin = context(running.control.authority, identity(server, "admin"))
    path = {"kubelet": "/api/v1/nodes/callee/proxy/healthz", "front-proxy": f"/apis/{GROUP}/v1"}[name]
    port = server.port(API_SERVER_PORT)
    until(lambda: get(port, path, admin).status == 200, f"{path} answers", SEEN_SECONDS)
    return endpoint.last("/healthz" if name == "kubelet" else path)


def _register(running: RunningPlane, address: str, port: int) -> None:
    """Make API servers know the callee: as a node's kubelet, and as an aggregated server behind a service."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "callee"}}
    running.kubectl("create", "-f", "-", document=node)
    status = {"addresses": [{"type": "InternalIP", "address": address}], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
    # A patch, because the controllers write to a new node as well and a replacement would meet their version.
    running.kubectl("patch", "node", "callee", "--subresource=status", "--type=merge", "--patch", json.dumps({"status": status}))
    service = {"kind": "Service", "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]}}
    slices = {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port}],
    }
    labels = {"kubernetes.io/service-name": "callee"}
    for document in (service, slices):
        metadata = {"name": "callee", "namespace": "default", "labels": labels}
        running.kubectl("create", "-f", "-", document={"apiVersion": "v1", **document, "metadata": metadata})
    spec = {
        "group": GROUP,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"name": "callee", "namespace": "default"},
        "caBundle": base64.b64encode(running.control.authority.read_bytes()).decode(),
    }
    api = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"v1.{GROUP}"}, "spec": spec}
    running.kubectl("create", "-f", "-", document=api)


def _unregister(running: RunningPlane) -> None:
    running.kubectl("delete", "apiservice", f"v1.{GROUP}")
    running.kubectl("delete", "service,endpointslice", "callee")
    running.kubectl("delete", "node", "callee")
