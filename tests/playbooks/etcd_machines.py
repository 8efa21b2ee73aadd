"""The etcd machines of region dev on this one, with their playbooks' inventory, and what tests ask of them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blob_storage import Storage
from playbook_runs import Run, run_playbook

from components.boot.etcd import boot_etcd
from components.boot.etcd_snapshot import MANIFEST, PROGRAM
from components.boot.machine import custom_data
from components.plan.model import ETCD_CLIENT_PORT, ETCD_PEER_PORT, ClusterPlan
from components.plan.naming import resource_id
from rehearsal.binaries.find import find_binaries, survey
from rehearsal.binaries.pins import PINS
from rehearsal.local_cluster.azure_service import AzureService
from rehearsal.local_cluster.machine import Machine
from rehearsal.local_cluster.machine_mapping import MachineMapping
from rehearsal.local_cluster.machine_programs import MachinePrograms
from rehearsal.local_cluster.provisioned_machines import ProvisionedMachine
from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.supervisor import Supervisor
from tests.support.unit_control import UnitControl

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
PROGRAMS = ("etcd", "etcdctl", "etcdutl")
UNIT = "etcd.service"
GUARD_PAUSE_SECONDS = "0.5"


def etcd_programs() -> dict[str, Path]:
    """The pinned programs of etcd; built where they are missing."""
    found = {row.program.name: row.path for row in survey(PINS).rows if row.program.name in PROGRAMS and row.path}
    return found if len(found) == len(PROGRAMS) else {name: find_binaries().program(name) for name in PROGRAMS}


def planned_inventory(region: str) -> dict[str, Any]:
    """Return the output of the inventory program."""
    specification = importlib.util.spec_from_file_location("etcd_inventory", PLAYBOOKS / "inventory/etcd.py")
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    found: dict[str, Any] = module.inventory(region, {})
    return found


def ansible_variables(run: RunDirectory, machine: Machine, **more: Any) -> dict[str, Any]:
    """Return Ansible's variables of a machine: the connection, and the paths on it."""
    files = {name: machine.path(f"/etc/systemd/system/{name}") for name in machine.services}
    control = UnitControl(run, run.path / f"{machine.name}-control", machine.services, machine.enabled, files).folder
    environment = next(iter(machine.services.values())).program.environment
    return {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "gpufleet_become": False,
        "gpufleet_root": str(machine.root),
        "gpufleet_programs": str(machine.path("/usr/local/bin")),
        "etcd_programs": str(machine.path("/usr/local/bin")),
        "gpufleet_environment": {**environment, "PATH": f"{control}:{environment['PATH']}"},
        **more,
    }


@dataclass
class EtcdMachines:
    """A running etcd of a cluster: machines and their variables by name, and those of the cluster's API servers."""

    cluster: ClusterPlan
    machines: dict[str, Machine]
    folder: Path
    azure: AzureService
    variables: dict[str, dict[str, Any]]
    api_servers: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def group(self) -> str:
        return f"{self.cluster.name}_etcd"

    @property
    def names(self) -> list[str]:
        return list(self.machines)

    @property
    def members(self) -> list[dict[str, str]]:
        """Return the members of the inventory with the ports used here."""
        ports = {"client_url": ETCD_CLIENT_PORT, "peer_url": ETCD_PEER_PORT}
        return [
            {"name": name, **{key: f"https://127.0.0.1:{machine.port(port)}" for key, port in ports.items()}}
            for name, machine in self.machines.items()
        ]

    def inventory(self) -> Path:
        """The planned inventory with the places that things have here."""
        planned = planned_inventory("dev")
        group = {**planned[self.group]["vars"], "etcd_members": self.members, "etcd_answer_seconds": 3}
        hosts = {name: {**planned["_meta"]["hostvars"][name], **group, **self.variables[name]} for name in self.names}
        path = self.folder / "inventory.json"
        children = {self.group: {"hosts": hosts}, group["etcd_api_group"]: {"hosts": self.api_servers}}
        path.write_text(json.dumps({"all": {"children": children}}))
        return path

    def play(self, playbook: str, *, stop_before: str = "", **variables: Any) -> Run:
        """Run a playbook; killed with all its children before the task of that name."""
        return run_playbook(PLAYBOOKS, playbook, self.inventory(), {"ring": self.group, **variables}, stop_before)

    def etcdctl(self, *words: str, by: str = "", check: bool = True, given: str | None = None) -> str:
        """Output of etcdctl on a machine, the first that is on where none is named."""
        name = by or next(name for name, machine in self.machines.items() if machine.services[UNIT].state == "ready")
        done = subprocess.run([*self.command(name, words)], input=given, capture_output=True, text=True, check=False, timeout=60)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def command(self, name: str, words: tuple[str, ...]) -> list[str]:
        root, number = self.machines[name].root, name.rpartition("-")[2]
        urls = ",".join(member["client_url"] for member in self.members)
        keys = {"cacert": "etcd-ca-cert", "cert": f"etcd-{number}-cert", "key": f"etcd-{number}-key"}
        tls = [f"--{flag}={root}/etc/etcd/{file}.pem" for flag, file in keys.items()]
        return [f"{root}/usr/local/bin/etcdctl", *words, f"--endpoints={urls}", *tls, "--command-timeout=10s"]

    def wait_ready(self, seconds: float = 120) -> None:
        """Return once every member is part of a quorum; a machine that boots starts its units one after the other."""
        until = time.monotonic() + seconds
        for machine in self.machines.values():
            service = machine.services[UNIT]
            while service.state == "stopped" and time.monotonic() < until:
                time.sleep(0.05)
            service.wait_ready(seconds)

    def voters(self) -> list[str]:
        found = json.loads(self.etcdctl("member", "list", "--write-out=json"))["members"]
        return sorted(member["name"] for member in found if not member.get("isLearner"))

    def held(self) -> dict[str, str]:
        """Every key and value, as the etcd cluster gives them."""
        lines = self.etcdctl("get", "", "--prefix").splitlines()
        return dict(zip(lines[::2], lines[1::2], strict=True))

    def empty(self) -> None:
        """Delete every key."""
        self.etcdctl("del", "", "--prefix")

    def use_storage(self, storage: Storage) -> None:
        """Have the machines' snapshot program find a container on this machine in the place of the planned one."""
        for name, machine in self.machines.items():
            path = machine.path(MANIFEST)
            path.write_text(json.dumps({**json.loads(path.read_text()), "container": storage.url}))
            self.variables[name]["gpufleet_environment"] |= storage.environment()

    def snapshot_program(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """The program as the timer of a machine starts it."""
        command = [str(self.machines[name].path(PROGRAM)), *words]
        return subprocess.run(command, env=self.variables[name]["gpufleet_environment"], capture_output=True, text=True, check=False)


def member_variables(run: RunDirectory, machines: Sequence[Machine]) -> dict[str, dict[str, Any]]:
    """Variables of members by name."""
    return {machine.name: ansible_variables(run, machine) for machine in machines}


@contextmanager
def running_etcd(cluster: ClusterPlan, azure: AzureService, folder: Path, altered: dict[str, str]) -> Iterator[EtcdMachines]:
    """The etcd cluster of a cluster's API objects, booted as in Azure; altered are flags of etcd that tests change."""
    programs = MachinePrograms(etcd_programs(), {"etcd": altered})
    clusters = (cluster.etcd, cluster.events_etcd)
    hosts = {host: one.name for etcd in clusters for one in etcd.members for host in (one.dns_name, one.address)}
    with RunDirectory() as run, Supervisor(run) as supervisor:
        machines: dict[str, Machine] = {}
        for member in cluster.etcd.members:
            place = MachineMapping(member.name, run.path / member.name, hosts, run.port, azure.vault_uri)
            identity = resource_id(cluster.subscription, cluster.resource_group, "Microsoft.Compute", "virtualMachines", member.name)
            boot = custom_data(boot_etcd(cluster, cluster.etcd, member))
            given = ProvisionedMachine(cluster.etcd.role, member.name, identity, member.address, boot)
            environment = {**azure.environment(identity), "GPUFLEET_ETCD_PAUSE": GUARD_PAUSE_SECONDS}
            machines[member.name] = Machine(given, place, programs, environment, supervisor)
        for machine in machines.values():
            machine.start()
        made = EtcdMachines(cluster, machines, folder, azure, member_variables(run, list(machines.values())))
        made.wait_ready()
        yield made


class Writer(threading.Thread):
    """Puts numbered keys all the time, each through any member, and remembers those that were acknowledged."""

    def __init__(self, etcd: EtcdMachines) -> None:
        super().__init__(name="writer", daemon=True)
        self.etcd, self.over = etcd, threading.Event()
        self.acknowledged: list[int] = []

    def __enter__(self) -> Writer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()

    def run(self) -> None:
        number = 0
        # Each put is a program of its own, which costs a playbook beside it the processor.
        while not self.over.wait(1.0):
            number += 1
            command = self.etcd.command(self.etcd.names[0], ("put", f"/written/{number:06d}", str(number)))
            if subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0:
                self.acknowledged.append(number)

    def lost(self) -> list[int]:
        """Acknowledged numbers that the etcd cluster does not hold."""
        held = set(self.etcd.etcdctl("get", "/written/", "--prefix", "--print-value-only").split())
        return [number for number in self.acknowledged if str(number) not in held]
