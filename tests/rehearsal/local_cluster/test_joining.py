"""Machines of the embedded Azure become nodes of the real control plane, and a fault in what they were told shows."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from joining_cluster import DOOR, INFINIBAND_POOL, RealCluster, altered_region, amounts, pod, real_cluster, relabel, shut_door
from running_plane import READY_SECONDS
from waiting import until

from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.joining.certificates import client_context
from rehearsal.local_cluster.joining.connection import Connection, HttpResponse, bearer
from rehearsal.local_cluster.joining.figures import NodeFailure, Tally
from rehearsal.local_cluster.joining.joiner import STORM, Identities, Joiner, Smoothing
from rehearsal.local_cluster.joining.machines import JoiningMachine
from rehearsal.local_cluster.joining.node_object import NODE_USER, NODES_GROUP
from rehearsal.local_cluster.joining.node_registration import NodeRegistration, RegistrationStepError
from rehearsal.local_cluster.joining.protobuf import node_bytes
from rehearsal.local_cluster.joining.rbac import ACTOR_USER, KWOK, KWOK_USER

SPENT = "abcdef.0123456789abcdef"
UNMET = f"{NODE_USER}dev-cpu-000-00yyyy"
NOT_READY = "node.kubernetes.io/not-ready"


@pytest.fixture(scope="module")
def real(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """The development cluster with two InfiniBand machines beside its own twelve."""
    region = altered_region(tmp_path_factory.mktemp("region"), "dev", "\n    tenancy:", INFINIBAND_POOL)
    with real_cluster(region, binaries) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def joined(real: RealCluster) -> RealCluster:
    """The same with every machine joined as a first boot does."""
    machines = real.machines()
    figures = Joiner(real.access()).join(machines, Identities.BOOTSTRAP, STORM)
    assert (figures.failures, figures.nodes, len(machines)) == ((), 14, 14)
    assert list(figures.steps) == [
        "attested data",
        "client request",
        "client certificate",
        "node",
        "serving request",
        "serving certificate",
    ]
    real.wait_ready({one.name for one in machines})
    return real


def test_every_machine_has_serving_and_client_certificates_that_were_approved(joined: RealCluster) -> None:
    requests = joined.get("csr")["items"]
    by_signer = {signer: [one for one in requests if one["spec"]["signerName"].endswith(signer)] for signer in ("-kubelet", "-serving")}
    assert {signer: len(found) for signer, found in by_signer.items()} == {"-kubelet": 14, "-serving": 14}
    assert all(one["status"]["certificate"] for one in requests)
    reasons = {condition["reason"] for one in by_signer["-serving"] for condition in one["status"]["conditions"]}
    assert reasons == {"GpufleetCsrApprover"}


def test_keeping_nodes_alive_changes_nothing_that_their_boot_files_decide(joined: RealCluster) -> None:
    # The controller manager takes its own taint away a moment after a node is ready.
    until(
        lambda: NOT_READY not in str([node["spec"].get("taints") for node in joined.get("nodes")["items"]]),
        "no node has the taint of one that is not ready",
    )
    nodes = {node["metadata"]["name"]: node for node in joined.get("nodes")["items"]}
    for machine in joined.machines():
        posted, stored = machine.node("2026-11-21T06:00:00Z"), nodes[machine.name]
        assert stored["metadata"]["labels"] == posted["metadata"]["labels"]
        assert stored["spec"].get("taints", []) == posted["spec"].get("taints", [])
        assert stored["spec"]["providerID"] == posted["spec"]["providerID"]
        for part in ("addresses", "daemonEndpoints"):
            assert stored["status"][part] == posted["status"][part]
        for part in ("capacity", "allocatable"):
            # kwok writes 8Gi where a kubelet writes 8388608Ki.
            assert amounts(stored["status"][part]) == amounts(posted["status"][part])
        node_info = {key: text for key, text in posted["status"]["nodeInfo"].items() if text}
        assert stored["status"]["nodeInfo"].items() >= node_info.items()


def test_leases_last_as_long_as_the_boot_files_say(joined: RealCluster) -> None:
    until(lambda: len(joined.get("leases", "-n", "kube-node-lease")["items"]) == 14, "each node has a lease")
    assert {one["spec"]["leaseDurationSeconds"] for one in joined.get("leases", "-n", "kube-node-lease")["items"]} == {80}


def test_the_shipped_daemons_run_on_the_nodes_that_they_select(joined: RealCluster) -> None:
    expected = {
        "kube-proxy": 14,
        "node-local-dns": 14,
        "gpufleet-traffic": 14,
        "nvidia-device-plugin": 4,
        "dcgm-exporter": 4,
        "rdma-shared-device-plugin": 2,
    }

    def ready() -> dict[str, int]:
        return {one["metadata"]["name"]: one["status"].get("numberReady", 0) for one in joined.get("daemonsets", "-A")["items"]}

    until(lambda: ready() == expected, f"pods of DaemonSets run: {expected}")


def test_a_machine_of_another_cluster_is_denied_a_certificate_to_serve_with(joined: RealCluster) -> None:
    denied = serving_refusal(joined, replace(joined.machines()[0], name="other-cpu-000-000000"))
    assert "denied: 'other-cpu-000-000000' is not the name of a machine of a pool's scale set dev-*" in denied.message


def test_a_machine_that_asks_for_anothers_address_is_denied_a_certificate_to_serve_with(joined: RealCluster) -> None:
    first, second, *_ = joined.machines()
    denied = serving_refusal(joined, replace(first, address=second.address))
    assert denied.step == "serving certificate"
    assert f"address {second.address} is not one of {first.name}" in denied.message


def serving_refusal(real: RealCluster, machine: JoiningMachine) -> NodeFailure:
    """Return the error of a machine that requests a serving certificate with a client certificate of its name."""
    access = real.access()
    assert access.issuer is not None
    identity = access.issuer.issue(f"{NODE_USER}{machine.name}", NODES_GROUP)

    async def ask() -> None:
        tally = Tally()
        async with Connection(access.url, client_context(access.authority, identity), tally, time.monotonic() + 60) as connection:
            await NodeRegistration(machine, tally).serving_identity(connection)

    with pytest.raises(RegistrationStepError) as refused:
        asyncio.run(ask())
    return refused.value.failure


def test_a_node_may_not_register_under_anothers_name(joined: RealCluster) -> None:
    first, second, *_ = joined.machines()
    access = joined.access()
    assert access.issuer is not None
    identity = access.issuer.issue(f"{NODE_USER}{first.name}", NODES_GROUP)

    async def ask() -> None:
        tally = Tally()
        async with Connection(access.url, client_context(access.authority, identity), tally, time.monotonic() + 60) as connection:
            await NodeRegistration(replace(second, name="dev-cpu-000-00zzzz"), tally).register(connection)

    with pytest.raises(RegistrationStepError, match=r"node.*is not allowed to modify node") as refused:
        asyncio.run(ask())
    assert refused.value.failure.status == 403


def test_a_wrong_infiniband_domain_in_a_boot_file_keeps_the_pod_of_that_domain_waiting(joined: RealCluster) -> None:
    domain = next(one.scale_sets[0].infiniband_domain for one in joined.cluster.pools if one.name == "h100")
    joined.azure.call(lambda cloud: relabel(cloud, "dev-h100-000", f"gpufleet.io/ib-domain={domain}", "gpufleet.io/ib-domain=elsewhere"))
    machines = tuple(one for one in joined.machines() if one.of_set.name == "dev-h100-000")
    joined.kubectl("delete", "node", *(one.name for one in machines))
    assert Joiner(joined.access()).join(machines, Identities.ISSUED, STORM).nodes == 2
    joined.wait_ready({one.name for one in machines})
    joined.make(pod("in-domain", nodeSelector={"gpufleet.io/ib-domain": str(domain)}))
    until(lambda: bool(joined.unschedulable("in-domain")), "the scheduler says why the pod waits")
    assert "14 node(s) didn't match Pod's node affinity/selector" in joined.unschedulable("in-domain")

    joined.azure.call(lambda cloud: relabel(cloud, "dev-h100-000", "gpufleet.io/ib-domain=elsewhere", f"gpufleet.io/ib-domain={domain}"))
    again = tuple(one for one in joined.machines() if one.of_set.name == "dev-h100-000")
    joined.kubectl("delete", "node", *(one.name for one in again))
    assert Joiner(joined.access()).join(again, Identities.ISSUED, STORM).nodes == 2
    until(lambda: joined.get("pod", "in-domain")["status"]["phase"] == "Running", "the pod runs in its domain")


def test_pods_run_on_nodes_whose_leases_are_gone_as_where_machines_were_set_up_anew(joined: RealCluster) -> None:
    (keeper,) = (one.pid for one in joined.supervisor.services if one.program.name == "rehearsal/kwok-nodes")
    assert keeper is not None
    names = {f"on-{one.name}": one.name for one in joined.machines()}
    os.kill(keeper, signal.SIGSTOP)
    try:
        joined.kubectl("delete", "leases", "--namespace=kube-node-lease", "--all")
        joined.make({"apiVersion": "v1", "kind": "List", "items": [pod(name, nodeName=node) for name, node in names.items()]})
        until(lambda: {one["status"]["phase"] for one in joined.get("pods", *names)["items"]} == {"Running"}, "a pod runs on every node")
        assert joined.get("leases", "--namespace=kube-node-lease")["items"] == []
    finally:
        os.kill(keeper, signal.SIGCONT)
    joined.kubectl("delete", "pods", "--wait=false", *names)


@pytest.mark.parametrize("how", list(Identities))
def test_machines_join_again_under_each_identity_as_after_a_reimage(joined: RealCluster, how: Identities) -> None:
    machines = joined.machines()
    if how is Identities.BOOTSTRAP:
        joined.forget_nodes()
    figures = Joiner(joined.access()).join(machines, how, STORM)
    assert (figures.nodes, figures.failures) == (14, ())
    connections = {Identities.BOOTSTRAP: 28, Identities.ISSUED: 14, Identities.IMPERSONATED: 8}
    assert figures.connections >= connections[how]
    joined.wait_ready({one.name for one in machines})


def test_a_machine_with_a_spent_token_is_told_and_the_others_join(joined: RealCluster) -> None:
    access, machines = joined.access(), joined.machines()
    spent = {"dev-gpu-000": replace(access.first["dev-gpu-000"], token=SPENT)}
    joined.forget_nodes()
    figures = Joiner(replace(access, first={**access.first, **spent})).join(machines, Identities.BOOTSTRAP, STORM)
    assert figures.nodes == 12
    assert {(one.node, one.step, one.status) for one in figures.failures} == {
        (f"dev-gpu-000-00000{number}", "client request", 401) for number in range(2)
    }
    spent_machines = [one for one in machines if one.of_set.name == "dev-gpu-000"]
    assert Joiner(access).join(spent_machines, Identities.BOOTSTRAP, STORM).nodes == 2
    joined.wait_ready({one.name for one in machines})


def test_machines_join_although_an_api_server_loses_its_power_meanwhile(joined: RealCluster) -> None:
    joined.forget_nodes()
    machines, dead = joined.machines(), joined.control.api_servers[0]
    cut = threading.Timer(1.0, dead.kill)
    cut.start()
    try:
        figures = Joiner(joined.access()).join(machines, Identities.BOOTSTRAP, Smoothing(factor=0.1))
    finally:
        cut.join()
        dead.start()
    assert (figures.nodes, figures.failures) == (14, ())
    # Seven seconds and a half of the boot files' seventy-five.
    assert figures.seconds > 4
    joined.control.wait_ready(READY_SECONDS)
    joined.wait_ready({one.name for one in machines})


def test_machines_that_are_told_to_come_back_later_do_and_join(joined: RealCluster) -> None:
    joined.forget_nodes()
    machines = joined.machines()
    for item in shut_door():
        joined.make(item)
    until(lambda: all(DOOR in text for text in joined.metrics()), "both API servers know the level that refuses")
    opened = threading.Timer(4.0, lambda: joined.kubectl("delete", "flowschema", DOOR))
    opened.start()
    try:
        figures = Joiner(joined.access()).join(machines, Identities.ISSUED, STORM)
    finally:
        opened.join()
        joined.kubectl("delete", "prioritylevelconfiguration", DOOR)
    assert (figures.nodes, figures.failures) == (14, ())
    assert figures.refused > 0
    assert figures.retries >= figures.refused


def test_a_machine_that_azure_does_not_list_is_told_that_nobody_decides(joined: RealCluster) -> None:
    unlisted = replace(joined.machines()[0], name="dev-cpu-000-00zzzz")
    figures = Joiner(joined.access(), deadline_seconds=15).join([unlisted], Identities.BOOTSTRAP, STORM)
    (failure,) = figures.failures
    assert (failure.node, failure.step, failure.status) == ("dev-cpu-000-00zzzz", "client certificate", 0)
    assert failure.message.startswith("node-csr-")
    assert "is still pending after" in failure.message


def test_a_second_certificate_of_a_ready_node_stays_pending(joined: RealCluster) -> None:
    figures = Joiner(joined.access(), deadline_seconds=15).join(joined.machines()[:1], Identities.BOOTSTRAP, STORM)
    (failure,) = figures.failures
    assert failure.step == "client certificate"
    assert "is still pending after" in failure.message


def test_a_machine_does_not_get_anothers_name(joined: RealCluster) -> None:
    first, second, *_ = joined.machines()
    joined.forget_nodes()
    figures = Joiner(joined.access(), deadline_seconds=60).join([replace(first, name=second.name)], Identities.BOOTSTRAP, STORM)
    (failure,) = figures.failures
    assert failure.step == "client certificate"
    assert f"the attested data is of vmId '{first.vm_id}', and machine {second.name} has vmId {second.vm_id}" in failure.message


def test_a_token_without_attested_data_gets_no_certificate(joined: RealCluster) -> None:
    access = replace(joined.access(), attest=lambda _id, _nonce: "")
    (failure,) = Joiner(access, deadline_seconds=60).join(joined.machines()[:1], Identities.BOOTSTRAP, STORM).failures
    assert "denied: the request has no attested data" in failure.message


def test_the_machines_own_program_gets_a_certificate_that_the_api_servers_accept(joined: RealCluster, tmp_path: Path) -> None:
    machine = joined.machines()[0]
    joined.forget_nodes()
    boot = machine.of_set.boot
    secrets = {**boot.secrets, "vault": joined.azure.vault_uri(boot.secrets["vault"])}
    (tmp_path / "secrets.json").write_text(json.dumps(secrets))
    (tmp_path / "gpufleet-fetch-secrets").write_text(boot.file(boot.join["fetch"]))
    (tmp_path / "gpufleet-fetch-secrets").chmod(0o755)
    settings = {
        "server": joined.control.url,
        "authority": str(joined.control.authority),
        "kubeconfig": str(tmp_path / "kubelet.kubeconfig"),
        "certificate": str(tmp_path / "pki/kubelet-client-current.pem"),
        "fetch": str(tmp_path / "gpufleet-fetch-secrets"),
        "secrets": str(tmp_path / "secrets.json"),
        "run": str(tmp_path / "run"),
    }
    assert settings.keys() == boot.join.keys()
    (tmp_path / "join.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "cni.node", "certificate", "--settings", str(tmp_path / "join.json")]
    command += ["--imds", joined.azure.metadata_of(machine.resource_id)]
    environment = {**os.environ, **joined.azure.environment(machine.resource_id)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    link = tmp_path / "pki/kubelet-client-current.pem"
    assert link.is_symlink()
    assert link.stat().st_mode & 0o777 == 0o600
    assert {one.name for one in link.parent.iterdir()} == {link.name, link.resolve().name}
    assert not (tmp_path / "run/bootstrap-token.pem").exists()
    who = [str(joined.binaries.program("kubectl")), "--kubeconfig", str(tmp_path / "kubelet.kubeconfig"), "auth", "whoami", "-o", "json"]
    known = subprocess.run(who, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(known.stdout)["status"]["userInfo"]["username"] == f"{NODE_USER}{machine.name}"
    assert subprocess.run(command, env=environment, capture_output=True, check=False, timeout=60).returncode == 0
    joined.forget_nodes()
    assert Joiner(joined.access()).join(joined.machines(), Identities.BOOTSTRAP, STORM).nodes == 14
    joined.wait_ready({one.name for one in joined.machines()})


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        (("patch", "nodes", "--subresource=status"), "yes"),
        (("update", "leases.coordination.k8s.io", "-n", "kube-node-lease"), "yes"),
        (("delete", "pods"), "yes"),
        (("update", "leases.coordination.k8s.io", "-n", "kube-system"), "no"),
        (("create", "nodes"), "no"),
        (("delete", "nodes"), "no"),
        (("get", "secrets", "-n", "kube-system"), "no"),
        (("create", "pods"), "no"),
        (("impersonate", "users"), "no"),
    ],
)
def test_kwok_may_do_what_kubelets_report_and_no_more(real: RealCluster, asked: tuple[str, ...], allowed: str) -> None:
    command = [str(real.binaries.program("kubectl")), "--kubeconfig", str(real.control.kubeconfig), "auth", "can-i", *asked]
    done = subprocess.run([*command, "--as", KWOK_USER], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == allowed, done.stderr


@pytest.mark.parametrize(
    ("user", "method", "path", "status"),
    [
        (UNMET, "POST", "/api/v1/nodes?dryRun=All", 201),
        (UNMET, "GET", f"/api/v1/nodes/{UNMET.removeprefix(NODE_USER)}", 403),
        ("gpufleet-break-glass", "POST", "/api/v1/nodes?dryRun=All", 403),
        ("system:serviceaccount:kube-system:default", "POST", "/api/v1/nodes?dryRun=All", 403),
        (None, "POST", "/api/v1/nodes?dryRun=All", 403),
    ],
)
def test_who_acts_for_nodes_registers_them_alone(joined: RealCluster, user: str | None, method: str, path: str, status: int) -> None:
    access, node = joined.access(), replace(joined.machines()[0], name=UNMET.removeprefix(NODE_USER)).node("2026-01-01T00:00:00Z")
    headers = bearer(str(access.actor))

    async def asked() -> HttpResponse:
        async with Connection(access.url, client_context(access.authority), Tally(), time.monotonic() + 30, headers) as connection:
            if user:
                connection.act_as(user)
            return await connection.request(method, path, node_bytes(node) if method == "POST" else None, accept=frozenset({403}))

    answer = asyncio.run(asked())
    assert answer.status == status
    # Refused to who acts, and not to whom it acts for.
    assert status == 201 or f'User "{ACTOR_USER}" cannot' in answer.message


def test_priority_and_fairness_treat_kwok_as_they_treat_nodes(joined: RealCluster) -> None:
    dispatched: set[tuple[str, str]] = set()
    for metrics in joined.metrics():
        dispatched |= set(re.findall(rf'dispatched_requests_total{{flow_schema="({KWOK}[^"]*)",priority_level="([^"]*)"}}', metrics))
    assert dispatched == {(f"{KWOK}-heartbeats", "node-high"), (KWOK, "system")}
