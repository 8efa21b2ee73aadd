"""A machine whose pods talk to the internet, with its kubelet and its exporter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from counted import machine_of
from datagrams import Talk
from fabric import Azure, Machine, Pod
from traffic_exporter import Exporter, Kubelet, eventually, holders


@dataclass
class Place:
    """The machine, what is on it, and the flows of its pods so far."""

    azure: Azure
    machine: Machine
    kubelet: Kubelet
    exporter: Exporter
    talks: list[Talk] = field(default_factory=list)

    def talk(self, pod: Pod) -> Talk:
        """A new flow between a pod and the internet."""
        made = Talk.between(pod.inside, self.azure.internet)
        self.talks.append(made)
        return made

    def runs(self, pod: Pod, namespace: str, name: str) -> None:
        """The kubelet tells of a pod, and the exporter has heard."""
        self.kubelet.runs(pod, namespace, name)
        eventually(lambda: holders(self.exporter).get(pod.address, {}).get("pod") == name, f"the exporter knows {name}")

    def ends(self, pod: Pod) -> None:
        """A pod is gone, and the exporter has seen it."""
        self.machine.delete_pod(pod)
        eventually(lambda: pod.address not in holders(self.exporter), f"{pod.address} is held by nobody")


@contextmanager
def place_in(azure: Azure, folder: Path, backend: str = "nft", addresses: int = 8) -> Iterator[Place]:
    """A machine of a backend with so many addresses for pods; its exporter runs."""
    machine = machine_of(azure, backend, folder, addresses)
    kubelet = Kubelet(machine, folder)
    made = Place(azure, machine, kubelet, Exporter(machine, kubelet).start())
    try:
        yield made
    finally:
        for talk in made.talks:
            talk.close()
        kubelet.close()
