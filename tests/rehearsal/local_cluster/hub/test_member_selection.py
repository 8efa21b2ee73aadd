"""Selection of the machines that run here and are stored: the fewest with a quorum and an API server, and always those with data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from rehearsal.azure.state_directory import StateCorruptError
from rehearsal.local_cluster.hub.member_selection import MemberLimit, select_machines
from rehearsal.local_cluster.hub.saved_members import LOCAL_DISK, MEMBER, OS_DISK, EtcdData, MemberDisks, SavedPorts
from rehearsal.local_cluster.provisioned_machines import API_SERVER, ETCD, EVENTS, ProvisionedMachine


def _machine(role: str, number: int, born: str = "first", *, on: bool = True) -> ProvisionedMachine:
    return ProvisionedMachine(role, f"{role}-{number}", "", "", "", born, "os-1", "local-1", on)


RINGS = {ETCD: 5, EVENTS: 3}
ALL = [_machine(role, number) for role, count in ((ETCD, 5), (EVENTS, 3), (API_SERVER, 5)) for number in range(count)]


def _names(machines: Iterable[ProvisionedMachine]) -> str:
    return " ".join(one.name for one in machines)


def _write(disks: MemberDisks, machine: ProvisionedMachine) -> None:
    folders = disks.of("one", machine)
    (folders[LOCAL_DISK] / MEMBER).mkdir(parents=True)
    folders[OS_DISK].mkdir()


def test_a_quorum_of_each_ring_and_one_api_server_run_or_as_many_as_are_asked_for() -> None:
    few = select_machines(ALL, (), RINGS, MemberLimit(), lambda _: EtcdData.NOTHING)
    assert _names(few) == "etcd-0 etcd-1 etcd-2 events-0 events-1 api-server-0"
    assert select_machines(ALL, (), RINGS, MemberLimit(5, all_members=True), lambda _: EtcdData.NOTHING) == tuple(ALL)


def test_an_api_server_that_runs_stays_until_it_is_off() -> None:
    running = [_machine(API_SERVER, 3)]
    assert _names(select_machines(ALL, running, RINGS, MemberLimit(), lambda _: EtcdData.NOTHING)).endswith(" api-server-3")
    off = [replace(one, on=one.name != "api-server-3") for one in ALL]
    assert _names(select_machines(off, running, RINGS, MemberLimit(), lambda _: EtcdData.NOTHING)).endswith(" api-server-0")


def test_members_with_data_come_first_and_a_replaced_one_last(tmp_path: Path) -> None:
    disks, ring = MemberDisks(tmp_path), [_machine(ETCD, number) for number in range(3)]
    for one in ring[:2]:
        _write(disks, one)
    assert _names(select_machines(ring, (), {ETCD: 3, EVENTS: 0}, MemberLimit(), lambda one: disks.data_of("one", one))) == "etcd-0 etcd-1"
    replaced = [_machine(ETCD, 0, "second"), *ring[1:]]
    disks.remove_others("one", replaced)
    assert [disks.data_of("one", one) for one in replaced] == [EtcdData.LOST, EtcdData.DATA, EtcdData.NOTHING]
    assert (
        _names(select_machines(replaced, ring[:2], {ETCD: 3, EVENTS: 0}, MemberLimit(), lambda one: disks.data_of("one", one)))
        == "etcd-1 etcd-2"
    )


def test_disks_go_with_their_machines_and_a_new_local_disk_keeps_the_os_disk(tmp_path: Path) -> None:
    disks, machine = MemberDisks(tmp_path), _machine(ETCD, 0)
    _write(disks, machine)
    disks.remove_others("one", [machine])
    assert disks.data_of("one", machine) == EtcdData.DATA
    redeployed = replace(machine, local_disk="local-2")
    disks.remove_others("one", [redeployed])
    assert disks.of("one", redeployed)[OS_DISK].is_dir()
    assert disks.data_of("one", machine) == EtcdData.LOST
    disks.remove_others("one", [])
    assert list(tmp_path.iterdir()) == []


def test_a_name_has_the_same_port_in_every_run(tmp_path: Path) -> None:
    first = SavedPorts(tmp_path / "ports.json")
    ports = [first.port(name) for name in ("one", "two", "one")]
    assert ports[0] == ports[2] != ports[1]
    again = SavedPorts(tmp_path / "ports.json")
    assert (again.port("two"), again.port("one")) == (ports[1], ports[0])
    assert again.port("three") not in ports


@pytest.mark.parametrize("text", ["", "[]", '{"one": "nonsense"}', '{"one": 80}'])
def test_ports_that_are_none_are_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "ports.json").write_text(text)
    with pytest.raises(StateCorruptError, match=r"ports\.json is no list of ports by name; remove"):
        SavedPorts(tmp_path / "ports.json")
