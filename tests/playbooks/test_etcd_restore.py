"""Restore of a lost etcd cluster from its snapshot, key by key; invalid snapshots and data in use are refused."""

from __future__ import annotations

import json
import subprocess

import pytest
from blob_storage import FLIPPED, Storage
from etcd_machines import EtcdMachines

SAVED = {f"/registry/{number:03d}": f"value {number}" for number in range(60)}
"""Content of the etcd cluster at the time of the backup."""


@pytest.fixture(scope="module", autouse=True)
def snapshot(etcd: EtcdMachines) -> str:
    """Name of a snapshot of the etcd cluster, in which something was changed since."""
    etcd.empty()
    for key, value in SAVED.items():
        etcd.etcdctl("put", key, value)
    done = etcd.snapshot_program(etcd.names[0], "save")
    assert done.returncode == 0, done.stderr
    etcd.etcdctl("put", "/registry/later", "after the snapshot")
    return str(json.loads(done.stdout)["name"])


def test_data_that_nobody_gave_up_is_not_replaced(etcd: EtcdMachines) -> None:
    before = etcd.held()
    refused = etcd.play("etcd-restore.yml", no_api_servers=True)
    assert refused.status != 0
    assert "dev-etcd-0, dev-etcd-1, dev-etcd-2 still have data, which a restore would replace" in refused.said
    assert "discard it with discard=dev_etcd" in refused.said
    assert etcd.held() == before


def test_a_restore_is_refused_while_nobody_stops_the_api_servers(etcd: EtcdMachines) -> None:
    refused = etcd.play("etcd-restore.yml", discard="dev_etcd")
    assert refused.status != 0
    assert "names 0 of 2 API servers in dev_api" in refused.said


def test_a_snapshot_with_one_bit_turned_is_refused_and_the_etcd_cluster_stays(etcd: EtcdMachines, storage: Storage, snapshot: str) -> None:
    before = etcd.held()
    storage.faults = {"GET ": [FLIPPED]}
    refused = etcd.play("etcd-restore.yml", discard="dev_etcd", no_api_servers=True, snapshot=snapshot)
    storage.faults = {}
    assert refused.status != 0
    assert "is not what etcd wrote: its checksum differs" in refused.said
    assert etcd.held() == before


def test_a_etcd_cluster_whose_members_are_all_empty_comes_back_key_by_key(etcd: EtcdMachines) -> None:
    last = json.loads(etcd.etcdctl("get", "/registry/later", "--write-out=json"))["header"]["revision"]
    for machine in etcd.machines.values():
        machine.wipe_nvme()
    run = etcd.play("etcd-restore.yml", no_api_servers="true")
    assert run.status == 0, run.output
    assert "60 keys at revision" in run.said
    assert etcd.held() == SAVED
    assert etcd.voters() == etcd.names
    now = json.loads(etcd.etcdctl("get", "/registry/000", "--write-out=json"))["header"]["revision"]
    assert now > last + 900_000_000
    # A client that goes on watching from what it last saw is told to begin anew.
    watching = etcd.command(etcd.names[0], ("watch", "/registry/", "--prefix", f"--rev={last}"))
    watched = subprocess.run(watching, capture_output=True, text=True, check=False, timeout=60)
    assert "compacted" in watched.stderr
    etcd.etcdctl("put", "/registry/new", "after the restore")
