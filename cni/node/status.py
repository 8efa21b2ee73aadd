"""What stands on this machine since it booted: which card was last believed, what was put in place for it, and what is wrong."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path

from cni.node.atomic_write import write_if_changed
from cni.node.machine import Machine
from cni.node.settings import Settings

FILE = "network-status.json"
ENVIRONMENT = "network.env"
BOOT = Path("/proc/sys/kernel/random/boot_id")
VERSION = 1


@dataclass(frozen=True)
class NodeStatus:
    """network-status.json: all was in place once since the boot where ready, shaping may be where shaped; problems are the last pass's."""

    ready: bool
    mode: str
    machine: Machine | None
    shaped: bool
    max_pods: int
    warnings: tuple[str, ...]
    problems: tuple[str, ...]


NO_STATUS = NodeStatus(ready=False, mode="", machine=None, shaped=False, max_pods=0, warnings=(), problems=())


def max_pods(settings: Settings, machine: Machine) -> int:
    """Pods that the kubelet may take: one for each address really there, as many as planned at most, and those of the host's network."""
    return min(len(machine.secondaries), settings.planned_pods) + settings.host_network_pods


def read(state: Path) -> NodeStatus:
    """What was written last in this boot; NOTHING where that is missing, from another boot, or not what this program writes."""
    try:
        document = json.loads((state / FILE).read_bytes())
        if document["version"] != VERSION or document["boot"] != _boot():
            return NO_STATUS
        told = document["machine"]
        return NodeStatus(
            ready=document["ready"] is True,
            mode=str(document["mode"]),
            machine=None if told is None else _machine(told),
            shaped=document["shaped"] is True,
            max_pods=int(document["max_pods"]),
            warnings=tuple(map(str, document["warnings"])),
            problems=tuple(map(str, document["problems"])),
        )
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return NO_STATUS


def write(state: Path, standing: NodeStatus) -> None:
    """Writes network-status.json, where it differs."""
    document = {"version": VERSION, "boot": _boot(), **dataclasses.asdict(standing)}
    write_if_changed(state / FILE, json.dumps(document, indent=2) + "\n")


def write_environment(state: Path, pods: int) -> list[str]:
    """Writes what the kubelet's unit reads; a line where it differs, for the kubelet takes that at its next start only."""
    path = state / ENVIRONMENT
    return [f"{path}: {pods} pods at most"] if write_if_changed(path, f"GPUFLEET_MAX_PODS={pods}\n") else []


def _boot() -> str:
    return BOOT.read_text().strip()


def _machine(told: dict[str, object]) -> Machine:
    addresses = told["secondaries"]
    if not isinstance(addresses, list) or not addresses:
        raise ValueError
    found = Machine(
        str(told["interface"]),
        str(told["mac"]),
        str(ipaddress.IPv4Address(told["primary"])),
        tuple(str(ipaddress.IPv4Address(one)) for one in addresses),
        int(str(told["prefix_length"])),
    )
    ipaddress.ip_network(found.subnet)
    return found
