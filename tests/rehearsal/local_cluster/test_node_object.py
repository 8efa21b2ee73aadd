"""A machine registers as its boot files, its VM size and its image say; whole objects, one per pool, without any engine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from components.boot.machine import custom_data
from components.boot.node import boot_nodes
from components.plan.model import ClusterPlan, PoolPlan, RegionPlan
from rehearsal.azure.compute.instances import model_of
from rehearsal.local_cluster.joining.boot_programs import fetched_files, machine_identity, max_pods_of, wait_seconds
from rehearsal.local_cluster.joining.kwok import faithful
from rehearsal.local_cluster.joining.machines import node_set
from rehearsal.local_cluster.joining.node_boot import NodeBoot, NodeBootError
from rehearsal.local_cluster.joining.node_object import NodeSet, node_object
from rehearsal.local_cluster.joining.node_resources import allocatable, capacity, cpus, quantity
from stacks.load import load_plan

NOW = "2026-11-21T06:00:00Z"
VM_ID = "28422cb2-bf88-5750-82c5-e6b23bef0c60"


def first_set(plan: RegionPlan, cluster: ClusterPlan, pool: PoolPlan) -> NodeSet:
    """Return the common properties of a pool's first scale set, from the custom data that the program renders."""
    profile = {
        "osProfile": {"customData": custom_data(boot_nodes(plan, cluster, pool)[0])},
        "storageProfile": {"imageReference": {"id": pool.image.machine_image_id}},
    }
    body = {"sku": {"name": pool.size.name}, "properties": {"virtualMachineProfile": profile}}
    return node_set(plan, cluster, pool.scale_sets[0].name, model_of(body))


def network(pods: int) -> dict[str, Any]:
    """Network document of a machine that has addresses for so many pods."""
    addresses = [{"privateIpAddress": f"10.52.128.{4 + number}"} for number in range(pods + 1)]
    ipv4 = {"ipAddress": addresses, "subnet": [{"address": "10.52.128.0", "prefix": "19"}]}
    return {"interface": [{"macAddress": "000D3A01AB02", "ipv4": ipv4}]}


def registered(of_set: NodeSet, addresses: int | None = None) -> dict[str, Any]:
    """The Node of a machine with addresses for so many pods, as many as are planned where nothing else is said."""
    result = of_set.boot.network
    pods = max_pods_of(result, network(result.planned_pods if addresses is None else addresses))
    return node_object(of_set, f"{of_set.name}-000000", "10.52.128.4", f"azure:///…/{of_set.name}/virtualMachines/0", VM_ID, pods, NOW)


def altered(of_set: NodeSet, old: str, new: str) -> NodeSet:
    """The same machines with a text of their boot files changed."""
    files = tuple(dataclasses.replace(one, content=one.content.replace(old, new)) for one in of_set.boot.files.files)
    assert files != of_set.boot.files.files
    return dataclasses.replace(of_set, boot=NodeBoot(of_set.name, dataclasses.replace(of_set.boot.files, files=files)))


@pytest.fixture(scope="module")
def dev() -> RegionPlan:
    return load_plan("dev")


@pytest.fixture(scope="module")
def gpu(dev: RegionPlan) -> NodeSet:
    return first_set(dev, dev.clusters[0], dev.clusters[0].pools[1])


@pytest.mark.parametrize("region", ["dev", "southcentralus"])
def test_a_node_of_each_pool_registers_as_written_down(region: str, golden: Callable[[str, str], None]) -> None:
    plan = load_plan(region)
    nodes = [registered(first_set(plan, cluster, pool)) for cluster in plan.clusters for pool in cluster.pools]
    golden(f"rehearsal/nodes-{region}.yaml", yaml.dump_all(nodes, sort_keys=False, width=140))


def test_a_label_of_the_boot_file_goes_over_the_kubelets_own(gpu: NodeSet) -> None:
    changed = altered(gpu, "--node-labels=", "--node-labels=kubernetes.io/arch=arm64,")
    assert registered(changed)["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"


def test_what_kubelet_yaml_says_of_taints_shows_in_the_node(gpu: NodeSet) -> None:
    changed = registered(altered(gpu, "key: gpufleet.io/spot", "key: gpufleet.io/other"))
    assert [taint["key"] for taint in changed["spec"]["taints"]] == ["gpufleet.io/other"]


def test_a_node_takes_the_pods_that_its_network_card_has_addresses_for_and_never_more_than_planned(gpu: NodeSet) -> None:
    assert "maxPods: 35" in gpu.boot.file("/etc/kubernetes/kubelet.yaml")
    for addresses, pods in ((30, "35"), (31, "35"), (12, "17")):
        status = registered(gpu, addresses)["status"]
        assert (status["capacity"]["pods"], status["allocatable"]["pods"]) == (pods, pods)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("EnvironmentFile=/run/gpufleet/network.env", "EnvironmentFile=-/run/gpufleet/network.env", "does not take --max-pods="),
        ("--max-pods=${GPUFLEET_MAX_PODS}", "--max-pods=110", "does not take --max-pods="),
        ('"planned_pods": 30', '"planned_pods": 0', "planned_pods is 0"),
    ],
)
def test_a_kubelet_that_is_not_told_how_many_pods_it_may_take_never_becomes_a_node(gpu: NodeSet, old: str, new: str, what: str) -> None:
    with pytest.raises(NodeBootError, match=what):
        registered(altered(gpu, old, new))


def test_a_machine_that_reserves_more_than_it_has_never_becomes_a_node(gpu: NodeSet) -> None:
    with pytest.raises(NodeBootError, match="reserves more memory than Standard_NC24ads_A100_v4 has"):
        registered(altered(gpu, "memory: 3276Mi", "memory: 500Gi"))


def test_a_machine_that_waits_for_more_nvme_devices_than_it_has_never_becomes_a_node(gpu: NodeSet) -> None:
    with pytest.raises(NodeBootError, match="boot waits for 4 NVMe devices and Standard_NC24ads_A100_v4 has 1"):
        registered(altered(gpu, "--devices=1", "--devices=4"))


def test_a_machine_whose_boot_does_not_enable_the_kubelet_never_becomes_a_node(gpu: NodeSet) -> None:
    enabled = tuple(unit for unit in gpu.boot.files.enabled if unit != "kubelet.service")
    boot = NodeBoot(gpu.name, dataclasses.replace(gpu.boot.files, enabled=enabled))
    with pytest.raises(NodeBootError, match=r"does not enable kubelet\.service"):
        registered(dataclasses.replace(gpu, boot=boot))


def test_a_node_without_the_label_of_a_device_plugin_offers_no_such_device(gpu: NodeSet) -> None:
    assert registered(gpu)["status"]["capacity"]["nvidia.com/gpu"] == "1"
    assert "nvidia.com/gpu" not in registered(altered(gpu, "gpufleet.io/gpu=A100,", ""))["status"]["capacity"]


def test_machines_without_nvme_keep_pods_data_on_the_os_disk(dev: RegionPlan) -> None:
    cpu = first_set(dev, dev.clusters[0], dev.clusters[0].pools[0])
    assert cpu.boot.data_devices == 0
    assert registered(cpu)["status"]["capacity"]["ephemeral-storage"] == str(30 * 1024**3)


def test_pods_get_what_the_system_and_the_eviction_thresholds_leave() -> None:
    kubelet = {
        "systemReserved": {"memory": "1Gi", "cpu": "250m"},
        "kubeReserved": {"memory": "512Mi"},
        "evictionHard": {"memory.available": "1Gi", "nodefs.available": "10%", "pid.available": "5%"},
    }
    size = load_plan("dev").clusters[0].pools[0].size
    held = capacity(size, 100 * 1024**3, 10, {"nvidia.com/gpu": 2})
    left = allocatable(kubelet, held)
    assert left["cpu"] == held["cpu"] - 250
    assert held["memory"] - left["memory"] == 2_560 * 1024**2 * 1_000
    assert held["ephemeral-storage"] - left["ephemeral-storage"] == 10 * 1024**3 * 1_000
    assert (left["nvidia.com/gpu"], left["pods"]) == (2_000, 10_000)
    by_number = allocatable({**kubelet, "reservedSystemCPUs": "0"}, held)
    assert by_number["cpu"] == held["cpu"] - 1_000


def test_quantities_and_lists_of_cpus_are_read_as_kubernetes_and_linux_write_them() -> None:
    assert [quantity("250m"), quantity("2"), quantity("1Ki"), quantity("1k"), quantity("10%", 5_000)] == [250, 2_000, 1_024_000, 10**6, 500]
    assert [cpus("0"), cpus("0-1"), cpus("0,24,48-50")] == [1, 2, 5]
    with pytest.raises(ValueError, match=r"'1\.5Gi' is not a supported quantity"):
        quantity("1.5Gi")


def test_a_machine_knows_itself_by_the_program_that_runs_on_it() -> None:
    compute = {"name": "dev-gpu-000_3", "vmScaleSetName": "dev-gpu-000", "resourceGroupName": "GF-Dev", "subscriptionId": "s"}
    addresses = [{"privateIpAddress": "10.0.0.4"}, {"privateIpAddress": "10.0.0.5"}]
    document = {"compute": compute, "network": {"interface": [{"ipv4": {"ipAddress": addresses}}]}}
    own, provider_id = machine_identity(document)
    assert own == "10.0.0.4"
    assert provider_id.startswith("azure:///subscriptions/s/resourceGroups/gf-dev/")
    assert provider_id.endswith("/virtualMachineScaleSets/dev-gpu-000/virtualMachines/3")


def test_first_joins_are_spread_over_the_time_that_the_unit_says(gpu: NodeSet) -> None:
    waits = [wait_seconds(gpu.boot.spread_seconds, 0, f"machine-{number}") for number in range(1_000)]
    assert gpu.boot.spread_seconds == 75
    assert 0 <= min(waits) < 5 < 70 < max(waits) <= 75
    assert waits[0] == wait_seconds(75, 0, "machine-0")


def test_secrets_of_another_kind_are_refused_as_the_machine_refuses_them(gpu: NodeSet) -> None:
    manifest = gpu.boot.secrets | {"secrets": {"bootstrap-token": "token"}}
    with pytest.raises(Exception, match="secret bootstrap-token is no token"):
        fetched_files(manifest, {"bootstrap-token": "nonsense"})


def test_kwok_renews_leases_as_often_as_the_kubelets_are_told_and_not_two_ways(gpu: NodeSet) -> None:
    keeping = faithful([gpu, gpu])
    assert (keeping.lease_seconds, keeping.report_seconds) == (80, 900)
    other = altered(gpu, "nodeLeaseDurationSeconds: 80", "nodeLeaseDurationSeconds: 40")
    with pytest.raises(ValueError, match=r"kubelet\.yaml has \[\(40, 900\), \(80, 900\)\]"):
        faithful([gpu, other])
