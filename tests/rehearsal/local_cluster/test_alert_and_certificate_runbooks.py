"""Every step of the runbooks for alerts and certificates does what it says on a real control plane."""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from running_plane import RunningPlane
from waiting import until

from components.plan.model import API_SERVER_PORT
from rehearsal.azure.persistence import save
from rehearsal.azure.state_directory import StateDirectory
from rehearsal.local_cluster.machine import Machine
from stacks.load import ROOT
from tests.support.unit_control import UnitControl

sys.path.insert(0, str(ROOT / "tests" / "runbooks"))
from runbook import Runbook

ON_MEMBERS = {"EtcdNoLeader", "EtcdMemberDown", "EtcdFsyncSlow"}
PROOFS = {
    "ApiServerThrottles": "PriorityLevelName",
    "ApiServerFails": "readyz check passed",
    "PriorityLevelFull": "PendingRequests",
    "ApiServerDown": "active",
    "EtcdNoLeader": "active",
    "EtcdFsyncSlow": "etcd_disk_wal_fsync_duration_seconds_count",
    "EtcdDatabaseFills": "etcd_server_quota_backend_bytes",
    "ControllerManagerLeaderless": f"{socket.gethostname()}_",
}
"""Output of a section's step on a healthy cluster."""


def _environment(running: RunningPlane, machine: Machine, folder: Path) -> Mapping[str, str]:
    """A person's shell on a machine."""
    return running.shell(UnitControl(running.run, folder / "bin", machine.services, machine.enabled, {}))


def _led(running: RunningPlane) -> bool:
    """Return whether the controller manager and the scheduler have a leader each, some seconds after the API servers started."""
    leases = {one["metadata"]["name"]: one["spec"] for one in running.get("lease", "--namespace=kube-system")["items"]}
    return all(leases.get(name, {}).get("holderIdentity") for name in ("kube-controller-manager", "kube-scheduler"))


def test_every_step_for_an_alert_shows_what_it_is_about(running_plane: RunningPlane, tmp_path: Path) -> None:
    until(lambda: _led(running_plane), "the controller manager and the scheduler have leaders")
    plane = running_plane.control
    values = {"KUBECONFIG": str(plane.kubeconfig), "ETCD_METRICS": f"http://127.0.0.1:{plane.etcd[0].port(2381)}/metrics"}
    environments = {
        machine.role: _environment(running_plane, machine, tmp_path / machine.role) for machine in (plane.etcd[0], plane.api_servers[0])
    }
    book = Runbook("control-plane-alerts", values, {}, ROOT)
    for heading in list(book.left):
        book.environment = dict(environments[plane.etcd[0].role if heading in ON_MEMBERS else plane.api_servers[0].role])
        said = book.run(heading)
        assert PROOFS.get(heading, "") in said, heading
    assert book.left == []


def test_every_step_for_certificates_does_what_it_says(running_plane: RunningPlane, tmp_path: Path) -> None:
    server = running_plane.control.api_servers[0]
    with StateDirectory(tmp_path / "state") as directory:
        running_plane.azure.call(lambda cloud: save(directory, cloud))
    values = {
        "REGION": "dev",
        "STATE": f"--state={shlex.quote(str(tmp_path / 'state'))}",
        "SERVER": f"127.0.0.1:{server.port(API_SERVER_PORT)}",
    }
    book = Runbook("certificates", values, _environment(running_plane, server, tmp_path), ROOT)
    assert "none ends within 30 days" in book.run("See when they end")
    renewed = book.run("Renew a leaf")
    assert "serial=" in renewed
    assert "notAfter=" in renewed
    assert book.left == []
