"""The real programs run from what the machines were given, and are what was meant: separate events, encryption, audit, no strangers."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys

import pytest
from plane_tls import context, get
from running_plane import RunningPlane
from waiting import until

from components.plan.access import CSR_APPROVER_USER
from components.plan.model import ETCD_PEER_PORT

SECRET = "a-value-that-must-not-be-readable"  # noqa: S105 (a test's own)


@pytest.mark.usefixtures("running_plane")
def test_one_worker_runs_all_tests_that_share_this_control_plane(request: pytest.FixtureRequest) -> None:
    assert "running_plane" in request.fixturenames
    assert request.node.nodeid.endswith("@control plane") or "PYTEST_XDIST_WORKER" not in os.environ


def test_events_land_in_the_events_ring_alone(running_plane: RunningPlane) -> None:
    plane = running_plane.control
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "noticed", "namespace": "default"},
        "involvedObject": {"kind": "Namespace", "name": "default", "namespace": "default"},
        "reason": "Tested",
        "message": "m",
        "type": "Normal",
    }
    running_plane.kubectl("apply", "-f", "-", document=event)
    main, events = (
        [running_plane.etcdctl(one, "get", "/registry/", "--prefix", "--keys-only") for one in ring] for ring in (plane.etcd, plane.events)
    )
    assert all(b"/registry/events/default/noticed" in keys for keys in events)
    assert not any(b"/registry/events/" in keys for keys in main)
    kinds = {key.split(b"/")[2] for keys in events for key in keys.split() if key.startswith(b"/registry/")}
    assert kinds == {b"events"}


def test_a_secret_is_encrypted_in_etcd_and_in_no_audit_log(running_plane: RunningPlane) -> None:
    plane = running_plane.control
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hidden", "namespace": "default"},
        "stringData": {"password": SECRET},
    }
    running_plane.kubectl("apply", "-f", "-", document=document)
    assert base64.b64decode(running_plane.get("secret", "hidden")["data"]["password"]).decode() == SECRET
    for member in plane.etcd:
        raw = running_plane.etcdctl(member, "get", "/registry/secrets/default/hidden", "--print-value-only")
        assert raw.startswith(b"k8s:enc:secretbox:v1:key1:")
        assert SECRET.encode() not in raw
    encoded = base64.b64encode(SECRET.encode()).decode()

    def told() -> list[str]:
        logs = [(one.path("/var/log/kubernetes/audit.log")).read_text() for one in plane.api_servers]
        assert all(text not in log for text in (SECRET, encoded) for log in logs)
        return [line for log in logs for line in log.splitlines() if '"name":"hidden"' in line]

    entry = json.loads(until(told, "the Secret's making is in the log")[0])
    assert (entry["objectRef"]["resource"], entry["level"], entry["user"]["username"]) == ("secrets", "Metadata", "gpufleet-break-glass")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
def test_health_is_told_to_anybody(running_plane: RunningPlane, path: str) -> None:
    assert _status(running_plane, path) == 200


@pytest.mark.parametrize("path", ["/", "/api", "/version", "/metrics", "/livez/etcd", "/openapi/v2", "/api/v1/nodes", "/debug/pprof/"])
def test_nothing_else_is_told_to_strangers(running_plane: RunningPlane, path: str) -> None:
    assert _status(running_plane, path) == 401


def _status(running_plane: RunningPlane, path: str) -> int:
    port = int(running_plane.control.url.rpartition(":")[2])
    return get(port, path, context(running_plane.control.authority, None)).status


@pytest.mark.parametrize("program", ["kube-controller-manager", "kube-scheduler"])
def test_every_machine_runs_it_and_one_leads(running_plane: RunningPlane, program: str) -> None:
    servers = running_plane.control.api_servers
    for machine in servers:
        machine.services[f"{program}.service"].wait_ready(300)

    def leaders() -> list[str]:
        return [
            one.name
            for one in servers
            if "successfully acquired lease" in _log(one, program) or "Successfully acquired lease" in _log(one, program)
        ]

    assert len(until(leaders, "one leads")) == 1
    for one in servers:
        until(lambda one=one: "ttempting to acquire leader lease" in _log(one, program), f"{one.name} wants to lead")
    assert running_plane.get("lease", program, "-n", "kube-system")["spec"]["holderIdentity"]


def _log(machine: object, program: str) -> str:
    log = machine.services[f"{program}.service"].program.log  # type: ignore[attr-defined]
    return str(log.read_text())


def test_no_scheduler_goes_on_without_knowing_who_asks(running_plane: RunningPlane) -> None:
    """It starts a moment before the API server knows its roles."""
    for machine in running_plane.control.api_servers:
        assert "may treat all requests as anonymous" not in _log(machine, "kube-scheduler")


def test_the_kubernetes_services_endpoints_are_the_instances_addresses(running_plane: RunningPlane) -> None:
    expected = {one.address for one in running_plane.control.api_servers}

    def listed() -> bool:
        found = running_plane.get("endpointslices", "kubernetes", "-n", "default")
        return {address for endpoint in found["endpoints"] for address in endpoint["addresses"]} == expected

    until(listed, "the endpoints are those of the instances")


def test_the_break_glass_identity_is_the_programs_own_export_and_asks_nobody(running_plane: RunningPlane) -> None:
    who = json.loads(running_plane.kubectl("auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert (who["username"], "system:masters" in who["groups"]) == ("gpufleet-break-glass", True)
    text = running_plane.control.kubeconfig.read_text()
    assert "client-certificate-data" in text
    assert not [word for word in ("exec:", "token", "auth-provider") if word in text]
    for server in running_plane.control.api_servers:
        assert running_plane.control.server(server) in running_plane.control.direct_kubeconfig(server).read_text()


def test_every_file_of_keys_is_its_owners_alone(running_plane: RunningPlane) -> None:
    for machine in running_plane.control.machines:
        keys = [path for path in machine.root.rglob("*-key.pem") if path.is_file()]
        assert keys
        assert all(path.stat().st_mode & 0o077 == 0 for path in (*keys, *machine.root.rglob("*.kubeconfig")))


def test_the_approvers_credential_and_lists_work_against_the_embedded_azure(running_plane: RunningPlane) -> None:
    machine = running_plane.control.api_servers[0]
    code = (
        "from azure.identity import ManagedIdentityCredential as Credential\n"
        "from services.csr_approver.cli import resource_manager\n"
        "from services.csr_approver.azure_scale_sets import AzureScaleSets\n"
        f"where = ({running_plane.cluster.subscription!r}, {running_plane.cluster.resource_group!r})\n"
        "sets = AzureScaleSets(Credential(), *where, 'dev-', resource_manager())\n"
        "print(sorted(sets.scale_sets()))\n"
        "print(sorted(one.name for one in sets.instances('dev-api')))\n"
    )
    environment = machine.services["gpufleet-csr-approver.service"].program.environment
    done = subprocess.run([sys.executable, "-c", code], env=dict(environment), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sets, instances = done.stdout.splitlines()
    planned = [one.name for pool in running_plane.cluster.pools for one in pool.scale_sets]
    assert sets == str(sorted(["dev-api", *planned]))
    assert instances == str([one.name for one in running_plane.control.api_servers])


def test_the_approver_runs_under_its_own_name_beside_each_api_server(running_plane: RunningPlane) -> None:
    for machine in running_plane.control.api_servers:
        machine.services["gpufleet-csr-approver.service"].wait_ready(300)
        certificate = machine.path("/etc/kubernetes/pki/csr-approver-cert.pem").read_bytes()
        assert CSR_APPROVER_USER in _subject(certificate)


def _subject(pem: bytes) -> str:
    from cryptography import x509

    return x509.load_pem_x509_certificate(pem).subject.rfc4514_string()


def test_when_an_api_server_loses_power_the_probe_sees_it_and_the_others_go_on(running_plane: RunningPlane) -> None:
    plane = running_plane.control
    gone, *others = plane.api_servers
    until(lambda: running_plane.up() == {one.name for one in plane.api_servers}, "all are let in")
    gone.kill()
    try:
        assert not any(service.pid for service in gone.services.values())
        until(lambda: running_plane.up() == {one.name for one in others}, "the probe has found out", 30)
        assert running_plane.get("namespace", "default")["metadata"]["name"] == "default"
    finally:
        gone.start()
        plane.wait_ready(300)
    until(lambda: running_plane.up() == {one.name for one in plane.api_servers}, "all are let in again")


def test_a_member_whose_local_disk_is_new_waits_and_says_so_until_it_may_join(running_plane: RunningPlane) -> None:
    plane = running_plane.control
    wiped, peer = plane.events[2], plane.events[0]
    service = wiped.services["etcd.service"]
    said = service.program.log.stat().st_size
    key_before = wiped.path("/etc/etcd/events-2-key.pem").read_bytes()
    wiped.wipe_nvme()
    until(lambda: b"its disk is empty; it waits" in service.program.log.read_bytes()[said:], "it says that it waits")
    assert (service.state, service.sub_state) == ("starting", "start-pre")
    assert not wiped.path("/var/lib/etcd/data").exists()
    assert wiped.path("/var/lib/gpufleet/etcd-member").exists()
    assert wiped.path("/etc/etcd/events-2-key.pem").read_bytes() == key_before
    _rejoin(running_plane, wiped.name, peer.name)
    service.wait_ready(300)
    assert wiped.path("/var/lib/etcd/data/member").is_dir()


def _rejoin(running_plane: RunningPlane, name: str, asked_name: str) -> None:
    """Follow the guard's instructions: remove the member, add it as a learner, write the member list on its machine, promote it."""
    wiped, peer = running_plane.control.machine(name), running_plane.control.machine(asked_name)
    members = json.loads(running_plane.etcdctl(peer, "member", "list", "-w", "json"))["members"]
    (old,) = [one["ID"] for one in members if one.get("name") == name]
    running_plane.etcdctl(peer, "member", "remove", f"{old:x}")
    url = f"--peer-urls=https://127.0.0.1:{wiped.port(ETCD_PEER_PORT)}"
    added = until(lambda: _added(running_plane, asked_name, name, url), "the ring takes a learner")
    join = wiped.path("/run/gpufleet/etcd-join.env")
    join.parent.mkdir(parents=True, exist_ok=True)
    join.write_text("".join(f"{line}\n" for line in added.splitlines() if line.startswith("ETCD_INITIAL_CLUSTER")))
    members = json.loads(running_plane.etcdctl(peer, "member", "list", "-w", "json"))["members"]
    (new,) = [one["ID"] for one in members if one.get("isLearner")]
    until(lambda: _tried(running_plane, asked_name, "member", "promote", f"{new:x}"), "the learner is promoted")


def _added(running_plane: RunningPlane, peer: str, name: str, url: str) -> str:
    return _tried(running_plane, peer, "member", "add", name, "--learner", url)


def _tried(running_plane: RunningPlane, peer: str, *words: str) -> str:
    """Return the output of etcdctl, or an empty text if the cluster is not ready."""
    try:
        return running_plane.etcdctl(running_plane.control.machine(peer), *words).decode()
    except AssertionError:
        return ""
