"""gpufleet rotation plan with --kubeconfig reads a real API server, and changes nothing there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from api_client import Api

from components.plan.node_labels import CORDONED_BY, IMAGE_LABEL, POOL_LABEL
from stacks.load import load_plan

GPUFLEET = Path(sys.executable).with_name("gpufleet")
POOL = load_plan("dev").clusters[0].pools[0]
PROVIDER = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/dev-cpu-000/virtualMachines/"


def node(number: int) -> dict[str, object]:
    """Return a node on an older image; the last of four is cordoned by ada."""
    metadata = {"name": f"planned-{number}", "labels": {POOL_LABEL: POOL.name, IMAGE_LABEL: "cpu_2026.10.0"}}
    spec: dict[str, object] = {"providerID": f"{PROVIDER}{number}"}
    if number == 3:
        metadata["annotations"] = {CORDONED_BY: "ada"}
        spec["unschedulable"] = True
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


@pytest.fixture
def with_nodes(api: Api) -> Iterator[Api]:
    for number in range(4):
        api.make("/api/v1/nodes", node(number))
    yield api
    for number in range(4):
        api.remove(f"/api/v1/nodes/planned-{number}")


def written(api: Api) -> list[tuple[object, ...]]:
    """Return what a rotation would change in the nodes; the API server's controllers change other fields."""
    bodies = [api.request("GET", f"/api/v1/nodes/planned-{number}").body for number in range(4)]
    owners = [one["metadata"].get("annotations", {}).get(CORDONED_BY) for one in bodies]
    return [(one["metadata"]["labels"], owner, one["spec"].get("unschedulable")) for one, owner in zip(bodies, owners, strict=True)]


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [GPUFLEET, "rotation", "plan", "dev", "--seeds", "1", "--start", "2026-11-30T06:00", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "NO_COLOR": "1"})


def test_a_forecast_of_a_live_cluster_has_its_nodes_and_names_the_owner_of_a_cordon(with_nodes: Api) -> None:
    before = written(with_nodes)
    result = run("--kubeconfig", with_nodes.path)
    assert result.returncode == 0, result.stderr + result.stdout
    assert result.stdout.startswith("dev: rotation of 3 nodes in 1 cluster, from Mon 2026-11-30 06:00 CET\n")
    assert "nodes and 0 gangs read from the cluster, run times from a modelled population" in result.stdout
    assert "  dev: cordoned by ada; they start when ada has removed the cordon (1 node); owner: ada" in result.stdout
    assert written(with_nodes) == before


def test_a_kubeconfig_that_is_missing_is_one_line(tmp_path: Path) -> None:
    result = run("--kubeconfig", tmp_path / "none")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert str(tmp_path / "none") in result.stderr
