"""Checks of a running cluster: endpoints, nodes compared with their boot files, pods of DaemonSets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lifecycle.kubernetes_api import kubeconfig as kubeconfigs
from lifecycle.kubernetes_api.connection import Connection
from rehearsal.local_cluster.joining.machines import JoiningMachine

Json = Mapping[str, Any]
SOME_MOMENT = "2026-01-01T00:00:00Z"
"""Time of registration of the expected nodes, which is not compared."""
PATIENCE_SECONDS = 30.0
SHOWN = 5


@dataclass(frozen=True)
class DaemonSetStatus:
    """Pods of a DaemonSet: number of nodes that it selects, and number of nodes with a ready pod."""

    name: str
    desired: int
    ready: int
    everywhere: bool
    """True if it selects all nodes."""


class ClusterInspector:
    """Client that reads a cluster's state as its administrator."""

    def __init__(self, kubeconfig: Path) -> None:
        self._connection = Connection(kubeconfigs.read(kubeconfig), PATIENCE_SECONDS, lambda _: None)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def items(self, path: str) -> list[dict[str, Any]]:
        """Return a list from the server's cache; raise ApiServerUnreachableError."""
        return list(self._connection.request("GET", path, {"resourceVersion": "0"}).body.get("items", ()))

    def ready_nodes(self) -> set[str]:
        """Return the names of the ready nodes."""
        return ready_names(self.items("/api/v1/nodes"))

    def daemons(self) -> tuple[DaemonSetStatus, ...]:
        """Return the DaemonSets of all namespaces; one that its controller has not observed yet is not ready."""
        return tuple(_daemons(one) for one in self.items("/apis/apps/v1/daemonsets"))

    def servers(self) -> set[str]:
        """Return the ready endpoint addresses of the service `kubernetes`: the API servers that registered themselves."""
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
        """Return the differences between nodes and their machines' boot files, one sentence each."""
        live = {str(node["metadata"]["name"]): node for node in self.items("/api/v1/nodes")}
        return [f"{one.name}: {text}" for one in machines for text in _differences(one.node(SOME_MOMENT), live.get(one.name))]


def ready_names(nodes: Iterable[Json]) -> set[str]:
    """Return the names of those nodes that are ready."""
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
    """Return True if each DaemonSet has a ready pod on every node that it selects, and those for all nodes select all."""
    return all(one.ready == one.desired and (not one.everywhere or one.desired == nodes) for one in daemons)


def _differences(posted: Json, live: Json | None) -> list[str]:
    """Return the differences of a node from the Node that its machine posts; additions by others are ignored."""
    if live is None:
        return ["the node does not exist"]
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
