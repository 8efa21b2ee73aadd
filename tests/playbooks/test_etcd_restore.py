"""A whole ring that is lost comes back from its snapshot, key by key; a snapshot that is none and data that is wanted are left alone."""

from __future__ import annotations

import json
import subprocess

import pytest
from blob_storage import FLIPPED, Storage
from etcd_machines import Ring

SAVED = {f"/registry/{number:03d}": f"value {number}" for number in range(60)}
"""What the ring held when it was saved."""


@pytest.fixture(scope="module", autouse=True)
def snapshot(ring: Ring) -> str:
    """Name of a snapshot of the ring, in which something was changed since."""
    ring.empty()
    for key, value in SAVED.items():
        ring.etcdctl("put", key, value)
    done = ring.snapshot_program(ring.names[0], "save")
    assert done.returncode == 0, done.stderr
    ring.etcdctl("put", "/registry/later", "after the snapshot")
    return str(json.loads(done.stdout)["name"])


def test_data_that_nobody_gave_up_is_not_replaced(ring: Ring) -> None:
    before = ring.held()
    refused = ring.play("etcd-restore.yml", no_api_servers=True)
    assert refused.status != 0
    assert "dev-etcd-0, dev-etcd-1, dev-etcd-2 still hold data, which a restore would replace" in refused.said
    assert "give it up with discard=dev_etcd" in refused.said
    assert ring.held() == before


def test_a_restore_is_refused_while_nobody_stops_the_api_servers(ring: Ring) -> None:
    refused = ring.play("etcd-restore.yml", discard="dev_etcd")
    assert refused.status != 0
    assert "names 0 of 2 API servers in dev_api" in refused.said


def test_a_snapshot_with_one_bit_turned_is_refused_and_the_ring_stays(ring: Ring, storage: Storage, snapshot: str) -> None:
    before = ring.held()
    storage.faults = {"GET ": [FLIPPED]}
    refused = ring.play("etcd-restore.yml", discard="dev_etcd", no_api_servers=True, snapshot=snapshot)
    storage.faults = {}
    assert refused.status != 0
    assert "is not what etcd wrote: its checksum differs" in refused.said
    assert ring.held() == before


def test_a_ring_whose_members_are_all_empty_comes_back_key_by_key(ring: Ring) -> None:
    last = json.loads(ring.etcdctl("get", "/registry/later", "--write-out=json"))["header"]["revision"]
    for machine in ring.machines.values():
        machine.wipe_nvme()
    run = ring.play("etcd-restore.yml", no_api_servers="true")
    assert run.status == 0, run.output
    assert "60 keys at revision" in run.said
    assert ring.held() == SAVED
    assert ring.voters() == ring.names
    now = json.loads(ring.etcdctl("get", "/registry/000", "--write-out=json"))["header"]["revision"]
    assert now > last + 900_000_000
    # A client that goes on watching from what it last saw is told to begin anew.
    watching = ring.command(ring.names[0], ("watch", "/registry/", "--prefix", f"--rev={last}"))
    watched = subprocess.run(watching, capture_output=True, text=True, check=False, timeout=60)
    assert "compacted" in watched.stderr
    ring.etcdctl("put", "/registry/new", "after the restore")
