"""In all shipped regions, local programs differ from the rendered ones exactly by the list of overrides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.plan.model import ClusterPlan
from rehearsal.local_cluster import overrides
from rehearsal.local_cluster.azure_service import serve_azure
from rehearsal.local_cluster.control_plane import create_machines
from rehearsal.local_cluster.machine import Machine
from rehearsal.local_cluster.machine_programs import MachinePrograms
from rehearsal.local_cluster.overrides import ADDED, CHANGED, DROPPED
from rehearsal.local_cluster.path_fields import ADDRESSES, FLAGS, PATH, VAULT
from rehearsal.local_cluster.provisioned_machines import API_SERVER, control_plane_machines
from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.supervisor import Supervisor
from rehearsal.local_cluster.systemd.unit_file import Command
from rehearsal.local_up.up import bring_up_anew
from stacks.load import load_plan

SHIPPED = ("dev", "swedencentral", "southcentralus")
BINARIES = {
    name: Path("/engines") / name for name in ("etcd", "etcdctl", "etcdutl", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
}
Difference = tuple[str, str, str]


class CreatedPlane:
    """The machines of one cluster's control plane, which are not started."""

    def __init__(self, cluster: ClusterPlan, machines: tuple[Machine, ...], ports: dict[int, str]) -> None:
        self.cluster, self.machines, self.ports = cluster, machines, ports


class RecordingRunDirectory(RunDirectory):
    """A run directory that records the name of each port."""

    def __init__(self) -> None:
        self.names_by_port: dict[int, str] = {}
        super().__init__()

    def port(self, name: str) -> int:
        port = super().port(name)
        self.names_by_port[port] = name
        return port


@pytest.fixture(scope="module", params=SHIPPED)
def laid(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[CreatedPlane]]:
    plan = load_plan(request.param)
    cloud = bring_up_anew(plan).cloud
    found, runs = [], []
    with serve_azure(cloud, tmp_path_factory.mktemp("azure")) as azure:
        for cluster in plan.clusters:
            run = RecordingRunDirectory()
            runs.append(run)
            given = azure.call(lambda cloud, cluster=cluster: control_plane_machines(cloud, cluster))
            machines = create_machines(given, cluster, azure, MachinePrograms(BINARIES, {}), run, Supervisor(run))
            assert len(given) == len(cluster.etcd.members) + len(cluster.events_etcd.members) + cluster.api_servers.count
            found.append(CreatedPlane(cluster, machines, run.names_by_port))
        yield found
    for run in runs:
        run.close()


def _commands(machine: Machine) -> Iterator[tuple[str, Command, tuple[str, ...]]]:
    """Return program, rendered command and local argv of every unit of a machine that runs."""
    for name, service in machine.services.items():
        unit, program = machine.units[name], service.program
        pairs = [
            *zip(unit.start_pre, program.before, strict=True),
            (unit.start[0], program.argv),
            *zip(unit.start_post, program.after, strict=True),
        ]
        for command, argv in pairs:
            yield command.argv[0].rpartition("/")[2], command, argv


def _flags(words: tuple[str, ...]) -> dict[str, str]:
    pairs = (word[2:].partition("=") for word in words if word.startswith("--"))
    return {name: value for name, _, value in pairs}


def _differences(machine: Machine) -> set[Difference]:
    """Return program, flag and change of every difference besides mapped paths and addresses."""
    found: set[Difference] = set()
    for program, command, argv in _commands(machine):
        rendered, here = _flags(command.argv), _flags(argv)
        found |= {(program, flag, ADDED) for flag in here.keys() - rendered.keys()}
        found |= {(program, flag, DROPPED) for flag in rendered.keys() - here.keys()}
        changed = {flag for flag in rendered.keys() & here.keys() if rendered[flag] != here[flag]}
        found |= {(program, flag, CHANGED) for flag in changed if FLAGS[program].get(flag) not in (PATH, ADDRESSES, VAULT)}
    return found


def test_the_flags_that_differ_are_exactly_the_written_list(laid: list[CreatedPlane]) -> None:
    for one in laid:
        found = set().union(*map(_differences, one.machines))
        assert found == {(each.program, each.flag, each.change) for each in overrides.FLAGS}


def test_every_word_that_was_rendered_is_there_and_in_its_order(laid: list[CreatedPlane]) -> None:
    for one in laid:
        for machine in one.machines:
            for program, command, argv in _commands(machine):
                rendered = [word.partition("=")[0] for word in command.argv[1:] if word.startswith("--")]
                assert [flag for word in argv if (flag := word.partition("=")[0]) in rendered] == rendered, program


def test_a_path_is_the_same_below_the_machines_folder_and_an_address_the_same_owners_port(laid: list[CreatedPlane]) -> None:
    for one in laid:
        owners = _owners(one)
        for machine in one.machines:
            for program, command, argv in _commands(machine):
                here = _flags(argv)
                for flag, value in _flags(command.argv).items():
                    match FLAGS[program].get(flag):
                        case "path":
                            assert here[flag] == f"{machine.root}{value}"
                        case "addresses":
                            assert _named(here[flag], one.ports) == _owned(value, owners, machine.name), (program, flag)
                        case "vault":
                            vault = value.removeprefix("https://").partition(".")[0]
                            assert re.fullmatch(rf"https://(127\.0\.0\.1|localhost):\d+/.*{vault}/?", here[flag]), (program, flag)


def _owners(one: CreatedPlane) -> dict[str, str]:
    rings = (one.cluster.etcd, one.cluster.events_etcd)
    return {host: member.name for ring in rings for member in ring.members for host in (member.dns_name, member.address)}


def _named(text: str, ports: dict[int, str]) -> str:
    return re.sub(r"127\.0\.0\.1:(\d+)", lambda found: ports[int(found[1])], text)


def _owned(text: str, owners: dict[str, str], machine: str) -> str:
    return re.sub(r"//([^:/]+):(\d+)", lambda found: f"//{owners.get(found[1], machine)}/{found[2]}", text)


def test_units_that_are_enabled_and_not_run_are_exactly_the_written_list(laid: list[CreatedPlane]) -> None:
    for one in laid:
        enabled = {name for machine in one.machines for name in machine.boot_enabled}
        run = {name for machine in one.machines for name in machine.enabled}
        assert enabled - run == overrides.NOT_RUN.keys()
        assert all(name in machine.services for machine in one.machines for name in machine.enabled)


def test_variables_that_no_unit_sets_are_exactly_the_written_list(laid: list[CreatedPlane]) -> None:
    for one in laid:
        for machine in one.machines:
            for name, service in machine.services.items():
                assert service.program.environment.keys() - machine.units[name].environment.keys() == overrides.ENVIRONMENT.keys()


def test_no_file_that_a_program_reads_still_holds_an_address_of_the_plan(laid: list[CreatedPlane]) -> None:
    for one in laid:
        hosts = set(_owners(one)) | {one.cluster.api_servers.address}
        for machine in one.machines:
            for path in machine.root.rglob("*"):
                if path.suffix in (".kubeconfig", ".yaml", ".json") and path.is_file():
                    assert not [host for host in hosts if host in path.read_text()], path


def test_each_api_server_advertises_its_own_address(laid: list[CreatedPlane]) -> None:
    for one in laid:
        servers = [machine for machine in one.machines if machine.role == API_SERVER]
        addresses = [_flags(machine.services["kube-apiserver.service"].program.argv)["advertise-address"] for machine in servers]
        assert addresses == [machine.address for machine in servers]
        assert len(set(addresses)) == len(addresses)


def test_every_override_has_its_reason() -> None:
    assert all(len(one.why) > 20 for one in overrides.FLAGS)
    assert all(len(why) > 5 for table in (overrides.NOT_RUN, overrides.ENVIRONMENT, overrides.OTHER_DIFFERENCES) for why in table.values())
