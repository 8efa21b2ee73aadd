"""Status of the machine's network since its boot: accepted card, completed parts, and problems."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path

from cni.node.files import write_if_changed
from cni.node.machine import Machine
from cni.node.settings import Settings

FILE = "network-status.json"
ENVIRONMENT = "network.env"
BOOT = Path("/proc/sys/kernel/random/boot_id")
VERSION = 1


@dataclass(frozen=True)
class NodeStatus:
    """network-status.json.

    ready: a pass has completed since the boot. shaped: shaping may be in place. problems: those of the last pass.
    """

    ready: bool
    mode: str
    machine: Machine | None
    shaped: bool
    max_pods: int
    warnings: tuple[str, ...]
    problems: tuple[str, ...]


NO_STATUS = NodeStatus(ready=False, mode="", machine=None, shaped=False, max_pods=0, warnings=(), problems=())


def max_pods(settings: Settings, machine: Machine) -> int:
    """Return the kubelet's maximum of pods: one per existing address, at most as many as planned, plus pods of the host's network."""
    return min(len(machine.secondaries), settings.planned_pods) + settings.host_network_pods


def read(state: Path) -> NodeStatus:
    """Return the last status of this boot; NO_STATUS where the file is missing, from another boot, or invalid."""
    try:
        document = json.loads((state / FILE).read_bytes())
        if document["version"] != VERSION or document["boot"] != _boot():
            return NO_STATUS
        recorded = document["machine"]
        return NodeStatus(
            ready=document["ready"] is True,
            mode=str(document["mode"]),
            machine=None if recorded is None else _machine(recorded),
            shaped=document["shaped"] is True,
            max_pods=int(document["max_pods"]),
            warnings=tuple(map(str, document["warnings"])),
            problems=tuple(map(str, document["problems"])),
        )
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return NO_STATUS


def write(state: Path, status: NodeStatus) -> None:
    """Write network-status.json if it differs."""
    document = {"version": VERSION, "boot": _boot(), **dataclasses.asdict(status)}
    write_if_changed(state / FILE, json.dumps(document, indent=2) + "\n")


def write_environment(state: Path, pods: int) -> list[str]:
    """Write the environment of the kubelet's unit; return one line if it differs, because the kubelet reads it only at its start."""
    path = state / ENVIRONMENT
    return [f"{path}: {pods} pods at most"] if write_if_changed(path, f"GPUFLEET_MAX_PODS={pods}\n") else []


def _boot() -> str:
    return BOOT.read_text().strip()


def _machine(recorded: dict[str, object]) -> Machine:
    addresses = recorded["secondaries"]
    if not isinstance(addresses, list) or not addresses:
        raise ValueError
    found = Machine(
        str(recorded["interface"]),
        str(recorded["mac"]),
        str(ipaddress.IPv4Address(recorded["primary"])),
        tuple(str(ipaddress.IPv4Address(one)) for one in addresses),
        int(str(recorded["prefix_length"])),
    )
    ipaddress.ip_network(found.subnet)
    return found
