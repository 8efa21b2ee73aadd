"""What the runbooks of etcd tell a person to do mends what they say it mends."""

from __future__ import annotations

from controller import on_the_controller
from etcd_machines import UNIT, Ring


def test_a_lost_member_is_replaced_by_its_runbook(ring: Ring) -> None:
    lost = ring.names[1]
    others = ",".join(member["client_url"] for member in ring.members if member["name"] != lost)
    keys = str(ring.machines[ring.names[0]].path("/etc/etcd"))
    runbook = on_the_controller(ring, "etcd-member-lost", KEYS=keys, ENDPOINTS=others, INVENTORY=str(ring.inventory()))
    ring.machines[lost].wipe_nvme()
    assert runbook.run("Check the etcd cluster").count("is healthy") == 2
    assert f"{lost} was replaced" in " ".join(runbook.run("Replace the member").split())
    assert ring.voters() == ring.names
    assert runbook.left == []


def test_a_ring_that_lost_its_quorum_but_no_data_is_started_by_its_runbook(ring: Ring) -> None:
    ring.etcdctl("put", "/registry/kept", "kept")
    runbook = on_the_controller(ring, "etcd-quorum-lost", INVENTORY=str(ring.inventory()))
    for name in ring.names[1:]:
        ring.machines[name].services[UNIT].stop()
    seen = " ".join(runbook.run("Which members have their data").split())
    assert f"{ring.names[1]} answers: " in seen
    assert seen.count("its disk holds its data") == 3
    runbook.run("Start the members that have it")
    assert ring.etcdctl("get", "/registry/kept", "--print-value-only").strip() == "kept"
    assert runbook.left == []


def test_a_ring_at_its_quota_takes_writes_again_after_its_runbook(ring: Ring) -> None:
    keys = str(ring.machines[ring.names[0]].path("/etc/etcd"))
    urls = ",".join(member["client_url"] for member in ring.members)
    runbook = on_the_controller(ring, "etcd-quota", KEYS=keys, ENDPOINTS=urls)
    value = "x" * 1_000_000
    written = 0
    while "OK" in ring.etcdctl("put", "/registry/large", check=False, given=value):
        written += 1
        assert written < 40
    assert "alarm:NOSPACE" in runbook.run("See the alarm")
    runbook.run("Verify that writes succeed", fails=True)
    runbook.run("Compact the history")
    runbook.run("Defragment member by member")
    runbook.run("Disarm the alarm")
    runbook.run("Verify that writes succeed")
    assert ring.etcdctl("get", "/registry/large", "--print-value-only").strip() == value
    assert runbook.left == []
