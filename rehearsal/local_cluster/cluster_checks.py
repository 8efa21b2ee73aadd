"""Decides whether a running cluster is as it should be: endpoints, nodes as their boot files say, pods of DaemonSets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.local_cluster.joining.machines import JoiningMachine
from rehearsal.local_cluster.objects import kubeconfig as kubeconfigs
from rehearsal.local_cluster.objects.connection import Connection

Json = Mapping[str, Any]
SOME_MOMENT = "2026-01-01T00:00:00Z"
"""When a node would register; no part of what is compared."""
PATIENCE_SECONDS = 30.0
SHOWN = 5


@dataclass(frozen=True)
class DaemonSetStatus:
    """Pods of a DaemonSet: how many nodes it selects, and on how many of them one is ready."""

    name: str
    desired: int
    ready: int
    everywhere: bool
    """Whether it selects all nodes."""


class ClusterInspector:
    """Asks the cluster as its administrator."""

    def __init__(self, kubeconfig: Path) -> None:
        self._connection = Connection(kubeconfigs.read(kubeconfig), PATIENCE_SECONDS, lambda _: None)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def items(self, path: str) -> list[dict[str, Any]]:
        """A list of the API's, from the server's cache; NoAnswer."""
        return list(self._connection.request("GET", path, {"resourceVersion": "0"}).body.get("items", ()))

    def ready_nodes(self) -> set[str]:
        """Names of the nodes that are ready."""
        return ready_names(self.items("/api/v1/nodes"))

    def daemons(self) -> tuple[DaemonSetStatus, ...]:
        """The DaemonSets of all namespaces; one that its controller has not looked at yet counts as not ready."""
        return tuple(_daemons(one) for one in self.items("/apis/apps/v1/daemonsets"))

    def servers(self) -> set[str]:
        """Addresses of the service `kubernetes` that are ready: the API servers by their own account."""
        query = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
        slices = [one for one in self.items(query) if one["metadata"]["labels"].get("kubernetes.io/service-name") == "kubernetes"]
        return {
            str(address)
            for one in slices
            for endpoint in one.get("endpoints") or ()
            if endpoint["conditions"].get("ready")
            for address in endpoint["addresses"]
        }

    def nodes_that_differ(self, machines: Sequence[JoiningMachine]) -> list[str]:
        """What of the nodes is not as their machines' boot files say, a sentence each."""
        live = {str(node["metadata"]["name"]): node for node in self.items("/api/v1/nodes")}
        return [f"{one.name}: {text}" for one in machines for text in _differences(one.node(SOME_MOMENT), live.get(one.name))]


def ready_names(nodes: Iterable[Json]) -> set[str]:
    """Names of those nodes that are ready."""
    return {
        str(node["metadata"]["name"])
        for node in nodes
        if any((one["type"], one["status"]) == ("Ready", "True") for one in node["status"].get("conditions", ()))
    }


def _daemons(item: Json) -> DaemonSetStatus:
    status, spec = item.get("status", {}), item["spec"]["template"]["spec"]
    seen = status.get("observedGeneration") == item["metadata"]["generation"]
    everywhere = not spec.get("nodeSelector") and not spec.get("affinity")
    return DaemonSetStatus(
        item["metadata"]["name"], status.get("desiredNumberScheduled", 0), status.get("numberReady", 0) if seen else -1, everywhere
    )


def all_ready(daemons: Sequence[DaemonSetStatus], nodes: int) -> bool:
    """Whether each DaemonSet has a ready pod on every node that it selects, and those that select all on all."""
    return all(one.ready == one.desired and (not one.everywhere or one.desired == nodes) for one in daemons)


def _differences(posted: Json, live: Json | None) -> list[str]:
    """How a node differs from what its machine posts; what others add to it counts for nothing."""
    if live is None:
        return ["there is no such node"]
    found = [
        f"label {key} is {live['metadata']['labels'].get(key)!r}, the boot files say {value!r}"
        for key, value in posted["metadata"]["labels"].items()
        if live["metadata"]["labels"].get(key) != value
    ]
    taints = live["spec"].get("taints", [])
    found += [f"taint {taint['key']} is missing" for taint in posted["spec"].get("taints", []) if taint not in taints]
    for where, what in (("spec", "providerID"), ("status", "addresses")):
        if live[where].get(what) != posted[where].get(what):
            found.append(f"{what} is {live[where].get(what)!r}, the machine has {posted[where].get(what)!r}")
    return found
