"""Control planes of a region's clusters in the hub namespace: they start, change and end with their machines in the embedded Azure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from components.plan.model import API_SERVER_PORT, ClusterPlan, RegionPlan
from rehearsal.azure.cloud import Cloud
from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.administrator import administrators_kubeconfig
from rehearsal.local_cluster.azure_service import AzureService
from rehearsal.local_cluster.boot_files import BootFilesError
from rehearsal.local_cluster.control_plane import ControlPlane, ControlPlaneInputs, create_machines, last_log_lines
from rehearsal.local_cluster.hub.member_selection import MemberLimit, identity, quorum, select_machines
from rehearsal.local_cluster.hub.saved_members import HubRunDirectory, MemberDisks, SavedPorts
from rehearsal.local_cluster.machine import Machine
from rehearsal.local_cluster.machine_mapping import UnmappedValueError
from rehearsal.local_cluster.machine_programs import MachinePrograms
from rehearsal.local_cluster.provisioned_machines import (
    API_SERVER,
    ETCD,
    EVENTS,
    NotProvisionedError,
    ProvisionedMachine,
    existing_api_servers,
    existing_members,
    health_probe,
)
from rehearsal.local_cluster.run_directory import RunDirectoryError
from rehearsal.local_cluster.systemd.supervisor import Supervisor
from rehearsal.local_cluster.systemd.unit_file import UnitFileError

SLOW_SECONDS = 120.0
"""Time without an answer of an API server after which that is reported; on two idle cores the first answer takes ten seconds."""
START_ERRORS = (BootFilesError, UnitFileError, UnmappedValueError, RunDirectoryError, OSError)
Machines = tuple[ProvisionedMachine, ...]


@dataclass
class MachineGroup:
    """Machines of a control plane that start and end together: etcd members, or API servers with their balancer (control)."""

    provisioned: Machines
    machines: tuple[Machine, ...]
    resources: ExitStack
    control: ControlPlane | None = None

    def matches(self, selected: Iterable[ProvisionedMachine]) -> bool:
        """Return True if the selected machines are exactly those of the group."""
        return set(map(identity, self.provisioned)) == set(map(identity, selected))


@dataclass
class LocalCluster:
    """Running parts of one cluster, and what was reported about it; started_at is the API servers' start, by time.monotonic()."""

    members: MachineGroup | None = None
    servers: MachineGroup | None = None
    started_at: float = 0.0
    ready: bool = False
    slow: bool = False
    refused: frozenset[tuple[str, ...]] = frozenset()

    @property
    def groups(self) -> tuple[MachineGroup, ...]:
        """Return the groups in the order in which they end: API servers first."""
        return tuple(group for group in (self.servers, self.members) if group)

    @property
    def machines(self) -> tuple[Machine, ...]:
        return tuple(machine for group in self.groups for machine in group.machines)

    def end(self) -> None:
        """End all machines."""
        for group in self.groups:
            group.resources.close()
        self.members = self.servers = None


class Clusters(AbstractContextManager["Clusters"]):
    """The control planes of a region's clusters. Each `reconcile` makes them match Azure; all end with the context."""

    def __init__(
        self, plan: RegionPlan, azure: AzureService, binaries: Binaries, folder: Path, limit: MemberLimit, say: Callable[[str], None]
    ) -> None:
        """Read saved ports from the folder, which also stores disks; raise OSError or StateCorruptError."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._plan, self._azure, self._limit, self._say = plan, azure, limit, say
        self._programs = MachinePrograms(binaries.programs, {})
        self._ports, self._disks = SavedPorts(folder / "ports.json"), MemberDisks(folder / "disks")
        self._local = {cluster.name: LocalCluster() for cluster in plan.clusters}

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        groups = [group for local in self._local.values() for group in local.groups]
        with ThreadPoolExecutor(len(groups) or 1) as pool:
            list(pool.map(lambda group: group.resources.close(), groups))

    def reconcile(self) -> None:
        """Start, change, end and probe each cluster's control plane according to Azure's machines."""
        for cluster in self._plan.clusters:
            self._reconcile(cluster, self._local[cluster.name])

    def _reconcile(self, cluster: ClusterPlan, local: LocalCluster) -> None:
        members, servers = self._azure.call(lambda cloud: _existing_machines(cloud, cluster))
        running = [one for group in local.groups for one in group.provisioned]
        planned = {ETCD: len(cluster.etcd.members), EVENTS: len(cluster.events_etcd.members)}
        disks = self._disks
        selected = select_machines((*members, *servers), running, planned, self._limit, lambda one: disks.data_of(cluster.name, one))
        selected_servers = tuple(one for one in selected if one.role == API_SERVER)
        selected_members = tuple(one for one in selected if one.role != API_SERVER)
        enough = all(sum(one.role == role for one in members) >= quorum(count) for role, count in planned.items())
        if local.members is not None and not enough:
            self._report(cluster, "too few of its etcd machines are left in Azure for a quorum: its control plane ends")
            local.end()
        if (group := local.members) is not None and not group.matches(selected_members):
            self._attempt(cluster, local, selected_members, lambda: self._replace_members(cluster, group, selected_members, members))
        if local.members is None:
            self._disks.remove_others(cluster.name, members)
            if enough and all(one.on for one in selected_members):
                self._attempt(cluster, local, selected_members, lambda: self._start_members(cluster, local, selected_members))
        if local.servers is not None and not local.servers.matches(selected_servers):
            self._report(cluster, "its API servers in Azure have changed: those that run here end")
            local.servers.resources.close()
            local.servers = None
        complete = len(selected_servers) >= min(self._limit.api_servers, cluster.api_servers.count)
        if local.members is not None and local.servers is None and complete:
            self._attempt(cluster, local, selected_servers, lambda: self._start_servers(cluster, local, selected_servers))
        self._switch_power(cluster, local, selected)
        self._report_readiness(cluster, local)

    def _attempt(self, cluster: ClusterPlan, local: LocalCluster, selected: Machines, start: Callable[[], None]) -> None:
        """Start machines; report once if they cannot start."""
        identities = frozenset(map(identity, selected))
        if local.refused == identities:
            return
        try:
            start()
        except START_ERRORS as error:
            local.refused = identities
            self._report(cluster, f"its control plane cannot start: {error}")

    def _start_members(self, cluster: ClusterPlan, local: LocalCluster, selected: Machines) -> None:
        local.members = self._create_members(cluster, selected)
        planned = len(cluster.etcd.members) + len(cluster.events_etcd.members)
        self._report(cluster, f"{len(selected)} of {planned} etcd members start from their boot files")

    def _replace_members(self, cluster: ClusterPlan, group: MachineGroup, selected: Machines, existing: Machines) -> None:
        """End members that Azure no longer has, with their disks, and start their replacements; the others keep running."""
        remaining, before = set(map(identity, selected)), set(map(identity, group.provisioned))
        ended = [machine for one, machine in zip(group.provisioned, group.machines, strict=True) if identity(one) not in remaining]
        for machine in ended:
            machine.kill()
        group.machines = tuple(one for one in group.machines if one not in ended)
        group.provisioned = tuple(one for one in group.provisioned if identity(one) in remaining)
        self._disks.remove_others(cluster.name, existing)
        # In a run directory of its own, because a replacement of the same name has files and services of the same names.
        added = self._create_members(cluster, tuple(one for one in selected if identity(one) not in before))
        group.resources.push(added.resources)
        group.provisioned, group.machines = (*group.provisioned, *added.provisioned), (*group.machines, *added.machines)
        names = ", ".join(one.name for one in added.provisioned) or "none"
        self._report(cluster, f"its etcd machines in Azure have changed: {len(ended)} end here, and in their place: {names}")

    def _create_members(self, cluster: ClusterPlan, selected: Machines) -> MachineGroup:
        """Create members from their boot files and disks, and start those that are on."""
        with ExitStack() as resources:
            run = resources.enter_context(HubRunDirectory(self._ports))
            supervisor = resources.enter_context(Supervisor(run))
            disks = self._disks
            machines = create_machines(
                selected, cluster, self._azure, self._programs, run, supervisor, lambda one: disks.of(cluster.name, one)
            )
            for one, machine in zip(selected, machines, strict=True):
                if one.on:
                    machine.start()
            return MachineGroup(selected, machines, resources.pop_all())

    def _start_servers(self, cluster: ClusterPlan, local: LocalCluster, selected: Machines) -> None:
        """Start API servers, or return if Azure does not have everything that they need yet."""
        address = (cluster.api_servers.endpoint_address or cluster.api_servers.address, API_SERVER_PORT)
        with ExitStack() as resources:
            try:
                inputs = self._azure.call(
                    lambda cloud: ControlPlaneInputs(
                        selected, health_probe(cloud, cluster), administrators_kubeconfig(cloud, self._plan, cluster)
                    )
                )
            except NotProvisionedError:
                return
            run = resources.enter_context(HubRunDirectory(self._ports))
            supervisor = resources.enter_context(Supervisor(run))
            control = ControlPlane.boot(inputs, cluster, self._azure, self._programs, run, supervisor, address)
            local.servers = MachineGroup(selected, control.machines, resources.pop_all(), control)
        local.started_at, local.ready, local.slow = time.monotonic(), False, False
        self._report(cluster, f"{len(selected)} of {cluster.api_servers.count} API servers start from their boot files")

    def _switch_power(self, cluster: ClusterPlan, local: LocalCluster, selected: Machines) -> None:
        """Switch machines on and off as in Azure."""
        running: Mapping[str, Machine] = {machine.name: machine for machine in local.machines}
        for one in selected:
            machine = running.get(one.name)
            if machine is not None and one.on and not machine.on:
                self._report(cluster, f"{one.name} is on again in Azure, and here")
                machine.start()
            elif machine is not None and machine.on and not one.on:
                self._report(cluster, f"{one.name} is off in Azure, and here")
                machine.kill()

    def _report_readiness(self, cluster: ClusterPlan, local: LocalCluster) -> None:
        """Report once when the API servers answer, or once that they are slow."""
        control = local.servers.control if local.servers else None
        if control is None or local.ready:
            return
        waited = time.monotonic() - local.started_at
        if control.answers(control.url):
            local.ready = True
            self._report(cluster, f"its API servers answer, {waited:.0f} s after their machines began to boot")
        elif waited > SLOW_SECONDS and not local.slow:
            local.slow = True
            lines = last_log_lines(local.machines)
            self._report(cluster, f"no API server answers after {waited:.0f} s; the last log lines of its programs:\n{lines}")

    def _report(self, cluster: ClusterPlan, text: str) -> None:
        self._say(f"{cluster.name}: {text}")


def _existing_machines(cloud: Cloud, cluster: ClusterPlan) -> tuple[Machines, Machines]:
    """Return the etcd machines and the API servers that Azure has."""
    return tuple(existing_members(cloud, cluster)), existing_api_servers(cloud, cluster)
