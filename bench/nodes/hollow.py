"""Hollow nodes: the real kubelet's and kube-proxy's code with a container runtime and a proxier that do nothing."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from components.boot.kubeconfig import document
from lifecycle.kubernetes_api.connection import Connection
from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.control_plane import ControlPlane
from rehearsal.local_cluster.joining.cluster_access import issuer_of
from rehearsal.local_cluster.joining.machines import JoiningMachine
from rehearsal.local_cluster.joining.node_object import NODE_USER, NODES_GROUP
from rehearsal.local_cluster.systemd.supervisor import Service, ServiceDefinition, Supervisor

KUBELET, PROXY = "kubelet", "kube-proxy"
AGENTS = {"hollow-kubelet": KUBELET, "hollow-proxy": PROXY}
"""Component by the user agent of its hollow form."""
LEASE_SECONDS, REPORT_SECONDS = 40, 300
"""Settings of kubemark's kubelet without a flag: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubemark/hollow_kubelet.go"""
TOKEN_SECONDS = 7_200
OWN_RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage", "hugepages-1Gi", "hugepages-2Mi")


class Hollow:
    """Starter of hollow nodes for machines of a model, which connect to a control plane's balancer."""

    def __init__(self, control: ControlPlane, binaries: Binaries, supervisor: Supervisor, folder: Path) -> None:
        self._control, self._binaries, self._supervisor, self._folder = control, binaries, supervisor, folder
        self._issuer = issuer_of(control)

    def start(self, machines: Sequence[JoiningMachine], proxy_token: str) -> list[Service]:
        """Start a kubelet and a proxy for each machine."""
        found = []
        for machine in machines:
            folder = self._folder / machine.name
            folder.mkdir(parents=True, mode=0o700)
            found.append(self._kubelet(machine, folder))
            kubeconfig = self._kubeconfig(folder / "proxy.kubeconfig", {"token": proxy_token})
            found.append(self._program(machine, folder, "proxy", kubeconfig, {}))
        for service in found:
            service.start()
        return found

    def _kubelet(self, machine: JoiningMachine, folder: Path) -> Service:
        identity = self._issuer.issue(f"{NODE_USER}{machine.name}", NODES_GROUP)
        for name, content in (("client.pem", identity.certificate), ("client-key.pem", identity.key)):
            (folder / name).touch(mode=0o600)
            (folder / name).write_bytes(content)
        user = {"client-certificate": str(folder / "client.pem"), "client-key": str(folder / "client-key.pem")}
        held, _ = machine.of_set.resources(machine.pods)
        devices = {name: amount for name, amount in held.items() if name not in OWN_RESOURCES}
        flags = {
            "node-labels": ",".join(f"{name}={value}" for name, value in machine.of_set.boot.labels.items()),
            "extended-resources": ",".join(f"{name}={amount}" for name, amount in devices.items()),
            "max-pods": held["pods"],
            "kubelet-port": str(_free_port()),
            "kubelet-read-only-port": "0",
            "use-host-image-service": "false",
        }
        return self._program(machine, folder, "kubelet", self._kubeconfig(folder / "kubelet.kubeconfig", user), flags)

    def _program(self, machine: JoiningMachine, folder: Path, morph: str, kubeconfig: Path, flags: Mapping[str, str]) -> Service:
        given = {"morph": morph, "name": machine.name, "kubeconfig": str(kubeconfig), **flags}
        argv = (str(self._binaries.program("kubemark")), *(f"--{flag}={value}" for flag, value in given.items()))
        environment = {"HOME": str(folder), "PATH": os.environ.get("PATH", "/usr/bin:/bin")}
        log = folder / f"{morph}.log"
        return self._supervisor.add(ServiceDefinition(f"{machine.name}/{morph}", argv, environment, log, folder, restart_seconds=5.0))

    def _kubeconfig(self, path: Path, user: Mapping[str, str]) -> Path:
        path.touch(mode=0o600)
        server = {"server": self._control.url, "certificate-authority": str(self._control.authority)}
        path.write_text(document(server, dict(user)))
        return path


def token_of(connection: Connection, account: str) -> str:
    """Return a token of a service account in kube-system, as its pods get."""
    body: dict[str, Any] = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    }
    answer = connection.request("POST", f"/api/v1/namespaces/kube-system/serviceaccounts/{account}/token", {}, body)
    if answer.status != 201:
        raise RuntimeError(f"no token of service account {account}: {answer.message}")
    return str(answer.body["status"]["token"])


def _free_port() -> int:
    """Return a free port; RunDirectory's block has too few ports for many nodes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
