"""Real control plane of a cluster on this machine, started from the boot files of its machines in the embedded Azure."""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import yaml

from components.errors import GpufleetError
from components.plan.model import API_SERVER_PORT, ClusterPlan, EtcdPlan, RegionPlan
from rehearsal.azure.cloud import Cloud
from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.administrator import administrators_kubeconfig
from rehearsal.local_cluster.azure_service import AzureService
from rehearsal.local_cluster.balancer.health_probe import Backend, ProbeSettings
from rehearsal.local_cluster.balancer.load_balancer import balancer_program
from rehearsal.local_cluster.machine import Machine
from rehearsal.local_cluster.machine_mapping import LOOPBACK, MachineMapping
from rehearsal.local_cluster.machine_programs import MachinePrograms
from rehearsal.local_cluster.overrides import Override
from rehearsal.local_cluster.provisioned_machines import (
    API_SERVER,
    ETCD,
    EVENTS,
    HealthProbe,
    NotProvisionedError,
    ProvisionedMachine,
    control_plane_machines,
    health_probe,
)
from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.service_log import last_lines
from rehearsal.local_cluster.systemd.supervisor import Service, Supervisor
from rehearsal.local_cluster.tls_streams import open_tls

PROBE_SECONDS = 2.0
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class ControlPlaneSize:
    """Number of API servers to run, None for all of the plan, and overrides of flags.

    overrides is for tests: program -> flag -> value, for example a quota of 16 MiB. It is reported in `ControlPlane.overrides`.
    """

    api_servers: int | None = None
    overrides: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ControlPlaneInputs:
    """A control plane in the model: its machines, its balancer's probe, and an administrator's kubeconfig as YAML."""

    machines: tuple[ProvisionedMachine, ...]
    probe: HealthProbe
    kubeconfig: str

    @classmethod
    def of(cls, cloud: Cloud, plan: RegionPlan, cluster: ClusterPlan) -> Self:
        """Read the inputs from the model; raise NotProvisionedError."""
        return cls(control_plane_machines(cloud, cluster), health_probe(cloud, cluster), administrators_kubeconfig(cloud, plan, cluster))


DiskFolders = Callable[[ProvisionedMachine], Mapping[str, Path]]
"""Returns the folders that outlast a machine's run, by path on the machine."""


class ControlPlaneNotReadyError(GpufleetError):
    """A control plane that does not answer in time; the text ends with its programs' last log lines."""


class ControlPlane(AbstractContextManager["ControlPlane"]):
    """A running control plane: URL of its load balancer, the break-glass administrator's kubeconfig for it, and its CA (authority)."""

    balancer: Service

    def __init__(self, run: RunDirectory, cluster: ClusterPlan, machines: tuple[Machine, ...], kubeconfig: str, url: str) -> None:
        self.cluster, self.machines = cluster, machines
        self.etcd, self.events, self.api_servers = (
            tuple(one for one in machines if one.role == role) for role in (ETCD, EVENTS, API_SERVER)
        )
        self.url = url
        self._folder = run.path / "administrator"
        self._folder.mkdir(mode=0o700)
        self._administrator = yaml.safe_load(kubeconfig)
        self.kubeconfig = self._write_kubeconfig("kubeconfig", self.url)
        self.authority = self._folder / "authority.pem"
        self.authority.write_bytes(_authority(self._administrator))
        self._trust = ssl.create_default_context(cafile=str(self.authority))

    @classmethod
    def start(
        cls,
        plan: RegionPlan,
        cluster: ClusterPlan,
        azure: AzureService,
        binaries: Binaries,
        run: RunDirectory,
        supervisor: Supervisor,
        size: ControlPlaneSize = ControlPlaneSize(),
        say: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Create every machine of the control plane and boot all at once, as in Azure.

        Raises NotProvisionedError if the model lacks a machine, and BootFilesError, UnitFileError or UnmappedValueError if one cannot boot.
        """
        inputs = azure.call(lambda cloud: ControlPlaneInputs.of(cloud, plan, cluster))
        reduced = replace(inputs, machines=_reduced(inputs.machines, cluster, size))
        address = (LOOPBACK, run.port(f"{cluster.api_servers.load_balancer}/{API_SERVER_PORT}"))
        made = cls.boot(reduced, cluster, azure, MachinePrograms(binaries.programs, size.overrides), run, supervisor, address)
        say(f"{cluster.name}: {len(made.machines)} machines of the control plane boot, each from its custom data")
        return made

    @classmethod
    def boot(
        cls,
        inputs: ControlPlaneInputs,
        cluster: ClusterPlan,
        azure: AzureService,
        programs: MachinePrograms,
        run: RunDirectory,
        supervisor: Supervisor,
        address: tuple[str, int],
        disks: DiskFolders = lambda _: {},
    ) -> Self:
        """Create and boot these machines behind a balancer at an address and port; raises as start, except NotProvisionedError."""
        machines = create_machines(inputs.machines, cluster, azure, programs, run, supervisor, disks)
        made = cls(run, cluster, machines, inputs.kubeconfig, f"https://{address[0]}:{address[1]}")
        made.balancer = made._start_balancer(run, supervisor, inputs.probe, address)
        for machine in machines:
            machine.start()
        return made

    @property
    def overrides(self) -> tuple[Override, ...]:
        """Return the overrides of ControlPlaneSize, once for each program and flag."""
        return tuple(dict.fromkeys(one for machine in self.machines for one in machine.overrides))

    def machine(self, name: str) -> Machine:
        """Return the machine of a name; raise KeyError."""
        for one in self.machines:
            if one.name == name:
                return one
        raise KeyError(name)

    def server(self, machine: Machine) -> str:
        """Return the URL of one API server, without the balancer."""
        return f"https://{LOOPBACK}:{machine.port(API_SERVER_PORT)}"

    def direct_kubeconfig(self, machine: Machine) -> Path:
        """Write a kubeconfig of the break-glass administrator for one API server; return its path."""
        return self._write_kubeconfig(f"kubeconfig-{machine.name}", self.server(machine))

    def answers(self, url: str) -> bool:
        """Return True if a server is ready, by a request without credentials as the load balancer sends."""
        return asyncio.run(_is_ready(url, self._trust))

    def wait_ready(self, seconds: float) -> None:
        """Wait until every API server that is on and the balancer answer; raise ControlPlaneNotReadyError."""
        until = time.monotonic() + seconds
        waiting = {self.server(one): one.name for one in self.api_servers if one.on} | {self.url: "the load balancer"}
        while waiting:
            waiting = {url: name for url, name in waiting.items() if not self.answers(url)}
            if waiting and time.monotonic() > until:
                names = ", ".join(waiting.values())
                raise ControlPlaneNotReadyError(
                    f"no answer of {names} after {seconds:.0f} s; the last log lines of their programs:\n{last_log_lines(self.machines)}"
                )
            if waiting:
                time.sleep(LOOK_SECONDS)

    def stop(self) -> None:
        """Cut the power of every machine."""
        for machine in self.machines:
            machine.kill()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def _write_kubeconfig(self, name: str, server: str) -> Path:
        """Write the administrator's kubeconfig with another server; return its path."""
        path = self._folder / name
        document = {**self._administrator, "clusters": [_with_server(one, server) for one in self._administrator["clusters"]]}
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path

    def _start_balancer(self, run: RunDirectory, supervisor: Supervisor, probe: HealthProbe, address: tuple[str, int]) -> Service:
        """Start the local counterpart of the internal load balancer, with the probe of the load balancer in Azure."""
        name = self.cluster.api_servers.load_balancer
        backends = [Backend(one.name, LOOPBACK, one.port(API_SERVER_PORT)) for one in self.api_servers]
        settings = ProbeSettings(probe.interval_seconds, probe.failures, probe.path)
        service = supervisor.add(balancer_program(f"{name}/balancer", run.path / name, address[1], backends, settings, address[0]))
        service.start()
        return service


async def _is_ready(url: str, trust: ssl.SSLContext) -> bool:
    """Return True if /readyz answers 200 in time. It uses asyncio, because blocking TLS leaks a socket that is reset early."""
    target = urlsplit(url)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await open_tls(str(target.hostname), target.port or 443, trust)
            try:
                writer.write(f"GET /readyz HTTP/1.0\r\nHost: {target.netloc}\r\n\r\n".encode())
                return (await reader.readline()).split(b" ")[1:2] == [b"200"]
            finally:
                writer.transport.abort()
                # The transport closes in the loop's next turn.
                await asyncio.sleep(0)
    except (OSError, TimeoutError):
        return False


def last_log_lines(machines: Iterable[Machine]) -> str:
    """Return the last log lines of the machines' programs that are not ready."""
    services = (service for machine in machines for service in machine.services.values())
    waiting = (service.program for service in services if service.state not in ("ready", "stopped"))
    return "\n".join(f"{one.name}:\n  " + "\n  ".join(last_lines(one.log)) for one in waiting)


def create_machines(
    provisioned: tuple[ProvisionedMachine, ...],
    cluster: ClusterPlan,
    azure: AzureService,
    programs: MachinePrograms,
    run: RunDirectory,
    supervisor: Supervisor,
    disks: DiskFolders = lambda _: {},
) -> tuple[Machine, ...]:
    """Create machines with their files and services, without starting them; raise BootFilesError, UnitFileError or UnmappedValueError."""
    hosts = {**_hosts(cluster), **{one.address: one.name for one in provisioned}}
    return tuple(
        Machine(
            one,
            MachineMapping(one.name, run.path / one.name, hosts, run.port, azure.vault_uri),
            programs,
            azure.environment(one.resource_id),
            supervisor,
            disks(one),
        )
        for one in provisioned
    )


def _reduced(provisioned: tuple[ProvisionedMachine, ...], cluster: ClusterPlan, size: ControlPlaneSize) -> tuple[ProvisionedMachine, ...]:
    """Return the machines to run; raise NotProvisionedError if there are fewer API servers than requested."""
    servers = [one for one in provisioned if one.role == API_SERVER]
    count = size.api_servers or len(servers)
    if count > len(servers):
        raise NotProvisionedError(cluster.api_servers.name, f"{count} API servers are requested, and it has {len(servers)}")
    return tuple(one for one in provisioned if one.role != API_SERVER or one in servers[:count])


def _hosts(cluster: ClusterPlan) -> dict[str, str]:
    """Return the owner of each name and address of the plan: a member, or the load balancer."""
    both: tuple[EtcdPlan, ...] = (cluster.etcd, cluster.events_etcd)
    members = {host: one.name for etcd in both for one in etcd.members for host in (one.dns_name, one.address)}
    servers = cluster.api_servers
    return {**members, servers.dns_name: servers.load_balancer, servers.address: servers.load_balancer}


def _with_server(cluster: dict[str, Any], server: str) -> dict[str, Any]:
    return {**cluster, "cluster": {**cluster["cluster"], "server": server}}


def _authority(kubeconfig: dict[str, Any]) -> bytes:
    return base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"])
