"""A whole cluster goes back to its snapshot: what was saved is there, what came later is not, and clients begin their watches anew."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from blob_storage import Storage
from controller import on_the_controller
from etcd_machines import EtcdMachines, ansible_variables, member_variables
from follower import Client, Follower

from components.boot.etcd_snapshot import PROGRAM
from components.plan.model import RegionPlan
from rehearsal.binaries.find import find_binaries
from rehearsal.local_cluster.azure_service import AzureService
from rehearsal.local_cluster.control_plane import ControlPlane
from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.supervisor import Supervisor

PATIENCE_SECONDS = 300.0
NAMESPACES = "/api/v1/namespaces"
OBJECTS = f"{NAMESPACES}/default/configmaps"


@dataclass(frozen=True)
class Cluster:
    """A running control plane, and its etcd as playbooks see it."""

    plane: ControlPlane
    etcd: EtcdMachines

    @property
    def client(self) -> Client:
        return Client(self.plane.kubeconfig)

    def names(self) -> set[str]:
        """Objects that the API has."""
        return {item["metadata"]["name"] for item in self.client.get(OBJECTS)["items"]}

    def make(self, name: str) -> None:
        self.client.make(OBJECTS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})


def until(what: Callable[[], bool]) -> None:
    """Return once something is so."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not what():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.5)


@pytest.fixture
def cluster(plan: RegionPlan, azure: AzureService, storage: Storage, tmp_path: Path) -> Iterator[Cluster]:
    """The whole control plane of region dev, booted as in Azure."""
    with (
        RunDirectory() as run,
        Supervisor(run) as supervisor,
        ControlPlane.start(plan, plan.clusters[0], azure, find_binaries(), run, supervisor) as plane,
    ):
        plane.wait_ready(PATIENCE_SECONDS)
        etcd = EtcdMachines(plane.cluster, {one.name: one for one in plane.etcd}, tmp_path, azure, member_variables(run, plane.etcd))
        etcd.api_servers = {
            one.name: ansible_variables(run, one, api_servers_ready_url=f"{plane.server(one)}/readyz") for one in plane.api_servers
        }
        etcd.use_storage(storage)
        yield Cluster(plane, etcd)


def test_a_cluster_is_saved_and_restored_by_the_runbooks_and_its_clients_go_on(cluster: Cluster) -> None:
    etcd = cluster.etcd
    told_first = {"SNAPSHOT": str(etcd.machines[etcd.names[0]].path(PROGRAM))}
    told_first["INVENTORY"] = str(etcd.inventory())
    backup = on_the_controller(etcd, "etcd-backup", **told_first)
    restore = on_the_controller(etcd, "etcd-restore", **told_first, OPTIONS="-e discard=dev_etcd")
    cluster.make("kept")
    cluster.make("deleted-later")
    # A controller publishes this one once it runs.
    until(lambda: "kube-root-ca.crt" in cluster.names())
    before = cluster.names()
    with Follower(cluster.plane.kubeconfig, OBJECTS) as follower:
        backup.run("Save a snapshot now")
        saved = json.loads(backup.run("List the snapshots"))[-1]
        cluster.make("made-later")
        assert cluster.client.request("DELETE", f"{OBJECTS}/deleted-later").status == 200
        until(lambda: follower.names == before - {"deleted-later"} | {"made-later"})
        assert saved["name"] in restore.run("Choose the snapshot")
        said = " ".join(restore.run("Restore the etcd cluster").split())
        cluster.plane.wait_ready(PATIENCE_SECONDS)
        assert cluster.names() == before
        until(lambda: follower.names == before)
        assert follower.anew > 0
        cluster.make("made-after")
        until(lambda: follower.names == before | {"made-after"})
    assert f"{saved['name']} is restored" in said
    assert all(len(list(machine.path("/var/lib/etcd").glob("data.discarded-*/member"))) == 1 for machine in etcd.machines.values())
    # Controllers go on too: one of theirs makes the account of a new namespace.
    cluster.client.make(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
    until(lambda: cluster.client.request("GET", f"{NAMESPACES}/new/serviceaccounts/default").status == 200)
    assert backup.left == []
    assert restore.left == []
