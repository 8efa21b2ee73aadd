"""Backup of an etcd cluster to blob storage: each snapshot is verified, and no failure leaves an invalid one."""

from __future__ import annotations

import json
import ssl
import subprocess
import urllib.request
from pathlib import Path

import pytest
from blob_storage import CUT, FLIPPED, Storage
from etcd_machines import EtcdMachines

from components.boot.etcd_snapshot import UNIT
from services.etcd_snapshot import blobs


@pytest.fixture(scope="module", autouse=True)
def filled(etcd: EtcdMachines) -> None:
    etcd.empty()
    for number in range(30):
        etcd.etcdctl("put", f"/registry/{number}", "x" * 100)


def stored(etcd: EtcdMachines) -> list[dict[str, str]]:
    done = etcd.snapshot_program(etcd.names[0], "list")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def test_a_follower_saves_the_etcd_cluster_and_storage_says_what_it_is(etcd: EtcdMachines) -> None:
    before = stored(etcd)
    run = etcd.play("etcd-backup.yml")
    assert run.status == 0, run.output
    (blob,) = [one for one in stored(etcd) if one not in before]
    statuses = json.loads(etcd.etcdctl("endpoint", "status", "--write-out=json"))
    leader = next(one for one in statuses if one["Status"]["leader"] == one["Status"]["header"]["member_id"])["Endpoint"]
    follower = next(member for member in etcd.members if member["name"] == blob["member"])
    assert follower["client_url"] != leader
    assert blob["name"].startswith("etcd/")
    assert blob["name"].endswith(f"-revision-{blob['revision']}.db")
    assert (blob["cluster"], blob["ring"], blob["keys"], blob["etcd_version"]) == ("dev", "etcd", "30", "3.6.14")
    assert blob["size"] == blob["bytes"]
    assert f"{blob['name']}: revision {blob['revision']}, 30 keys" in run.said


def test_the_next_member_in_turn_saves_nothing_where_a_snapshot_is_young(etcd: EtcdMachines) -> None:
    before = stored(etcd)
    name = etcd.names[1]
    started = etcd.machines[name].services[UNIT].program.argv
    environment = etcd.variables[name]["gpufleet_environment"]
    done = subprocess.run(started, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "is recent enough" in done.stderr
    assert stored(etcd) == before


def test_storage_that_is_busy_or_cuts_a_connection_is_asked_again(
    etcd: EtcdMachines, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(etcd.variables[etcd.names[0]]["gpufleet_environment"], "GPUFLEET_BLOCK_BYTES", "8192")
    before = len(stored(etcd))
    storage.faults = {"PUT block": [None, CUT, 503, None], "PUT blocklist": [503, None]}
    done = etcd.snapshot_program(etcd.names[0], "save")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("next try in") == 3
    assert not any(storage.faults.values())
    assert len(stored(etcd)) == before + 1
    assert not list(etcd.machines[etcd.names[0]].path("/var/lib/etcd/snapshots").iterdir())


def test_an_answer_that_was_lost_does_not_make_a_failure_of_a_success(container: blobs.Container, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    known = {"sha256": "a", "bytes": "3"}
    blobs.upload(container, "other/blob", file, known)
    blobs.upload(container, "other/blob", file, known)


def test_no_blob_is_ever_written_over(container: blobs.Container, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"two")
    with pytest.raises(blobs.BlobRequestError, match="another blob has the name other/blob; it is unchanged"):
        blobs.upload(container, "other/blob", file, {"sha256": "b", "bytes": "3"})
    assert container.request("GET", "other/blob", {})[1] == b"one"


@pytest.fixture
def container(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> blobs.Container:
    """The test's container, as the machines' own module reaches it."""
    monkeypatch.setattr(blobs, "IMDS", storage.metadata)
    context = ssl.create_default_context(cafile=str(storage.authority))
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    monkeypatch.setattr(blobs, "OPENER", urllib.request.build_opener(*handlers))
    return blobs.Container(storage.url, "/subscriptions/x")


def test_the_newest_snapshot_that_is_whole_is_fetched(etcd: EtcdMachines, storage: Storage, tmp_path: Path) -> None:
    older, newest = [blob["name"] for blob in stored(etcd)][-2:]
    storage.faults = {"GET ": [FLIPPED]}
    done = etcd.snapshot_program(etcd.names[0], "fetch", str(tmp_path / "snapshot.db"))
    assert done.returncode == 0, done.stderr
    assert f"{newest}: snapshot.db is not what etcd wrote: its checksum differs" in done.stderr
    assert json.loads(done.stdout)["name"] == older


def test_a_snapshot_that_is_not_there_is_refused_with_those_that_are(etcd: EtcdMachines, tmp_path: Path) -> None:
    done = etcd.snapshot_program(etcd.names[0], "fetch", "--name=etcd/none.db", str(tmp_path / "snapshot.db"))
    assert done.returncode == 1
    assert "no snapshot etcd/none.db" in done.stderr
    assert stored(etcd)[-1]["name"] in done.stderr
    assert not (tmp_path / "snapshot.db").exists()


def test_a_machine_without_its_right_says_which_right_it_lacks(etcd: EtcdMachines, storage: Storage) -> None:
    before = stored(etcd)
    storage.faults = {"PUT block": [403]}
    run = etcd.play("etcd-backup.yml")
    assert run.status != 0
    assert "HTTP 403 AuthorizationPermissionMismatch: the machine's identity needs Storage Blob Data Contributor" in run.said
    assert stored(etcd) == before


def test_storage_that_stays_busy_is_given_up_at_the_deadline(etcd: EtcdMachines, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.faults = {"GET list": [503] * 50}
    monkeypatch.setitem(etcd.variables[etcd.names[0]]["gpufleet_environment"], "GPUFLEET_DEADLINE_SECONDS", "2")
    done = etcd.snapshot_program(etcd.names[0], "list")
    storage.faults = {}
    assert done.returncode == 1
    assert "HTTP 503; the deadline has passed after" in done.stderr


def test_a_member_without_its_quorum_is_no_source_of_a_snapshot(etcd: EtcdMachines) -> None:
    before = stored(etcd)
    for name in etcd.names[1:]:
        etcd.machines[name].kill()
    run = etcd.play("etcd-backup.yml")
    alone = etcd.snapshot_program(etcd.names[0], "save")
    for name in etcd.names[1:]:
        etcd.machines[name].start()
    etcd.wait_ready()
    assert run.status != 0
    assert "No member is healthy, and a copy of one without its quorum may be old" in run.said
    assert alone.returncode == 1
    assert "etcdctl endpoint health" in alone.stderr
    assert stored(etcd) == before
