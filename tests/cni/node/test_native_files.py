"""The files that the node program writes, and the rules that it asks of iptables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from cni.node import conflist, nat, status
from cni.node.files import write_if_changed
from cni.node.machine import Machine
from cni.node.settings import parse
from cni.node.status import NO_STATUS, NodeStatus

MACHINE = Machine("eth0", "00:0d:3a:01:02:03", "10.0.0.4", ("10.0.0.5", "10.0.0.9"), 24)


def test_the_conflist_has_one_range_for_each_address(golden: Callable[[str, str], None]) -> None:
    text = json.dumps(conflist.document(MACHINE, 1500, Path("/run/gpufleet/cni")), indent=2) + "\n"
    golden("cni/node/10-gpufleet.conflist", text)


def test_a_second_time_the_conflist_is_left_as_it_is(tmp_path: Path) -> None:
    assert conflist.ensure(MACHINE, 1500, tmp_path / "cni", tmp_path)
    path = tmp_path / conflist.FILE
    before = path.stat()
    assert conflist.ensure(MACHINE, 1500, tmp_path / "cni", tmp_path) == []
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert path.stat().st_mode & 0o777 == 0o600
    assert conflist.remove(tmp_path) == [f"{path}: removed"]
    assert conflist.remove(tmp_path) == []


def test_a_file_with_other_content_or_with_no_text_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    assert write_if_changed(path, "one\n")
    path.write_bytes(b"\xff\xfe")
    assert write_if_changed(path, "two\n")
    assert path.read_text() == "two\n"
    assert [one.name for one in path.parent.iterdir()] == ["file"]


def test_packets_to_what_is_not_masqueraded_keep_their_source() -> None:
    assert nat.snat_rules(MACHINE, ["10.0.0.0/8", "172.20.0.0/16", "fd00::/8"]) == [
        "-A GPUFLEET-SNAT -s 10.0.0.4/32 -j RETURN",
        "-A GPUFLEET-SNAT -d 10.0.0.0/8 -j RETURN",
        "-A GPUFLEET-SNAT -d 172.20.0.0/16 -j RETURN",
        "-A GPUFLEET-SNAT -j SNAT --to-source 10.0.0.4 --random-fully",
    ]


def test_the_kubelet_takes_as_many_pods_as_there_are_addresses_and_never_more_than_planned() -> None:
    document = {
        "version": 1,
        "mode": "native",
        "internal": [],
        "not_masqueraded": [],
        "service_cidr": "10.255.0.0/16",
        "snat": True,
        "mtu": 1500,
        "planned_pods": 2,
        "host_network_pods": 3,
        "shaping": None,
    }
    assert status.max_pods(parse(document, "here"), MACHINE) == 5
    assert status.max_pods(parse(document | {"planned_pods": 1}, "here"), MACHINE) == 4
    assert status.max_pods(parse(document | {"planned_pods": 30}, "here"), MACHINE) == 5


def test_what_stands_is_read_as_it_was_written(tmp_path: Path) -> None:
    stands = NodeStatus(True, "native", MACHINE, False, 5, ("few addresses",), ("iptables is busy",))
    assert status.read(tmp_path) == NO_STATUS
    status.write(tmp_path, stands)
    assert status.read(tmp_path) == stands


def test_what_another_boot_left_or_what_is_damaged_does_not_stand(tmp_path: Path) -> None:
    status.write(tmp_path, NodeStatus(True, "native", MACHINE, False, 5, (), ()))
    path = tmp_path / status.FILE
    document = json.loads(path.read_text())
    damaged = [
        document | {"boot": "another"},
        document | {"version": 2},
        document | {"machine": {**document["machine"], "secondaries": []}},
        document | {"machine": {**document["machine"], "primary": "x"}},
        document | {"machine": 5},
        [],
    ]
    for one in damaged:
        path.write_text(json.dumps(one))
        assert status.read(tmp_path) == NO_STATUS
    path.write_text(json.dumps(document)[:40])
    assert status.read(tmp_path) == NO_STATUS
