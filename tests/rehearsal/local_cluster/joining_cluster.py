"""A cluster of machines that can join: the embedded Azure, its real control plane with the program's objects, and kwok."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from running_plane import RunningPlane, running
from waiting import until

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import state_of
from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.cluster_checks import ready_names
from rehearsal.local_cluster.joining.cluster_access import ClusterAccess, access_to
from rehearsal.local_cluster.joining.kwok import faithful, kwok_programs
from rehearsal.local_cluster.joining.machines import JoiningMachine, machines_of
from rehearsal.local_cluster.joining.node_object import NODES_GROUP
from rehearsal.local_cluster.joining.node_resources import quantity
from rehearsal.local_cluster.joining.rbac import rights
from rehearsal.local_cluster.objects.apply import apply
from rehearsal.local_cluster.objects.program_objects import objects_of

DOOR = "tests-shut-door"
PAUSE = "registry.k8s.io/pause:3.10"
INFINIBAND_POOL = """
      - name: h100
        slot: 8
        vm_size: Standard_ND96isr_H100_v5
        nodes: 2
        zone: "1"
        interconnect: infiniband
        pods_per_node: 7
        image: nd-h100@2026.11.0
        create_at_once: 2
    tenancy:"""
"""Two InfiniBand machines, before `tenancy:` of a region file."""


@dataclass(frozen=True)
class RealCluster(RunningPlane):
    """A control plane with the program's objects, and the machines that may join it."""

    def machines(self) -> tuple[JoiningMachine, ...]:
        return self.azure.call(lambda cloud: machines_of(cloud, self.plan, self.cluster))

    def access(self) -> ClusterAccess:
        return access_to(self.control, self.azure, self.machines())

    def metrics(self) -> list[str]:
        """Return the metrics of each API server."""
        kubectl, servers = str(self.binaries.program("kubectl")), self.control.api_servers
        commands = [(kubectl, "--kubeconfig", str(self.control.direct_kubeconfig(one)), "get", "--raw", "/metrics") for one in servers]
        return [subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in commands]

    def ready_nodes(self) -> set[str]:
        """Nodes that are ready, by name."""
        return ready_names(self.get("nodes")["items"])

    def wait_ready(self, names: set[str]) -> None:
        until(lambda: names <= self.ready_nodes(), f"{len(names)} nodes are ready")

    def unschedulable(self, name: str) -> str:
        """Return the scheduler's message on a pod that it cannot place, or an empty text before there is one."""
        conditions = self.get("pod", name)["status"].get("conditions", [])
        return next((str(one["message"]) for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"), "")

    def forget_nodes(self) -> None:
        """Take all nodes away, so that their machines can join again."""
        self.kubectl("delete", "nodes,csr", "--all", "--wait=false")
        until(lambda: not self.get("nodes")["items"], "all nodes are gone")


@contextmanager
def real_cluster(region: str, binaries: Binaries) -> Iterator[RealCluster]:
    """A region's first cluster, up to the moment at which its machines may join."""
    with running(region, binaries) as plane:
        found, control = RealCluster(**vars(plane)), plane.control
        applied = apply(control.kubeconfig, (*objects_of(found.graph, found.cluster), *rights()), lambda _: None)
        assert applied.complete, applied.summary
        keeping = faithful([one.of_set for one in found.machines()])
        for program in kwok_programs(binaries, found.run.path, control, keeping):
            found.supervisor.add(program).start()
        yield found


def altered_region(folder: Path, region: str, old: str, new: str) -> str:
    """Path of a copy of a region file with a text changed."""
    text = (Path(__file__).parents[3] / "stacks" / "regions" / f"{region}.yaml").read_text()
    assert old in text
    path = folder / f"{region}.yaml"
    path.write_text(text.replace(old, new))
    return str(path)


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "pause", "image": PAUSE, "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}]
    tolerations = [{"operator": "Exists"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers, "tolerations": tolerations, **spec},
    }


def relabel(cloud: Cloud, scale_set: str, old: str, new: str) -> None:
    """Change a text of the boot files with which a scale set's machines were made."""
    resource = next(one for one in cloud.resources.values() if one.id.name == scale_set)
    for model in state_of(resource).models.values():
        system = model.profile["osProfile"]
        text = base64.b64decode(system["customData"]).decode()
        assert old in text
        system["customData"] = base64.b64encode(text.replace(old, new).encode()).decode()


def shut_door() -> tuple[dict[str, Any], dict[str, Any]]:
    """Priority and fairness that answer every node with 429."""
    api = "flowcontrol.apiserver.k8s.io/v1"
    limited = {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    rule = {"subjects": [{"kind": "Group", "group": {"name": NODES_GROUP}}], "resourceRules": [everything]}
    level = {
        "apiVersion": api,
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": DOOR},
        "spec": {"type": "Limited", "limited": limited},
    }
    spec = {"priorityLevelConfiguration": {"name": DOOR}, "matchingPrecedence": 2, "rules": [rule]}
    return level, {"apiVersion": api, "kind": "FlowSchema", "metadata": {"name": DOOR}, "spec": spec}


def amounts(resources: dict[str, str]) -> dict[str, int]:
    return {name: quantity(text) for name, text in resources.items()}
