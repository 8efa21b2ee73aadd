"""Start of the bare cluster: the same programs with default flags, and nodes posted over eight connections."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv4Address
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bench.cluster.gpufleet_cluster import as_ready, node_template
from bench.cluster.region import TEAM
from bench.cluster.running import READY_SECONDS, Running
from bench.cluster.settings import Setting, scheduler_configuration
from bench.command import Say
from components.boot.kubeconfig import document
from lifecycle.kubernetes_api import connection as api
from lifecycle.kubernetes_api.kubeconfig import read
from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.joining.connection import Connection, bearer
from rehearsal.local_cluster.joining.figures import Tally
from rehearsal.local_cluster.joining.joiner import IMPERSONATING_CONNECTIONS
from rehearsal.local_cluster.joining.kwok import configurations
from rehearsal.local_cluster.joining.protobuf import node_bytes
from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.supervisor import Service, ServiceDefinition, Supervisor

FIRST_ADDRESS = IPv4Address("10.132.0.4")
REQUESTS_PER_SECOND = {"kube-api-qps": "200", "kube-api-burst": "400"}
"""Requests per second of the controller manager, as in gpufleet's cluster; with the default of 20 it would mostly wait for its client."""
BINDS_PER_SECOND = {"kube-api-qps": "1000", "kube-api-burst": "2000"}
"""Requests per second of the scheduler, for the same reason."""
CONTROLLER_MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"


class _Bare:
    """Programs of one bare cluster in a run."""

    def __init__(self, setting: Setting, binaries: Binaries, run: RunDirectory, supervisor: Supervisor) -> None:
        self._setting, self._binaries, self._run, self._supervisor = setting, binaries, run, supervisor
        self.folder = run.path
        self.url = f"https://127.0.0.1:{run.port('kube-apiserver')}"
        self.token = secrets.token_hex(16)
        self.kubeconfig = self.folder / "kubeconfig"
        self.authority = self.folder / "certificates" / "apiserver.crt"
        self.services: dict[str, Service] = {}

    def start(self, name: str, flags: Mapping[str, str], program: str = "") -> Service:
        """Start a program with these flags, overridden by those of the setting."""
        program = program or name
        changed = {**flags, **self._setting.flags.get(program, {})}
        argv = (str(self._binaries.program(program)), *(f"--{flag}={value}" for flag, value in changed.items()))
        environment = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin", **self._setting.environment}
        service = self._supervisor.add(
            ServiceDefinition(f"bare/{name}", argv, environment, self.folder / f"{name}.log", self.folder, restart_seconds=1.0)
        )
        self.services[name] = service
        service.start()
        return service

    def etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{self._run.port(what)}" for what in ("client", "peer"))
        flags = {"data-dir": str(self.folder / "etcd"), "listen-client-urls": client, "advertise-client-urls": client}
        peers = {"listen-peer-urls": peer, "initial-advertise-peer-urls": peer, "initial-cluster": f"default={peer}"}
        self.start("etcd", {**flags, **peers})

    def api_server(self) -> None:
        (self.folder / "tokens.csv").write_text(f"{self.token},bench,bench,system:masters\n")
        key = self.folder / "service-accounts.key"
        key.write_text(_key())
        flags = {
            "etcd-servers": f"http://127.0.0.1:{self._run.port('client')}",
            "bind-address": "127.0.0.1",
            "secure-port": self.url.rpartition(":")[2],
            "cert-dir": str(self.folder / "certificates"),
            "token-auth-file": str(self.folder / "tokens.csv"),
            "service-account-issuer": self.url,
            "service-account-key-file": str(key),
            "service-account-signing-key-file": str(key),
            "service-cluster-ip-range": "10.96.0.0/16",
        }
        self.start("kube-apiserver", flags)

    def wait_ready(self) -> None:
        """Wait until the API server is ready, and read the certificate that it has created."""
        until = time.monotonic() + READY_SECONDS
        while not self._answers():
            if time.monotonic() > until:
                raise RuntimeError(f"the bare API server does not answer after {READY_SECONDS:.0f} s; see {self.folder}/kube-apiserver.log")
            time.sleep(0.1)

    def _answers(self) -> bool:
        if not self.authority.is_file():
            return False
        server = {"server": self.url, "certificate-authority": str(self.authority)}
        self.kubeconfig.write_text(document(server, {"token": self.token}))
        try:
            connection = api.Connection(read(self.kubeconfig), 0.0, lambda _: None)
            return connection.request("GET", "/readyz").status == 200
        except (api.ApiServerUnreachableError, ssl.SSLError, OSError):
            return False

    def controllers(self) -> None:
        """Start the controller manager, the scheduler and each kwok."""
        own = {"kubeconfig": str(self.kubeconfig), "bind-address": "127.0.0.1"}
        manager = {**own, **REQUESTS_PER_SECOND, "secure-port": str(self._run.port(CONTROLLER_MANAGER))}
        self.start(CONTROLLER_MANAGER, {**manager, "service-account-private-key-file": str(self.folder / "service-accounts.key")})
        scheduler = {**own, **BINDS_PER_SECOND, "secure-port": str(self._run.port(SCHEDULER))}
        if self._setting.filters_only:
            path = self.folder / "scheduler.yaml"
            path.write_text(scheduler_configuration(str(self.kubeconfig), filters_only=True, rendered=False))
            scheduler = {"config": str(path), **{flag: scheduler[flag] for flag in ("bind-address", "secure-port")}}
        self.start(SCHEDULER, scheduler)
        for name, text in configurations(self._binaries, self._setting.keeping).items():
            path = self.folder / f"{name}.yaml"
            path.write_text(text)
            self.start(name, {"config": str(path), "kubeconfig": str(self.kubeconfig), "v": "WARN"}, program="kwok")


@contextmanager
def bare(nodes: int, setting: Setting, binaries: Binaries, say: Say) -> Iterator[Running]:
    """Start the bare cluster, and yield it when its nodes can be posted."""
    with RunDirectory() as run, Supervisor(run, say) as supervisor:
        posted = node_template(run.path)
        template = as_ready(posted) if setting.keeping.registered_ready else posted
        cluster = _Bare(setting, binaries, run, supervisor)
        began = time.monotonic()
        cluster.etcd()
        cluster.api_server()
        cluster.wait_ready()
        came_up = time.monotonic() - began
        cluster.controllers()
        connection = api.Connection(read(cluster.kubeconfig), READY_SECONDS, say)
        connection.request("POST", "/api/v1/namespaces", {}, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        connection.close()
        say(f"bare: answers after {came_up:.1f} s")

        def join(_: Say) -> Mapping[str, float]:
            began, tally = time.monotonic(), Tally()
            asyncio.run(_post(cluster, nodes, template, tally))
            return {"posting, s": time.monotonic() - began}

        yield Running("bare", cluster.kubeconfig, cluster.services, join, came_up)


async def _post(cluster: _Bare, nodes: int, template: Mapping[str, Any], tally: Tally) -> None:
    """Post nodes over as many connections as the joiner has."""
    context = ssl.create_default_context(cafile=str(cluster.authority))
    numbers = iter(range(nodes))

    async def work() -> None:
        deadline = time.monotonic() + READY_SECONDS + nodes
        async with Connection(cluster.url, context, tally, deadline, bearer(cluster.token)) as connection:
            for number in numbers:
                await connection.request("POST", "/api/v1/nodes", node_bytes(_node(template, number)), accept=frozenset({409}))

    async with asyncio.TaskGroup() as group:
        for _ in range(IMPERSONATING_CONNECTIONS):
            group.create_task(work())


def _node(template: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a Node with the content of gpufleet's, under its own name and address."""
    name = f"node-{number:06}"
    labels = {**template["metadata"]["labels"], "kubernetes.io/hostname": name}
    addresses = [{"type": "InternalIP", "address": str(FIRST_ADDRESS + number)}, {"type": "Hostname", "address": name}]
    spec = {**template["spec"], "providerID": f"{template['spec']['providerID']}{number}"}
    return {
        **template,
        "metadata": {**template["metadata"], "name": name, "labels": labels},
        "spec": spec,
        "status": {**template["status"], "addresses": addresses},
    }


def _key() -> str:
    """Return a new key that signs tokens of service accounts, PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
