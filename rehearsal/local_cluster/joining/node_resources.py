"""Resources of a node: the capacity of its VM size, and what the kubelet's configuration leaves to pods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.manifests import gpu, infiniband
from components.plan.model import ClusterPlan
from components.plan.vm_sizes import VmSize

MIB, GIB = 1024**2, 1024**3
CPU, MEMORY, DISK, PODS = "cpu", "memory", "ephemeral-storage", "pods"
HUGE_PAGES = ("hugepages-1Gi", "hugepages-2Mi")
_UNITS = {"": 1, "Ki": 1024, "Mi": MIB, "Gi": GIB, "Ti": 1024**4, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_QUANTITY = re.compile(r"([0-9]+)(m|Ki|Mi|Gi|Ti|k|M|G|T)?")
_EVICTION = {"memory.available": MEMORY, "nodefs.available": DISK}
"""Hard eviction thresholds that a kubelet holds back from pods:
https://kubernetes.io/docs/tasks/administer-cluster/reserve-compute-resources/#eviction-thresholds"""


@dataclass(frozen=True)
class Devices:
    """Devices that a plugin of the cluster's manifests offers on nodes with a label; value None matches any value."""

    resource: str
    label: str
    value: str | None
    per_gpu: int = 0
    each: int = 0

    def count(self, size: VmSize, labels: Mapping[str, str]) -> int:
        """Return the number of devices of a machine of a size whose node has these labels."""
        chosen = self.label in labels and self.value in (None, labels[self.label])
        return (self.per_gpu * size.gpus + self.each * bool(size.infiniband_ports)) if chosen else 0


def devices_of(cluster: ClusterPlan) -> tuple[Devices, ...]:
    """Return the devices that the cluster's device plugins offer, and the labels of their nodes, from their pods' selectors."""
    found = [Devices("nvidia.com/gpu", _gpu_label(), None, per_gpu=1)] if gpu.has_gpus(cluster) else []
    if infiniband.infiniband_pools(cluster):
        *_, daemon_set = infiniband.infiniband_objects(cluster)
        ((label, value),) = daemon_set["spec"]["template"]["spec"]["nodeSelector"].items()
        found += [
            Devices(f"{one['resourcePrefix']}/{one['resourceName']}", label, value, each=int(one["rdmaHcaMax"]))
            for one in infiniband.plugin_configuration(cluster)["configList"]
        ]
    return tuple(found)


def _gpu_label() -> str:
    terms = gpu.GPU_NODES["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return str(terms[0]["matchExpressions"][0]["key"])


def quantity(text: object, whole: int = 0) -> int:
    """Return a quantity in thousandths, or a percentage of a whole in thousandths. Raises ValueError."""
    word = str(text)
    if word.endswith("%"):
        return int(whole * float(word[:-1]) / 100)
    found = _QUANTITY.fullmatch(word)
    if not found:
        raise ValueError(f"{word!r} is not a supported quantity: write digits and optionally one of m, {', '.join(filter(None, _UNITS))}")
    number, unit = int(found[1]), found[2] or ""
    return number if unit == "m" else number * 1_000 * _UNITS[unit]


def cpus(text: str) -> int:
    """Return the number of CPUs in a list in Linux's format: 0-1,24."""
    ranges = (part.partition("-") for part in text.split(","))
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


def capacity(size: VmSize, disk_bytes: int, pods: int, devices: Mapping[str, int]) -> dict[str, int]:
    """Return the capacity of a machine in thousandths of a unit.

    Memory is the VM size's. On a real machine the kernel takes one to two per cent of it.
    """
    held = {CPU: size.vcpus, DISK: disk_bytes, **dict.fromkeys(HUGE_PAGES, 0), MEMORY: size.memory_gib * GIB, PODS: pods}
    return {name: amount * 1_000 for name, amount in {**held, **devices}.items()}


def reserved(kubelet: Mapping[str, Any], held: Mapping[str, int]) -> dict[str, int]:
    """Return what is reserved from pods, in thousandths: the system's share and the hard eviction thresholds. A list of CPUs replaces
    the share of CPUs."""
    shares: dict[str, int] = {}
    for key in ("systemReserved", "kubeReserved"):
        for name, text in (kubelet.get(key) or {}).items():
            shares[name] = shares.get(name, 0) + quantity(text)
    if kubelet.get("reservedSystemCPUs"):
        shares[CPU] = cpus(kubelet["reservedSystemCPUs"]) * 1_000
    for signal, text in (kubelet.get("evictionHard") or {}).items():
        if (name := _EVICTION.get(signal)) is not None:
            shares[name] = shares.get(name, 0) + quantity(text, held[name])
    return shares


def allocatable(kubelet: Mapping[str, Any], held: Mapping[str, int]) -> dict[str, int]:
    """Return what is left to pods, in thousandths, as kubelets compute it."""
    shares = reserved(kubelet, held)
    return {name: max(0, amount - shares.get(name, 0)) for name, amount in held.items()}


def kubelet_quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    """Return amounts as a kubelet writes them: memory in KiB, parts of CPUs in thousandths."""
    return {name: _written(name, amount) for name, amount in amounts.items()}


def _written(name: str, amount: int) -> str:
    if amount % 1_000 and name == CPU:
        return f"{amount}m"
    units = amount // 1_000
    return f"{units // 1024}Ki" if name == MEMORY else str(units)
