"""Decides when each cluster's control plane starts and ends here: with its machines in Azure, at the address that the plan gives it."""

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
from rehearsal.binaries.find import Engines
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
"""After which it is told that no API server answers; on two cores with nothing else to do one does in ten."""
REFUSALS = (BootFilesError, UnitFileError, UnmappedValueError, RunDirectoryError, OSError)


@dataclass
class MachineGroup:
    """Machines of a control plane that start and end together: rings of etcd, or API servers with their balancer (control)."""

    given: tuple[ProvisionedMachine, ...]
    machines: tuple[Machine, ...]
    ending: ExitStack
    control: ControlPlane | None = None

    def is_of(self, wanted: Iterable[ProvisionedMachine]) -> bool:
        """Whether these are the machines that run."""
        return set(map(identity, self.given)) == set(map(identity, wanted))


@dataclass
class LocalCluster:
    """What runs here of one cluster, and what was told of it; began is when its API servers did, by time.monotonic()."""

    rings: MachineGroup | None = None
    servers: MachineGroup | None = None
    began: float = 0.0
    ready: bool = False
    slow: bool = False
    refused: frozenset[tuple[str, ...]] = frozenset()

    @property
    def parts(self) -> tuple[MachineGroup, ...]:
        """API servers first, as they end."""
        return tuple(part for part in (self.servers, self.rings) if part)

    @property
    def machines(self) -> tuple[Machine, ...]:
        return tuple(machine for part in self.parts for machine in part.machines)

    def end(self) -> None:
        """End all of it."""
        for part in self.parts:
            part.ending.close()
        self.rings = self.servers = None


class Clusters(AbstractContextManager["Clusters"]):
    """The control planes of a region's clusters: look at Azure now and then, and they are as it says; all end with the context."""

    def __init__(
        self, plan: RegionPlan, azure: AzureService, engines: Engines, folder: Path, most: MemberLimit, say: Callable[[str], None]
    ) -> None:
        """folder keeps ports and disks; OSError, StateBroken where it cannot be read or written."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._plan, self._azure, self._most, self._say = plan, azure, most, say
        self._programs = MachinePrograms(engines.programs, {})
        self._ports, self._disks = SavedPorts(folder / "ports.json"), MemberDisks(folder / "disks")
        self._here = {cluster.name: LocalCluster() for cluster in plan.clusters}

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        parts = [part for here in self._here.values() for part in here.parts]
        with ThreadPoolExecutor(len(parts) or 1) as pool:
            list(pool.map(lambda part: part.ending.close(), parts))

    def look(self) -> None:
        """Start, change, end and ask each cluster's control plane, as Azure's machines are now."""
        for cluster in self._plan.clusters:
            self._look_at(cluster, self._here[cluster.name])

    def _look_at(self, cluster: ClusterPlan, here: LocalCluster) -> None:
        members, servers = self._azure.ask(lambda cloud: _machines(cloud, cluster))
        given = [one for part in here.parts for one in part.given]
        rings = {ETCD: len(cluster.etcd.members), EVENTS: len(cluster.events_etcd.members)}
        wanted = select_machines((*members, *servers), given, rings, self._most, lambda one: self._disks.holds(cluster.name, one))
        wanted_servers = tuple(one for one in wanted if one.role == API_SERVER)
        wanted_members = tuple(one for one in wanted if one.role != API_SERVER)
        enough = all(sum(one.role == role for one in members) >= quorum(planned) for role, planned in rings.items())
        if here.rings is not None and not enough:
            self._tell(cluster, "too few of its etcd machines are left in Azure for a quorum: its control plane ends")
            here.end()
        if (running := here.rings) is not None and not running.is_of(wanted_members):
            self._attempt(cluster, here, wanted_members, lambda: self._change_rings(cluster, running, wanted_members, members))
        if here.rings is None:
            self._disks.keep_only(cluster.name, members)
            if enough and all(one.on for one in wanted_members):
                self._attempt(cluster, here, wanted_members, lambda: self._start_rings(cluster, here, wanted_members))
        if here.servers is not None and not here.servers.is_of(wanted_servers):
            self._tell(cluster, "its API servers in Azure have changed: those that run here end")
            here.servers.ending.close()
            here.servers = None
        all_there = len(wanted_servers) >= min(self._most.api_servers, cluster.api_servers.count)
        if here.rings is not None and here.servers is None and all_there:
            self._attempt(cluster, here, wanted_servers, lambda: self._start_servers(cluster, here, wanted_servers))
        self._follow(cluster, here, wanted)

    def _attempt(self, cluster: ClusterPlan, here: LocalCluster, wanted: tuple[ProvisionedMachine, ...], start: Callable[[], None]) -> None:
        """Start machines; why they are refused is told once."""
        identities = frozenset(map(identity, wanted))
        if here.refused == identities:
            return
        try:
            start()
        except REFUSALS as refused:
            here.refused = identities
            self._tell(cluster, f"its control plane cannot start: {refused}")

    def _start_rings(self, cluster: ClusterPlan, here: LocalCluster, wanted: tuple[ProvisionedMachine, ...]) -> None:
        here.rings = self._started(cluster, wanted)
        planned = len(cluster.etcd.members) + len(cluster.events_etcd.members)
        self._tell(cluster, f"{len(wanted)} of {planned} etcd members start from their boot files")

    def _change_rings(
        self, cluster: ClusterPlan, rings: MachineGroup, wanted: tuple[ProvisionedMachine, ...], there: tuple[ProvisionedMachine, ...]
    ) -> None:
        """End members that Azure has no more, with their disks, and start those that take their places; the others run on."""
        kept, before = set(map(identity, wanted)), set(map(identity, rings.given))
        going = [machine for one, machine in zip(rings.given, rings.machines, strict=True) if identity(one) not in kept]
        for machine in going:
            machine.kill()
        rings.machines = tuple(one for one in rings.machines if one not in going)
        rings.given = tuple(one for one in rings.given if identity(one) in kept)
        self._disks.keep_only(cluster.name, there)
        # In a run of their own: one that takes the place of another of the same name has its files and services too.
        coming = self._started(cluster, tuple(one for one in wanted if identity(one) not in before))
        rings.ending.push(coming.ending)
        rings.given, rings.machines = (*rings.given, *coming.given), (*rings.machines, *coming.machines)
        names = ", ".join(one.name for one in coming.given) or "none"
        self._tell(cluster, f"its etcd machines in Azure have changed: {len(going)} end here, and in their place: {names}")

    def _started(self, cluster: ClusterPlan, wanted: tuple[ProvisionedMachine, ...]) -> MachineGroup:
        """Members that start, each from its boot files and on its disks; those that are off wait to be switched on."""
        with ExitStack() as ending:
            run = ending.enter_context(HubRunDirectory(self._ports))
            supervisor = ending.enter_context(Supervisor(run))
            machines = create_machines(
                wanted, cluster, self._azure, self._programs, run, supervisor, lambda one: self._disks.of(cluster.name, one)
            )
            for one, machine in zip(wanted, machines, strict=True):
                if one.on:
                    machine.start()
            return MachineGroup(wanted, machines, ending.pop_all())

    def _start_servers(self, cluster: ClusterPlan, here: LocalCluster, wanted: tuple[ProvisionedMachine, ...]) -> None:
        """Start API servers; not yet, where Azure lacks something else that they need."""
        at = (cluster.api_servers.endpoint_address or cluster.api_servers.address, API_SERVER_PORT)
        with ExitStack() as ending:
            try:
                told = self._azure.ask(lambda cloud: _told(cloud, self._plan, cluster, wanted))
            except NotProvisionedError:
                return
            run = ending.enter_context(HubRunDirectory(self._ports))
            supervisor = ending.enter_context(Supervisor(run))
            control = ControlPlane.boot(told, cluster, self._azure, self._programs, run, supervisor, at)
            here.servers = MachineGroup(wanted, control.machines, ending.pop_all(), control)
        here.began, here.ready, here.slow = time.monotonic(), False, False
        self._tell(cluster, f"{len(wanted)} of {cluster.api_servers.count} API servers start from their boot files")

    def _follow(self, cluster: ClusterPlan, here: LocalCluster, wanted: tuple[ProvisionedMachine, ...]) -> None:
        """Switch machines on and off as Azure did, and tell when the API servers answer."""
        self._switch(cluster, {machine.name: machine for machine in here.machines}, wanted)
        control = here.servers.control if here.servers else None
        if control is None or here.ready:
            return
        waited = time.monotonic() - here.began
        if control.answers(control.url):
            here.ready = True
            self._tell(cluster, f"its API servers answer, {waited:.0f} s after their machines began to boot")
        elif waited > SLOW_SECONDS and not here.slow:
            here.slow = True
            said = last_log_lines(here.machines)
            self._tell(cluster, f"no API server answers after {waited:.0f} s; what its programs said last:\n{said}")

    def _switch(self, cluster: ClusterPlan, running: Mapping[str, Machine], wanted: tuple[ProvisionedMachine, ...]) -> None:
        for one in wanted:
            machine = running.get(one.name)
            if machine is not None and one.on and not machine.on:
                self._tell(cluster, f"{one.name} is on again in Azure, and here")
                machine.start()
            elif machine is not None and machine.on and not one.on:
                self._tell(cluster, f"{one.name} is off in Azure, and here")
                machine.kill()

    def _tell(self, cluster: ClusterPlan, what: str) -> None:
        self._say(f"{cluster.name}: {what}")


def _told(cloud: Cloud, plan: RegionPlan, cluster: ClusterPlan, servers: tuple[ProvisionedMachine, ...]) -> ControlPlaneInputs:
    """What is to be known of these API servers, whichever members of etcd there are; NotProvisioned."""
    return ControlPlaneInputs(servers, health_probe(cloud, cluster), administrators_kubeconfig(cloud, plan, cluster))


def _machines(cloud: Cloud, cluster: ClusterPlan) -> tuple[tuple[ProvisionedMachine, ...], tuple[ProvisionedMachine, ...]]:
    """etcd's machines that Azure has, and the API servers'."""
    return tuple(existing_members(cloud, cluster)), existing_api_servers(cloud, cluster)
