"""The steps of etcd's runbooks repair the failures that they describe."""

from __future__ import annotations

from controller import on_the_controller
from etcd_machines import UNIT, EtcdMachines


def test_a_lost_member_is_replaced_by_its_runbook(etcd: EtcdMachines) -> None:
    lost = etcd.names[1]
    others = ",".join(member["client_url"] for member in etcd.members if member["name"] != lost)
    keys = str(etcd.machines[etcd.names[0]].path("/etc/etcd"))
    runbook = on_the_controller(etcd, "etcd-member-lost", KEYS=keys, ENDPOINTS=others, INVENTORY=str(etcd.inventory()))
    etcd.machines[lost].wipe_nvme()
    assert runbook.run("Check the etcd cluster").count("is healthy") == 2
    assert f"{lost} was replaced" in " ".join(runbook.run("Replace the member").split())
    assert etcd.voters() == etcd.names
    assert runbook.left == []


def test_a_etcd_cluster_that_lost_its_quorum_but_no_data_is_started_by_its_runbook(etcd: EtcdMachines) -> None:
    etcd.etcdctl("put", "/registry/kept", "kept")
    runbook = on_the_controller(etcd, "etcd-quorum-lost", INVENTORY=str(etcd.inventory()))
    for name in etcd.names[1:]:
        etcd.machines[name].services[UNIT].stop()
    seen = " ".join(runbook.run("Which members have their data").split())
    assert f"{etcd.names[1]} answers: " in seen
    assert seen.count("its disk holds its data") == 3
    runbook.run("Start the members that have it")
    assert etcd.etcdctl("get", "/registry/kept", "--print-value-only").strip() == "kept"
    assert runbook.left == []


def test_a_etcd_cluster_at_its_quota_takes_writes_again_after_its_runbook(etcd: EtcdMachines) -> None:
    keys = str(etcd.machines[etcd.names[0]].path("/etc/etcd"))
    urls = ",".join(member["client_url"] for member in etcd.members)
    runbook = on_the_controller(etcd, "etcd-quota", KEYS=keys, ENDPOINTS=urls)
    value = "x" * 1_000_000
    written = 0
    while "OK" in etcd.etcdctl("put", "/registry/large", check=False, given=value):
        written += 1
        assert written < 40
    assert "alarm:NOSPACE" in runbook.run("See the alarm")
    runbook.run("Verify that writes succeed", fails=True)
    runbook.run("Compact the history")
    runbook.run("Defragment member by member")
    runbook.run("Disarm the alarm")
    runbook.run("Verify that writes succeed")
    assert etcd.etcdctl("get", "/registry/large", "--print-value-only").strip() == value
    assert runbook.left == []
