"""A rehearsal's real cluster comes up whole, and what is not as it should be is found."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.cluster_checks import ClusterInspector, DaemonSetStatus, all_ready
from rehearsal.local_cluster.cluster_size import GIB, ClusterSizeError, check_memory, free_bytes, requested_size
from rehearsal.local_cluster.joining.machines import machines_of
from rehearsal.local_cluster.rehearse_real import ProvisionedRegion, RealRun, real_cluster
from rehearsal.local_up.up import bring_up_anew
from stacks.load import load_plan

NODES = 4
LABEL = "topology.kubernetes.io/zone"


@pytest.fixture(scope="module")
def brought() -> ProvisionedRegion:
    plan = load_plan("dev")
    outcome = bring_up_anew(plan)
    return ProvisionedRegion(plan, outcome.cloud, outcome.graphs[-1])


@pytest.fixture(scope="module")
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture(scope="module")
def real_run(brought: ProvisionedRegion, real_engines: Binaries, told: list[tuple[str, str]]) -> Iterator[RealRun]:
    with real_cluster(brought, requested_size(brought.plan, None, NODES, 1), real_engines, lambda *said: told.append(said)) as run:
        yield run
    assert not run.folder.exists()


def test_a_cluster_comes_up_with_as_many_machines_as_asked_for(real_run: RealRun, told: list[tuple[str, str]]) -> None:
    assert real_run.findings == ()
    assert (real_run.joined.nodes, real_run.ready_nodes, len(real_run.control.api_servers)) == (NODES, NODES, 1)
    assert {one.name: one.ready for one in real_run.daemons}["kube-proxy"] == NODES
    assert real_run.requests > 0
    assert {name: count for name, (count, _) in real_run.usages.items()} == {
        "etcd": 6,
        "kube-apiserver": 1,
        "kube-controller-manager": 1,
        "kube-scheduler": 1,
        "gpufleet-csr-approver": 1,
        "kwok-nodes": 1,
        "kwok-pods": 1,
        "balancer": 1,
    }
    assert ("control plane", "1 of 1 API servers answer") in told
    assert ("nodes ready", "4 of 4 are") in told


def test_every_scale_set_has_machines_among_few(real_run: RealRun) -> None:
    daemons = {one.name: one.ready for one in real_run.daemons}
    assert daemons["nvidia-device-plugin"] == 2


def test_a_node_that_is_not_as_its_boot_files_say_is_found(real_run: RealRun, brought: ProvisionedRegion) -> None:
    asker = ClusterInspector(real_run.control.kubeconfig)
    machines = machines_of(brought.cloud, brought.plan, brought.plan.clusters[0])
    there = [one for one in machines if one.name in asker.ready_nodes()]
    assert asker.nodes_that_differ(there) == []
    changed, lacking = there[0], next(one for one in machines if one not in there)
    kubectl(real_run, "label", "--overwrite", "node", changed.name, f"{LABEL}=elsewhere")
    try:
        (difference,) = asker.nodes_that_differ(there)
        assert difference.startswith(f"{changed.name}: label {LABEL} is 'elsewhere', the boot files say ")
    finally:
        zone = changed.node("2026-01-01T00:00:00Z")["metadata"]["labels"][LABEL]
        kubectl(real_run, "label", "--overwrite", "node", changed.name, f"{LABEL}={zone}")
    assert asker.nodes_that_differ([lacking]) == [f"{lacking.name}: the node does not exist"]
    asker.close()


def kubectl(run: RealRun, *words: str) -> None:
    subprocess.run([run.binaries.program("kubectl"), f"--kubeconfig={run.control.kubeconfig}", *words], check=True, capture_output=True)


def test_daemons_count_as_running_only_on_every_node_that_they_select() -> None:
    everywhere, some = DaemonSetStatus("proxy", 4, 4, True), DaemonSetStatus("gpu", 2, 2, False)
    assert all_ready([everywhere, some], 4)
    assert not all_ready([everywhere, some], 5)
    assert not all_ready([replace(some, ready=1)], 4)
    assert not all_ready([replace(some, desired=0, ready=-1)], 4)


def test_what_has_no_room_is_refused_with_need_room_and_remedy() -> None:
    plan = load_plan("southcentralus")
    size = requested_size(plan, None, None, None)
    expected = r"nodes and \d+ API servers need about [\d.]+ GiB, more than the 1.0 GiB of free memory; join fewer nodes with --nodes"
    with pytest.raises(ClusterSizeError, match=expected):
        check_memory(size, GIB)
    check_memory(size, size.bytes_needed)
    assert requested_size(plan, None, 10, 1).bytes_needed < 2 * GIB < size.bytes_needed
    assert free_bytes() > 0


@pytest.mark.parametrize(
    ("cluster", "nodes", "servers", "message"),
    [
        ("nowhere", None, None, "--cluster nowhere: dev has no such cluster; give one of dev"),
        (None, 13, None, "--nodes 13: dev has 12 nodes; give a number from 1 to 12"),
        (None, 0, None, "--nodes 0: dev has 12 nodes; give a number from 1 to 12"),
        (None, None, 3, "--api-servers 3: dev has 2 API servers; give a number from 1 to 2"),
    ],
)
def test_what_the_region_does_not_have_is_refused(cluster: str | None, nodes: int | None, servers: int | None, message: str) -> None:
    with pytest.raises(ClusterSizeError) as caught:
        requested_size(load_plan("dev"), cluster, nodes, servers)
    assert str(caught.value) == message
