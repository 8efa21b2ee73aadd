"""A node runs pods only after its pod network is ready, and at most as many as its interface has addresses."""

from __future__ import annotations

import pytest
from boot_machines import flags_of, machines

from components.boot import pod_network

NODES = [name for name, boot in machines().items() if boot.role == "node"]


@pytest.mark.parametrize("name", NODES)
def test_no_kubelet_starts_before_the_pod_network_stands(name: str) -> None:
    boot = machines()[name]
    kubelet = boot.file("/etc/systemd/system/kubelet.service").content.splitlines()
    network = boot.file(f"/etc/systemd/system/{pod_network.UNIT}").content.splitlines()
    assert {f"Wants={pod_network.UNIT}", f"After={pod_network.UNIT}"} <= set(kubelet)
    assert {"Before=kubelet.service", "Type=notify", "Restart=always", "WatchdogSec=5min", "TimeoutStartSec=infinity"} <= set(network)
    assert "After=network-online.target gpufleet-kernel.service gpufleet-azure-endpoints.service" in network
    assert pod_network.UNIT in boot.enable


@pytest.mark.parametrize("name", NODES)
def test_the_kubelet_hears_from_the_node_program_how_many_pods_it_may_take_or_does_not_start(name: str) -> None:
    unit = machines()[name].file("/etc/systemd/system/kubelet.service").content
    assert "EnvironmentFile=/run/gpufleet/network.env\n" in unit
    assert flags_of(unit)["max-pods"] == "${GPUFLEET_MAX_PODS}"


def test_machines_that_are_no_nodes_have_no_pod_network() -> None:
    others = [boot for boot in machines().values() if boot.role != "node"]
    assert others
    assert not [item.path for boot in others for item in boot.files if item.path == pod_network.SETTINGS or pod_network.UNIT in item.path]
