"""Which network configuration the container runtime reads: stock plugins on the machine's own secondary addresses."""

from __future__ import annotations

import json
from pathlib import Path

from cni.node.atomic_write import remove_file, write_if_changed
from cni.node.machine import Machine

DIRECTORY = Path("/etc/cni/net.d")
FILE = "10-gpufleet.conflist"
NETWORK = "gpufleet"
VERSION = "1.1.0"
"""https://github.com/containernetworking/cni/blob/main/SPEC.md, which plugins 1.9.1 and containerd 2 speak."""


def document(machine: Machine, mtu: int, reservations: Path) -> dict[str, object]:
    """Configuration list: one range for each secondary address, all in one range set, so that each pod takes one; mtu in bytes.

    https://www.cni.dev/plugins/current/ipam/host-local/ and https://www.cni.dev/plugins/current/main/ptp/
    """
    ranges = [
        # Without its gateway a range takes the subnet's first address, Azure's router, which ptp would then claim on every pod's link.
        {"subnet": machine.subnet, "rangeStart": address, "rangeEnd": address, "gateway": machine.primary}
        for address in machine.secondaries
    ]
    ipam = {"type": "host-local", "dataDir": str(reservations), "ranges": [ranges], "routes": [{"dst": "0.0.0.0/0"}]}
    return {
        "cniVersion": VERSION,
        "name": NETWORK,
        "plugins": [
            # ptp's masquerading would hide pods from all that is outside of the subnet, other machines' pods among them.
            {"type": "ptp", "ipMasq": False, "mtu": mtu, "ipam": ipam},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def ensure(machine: Machine, mtu: int, reservations: Path, directory: Path) -> list[str]:
    """Has the configuration list in directory; a line for what had to be put in place."""
    text = json.dumps(document(machine, mtu, reservations), indent=2) + "\n"
    path = directory / FILE
    return [f"{path}: {len(machine.secondaries)} addresses for pods"] if write_if_changed(path, text, mode=0o600) else []


def remove(directory: Path) -> list[str]:
    """Takes the configuration list away; a line where it was there."""
    path = directory / FILE
    return [f"{path}: removed"] if remove_file(path) else []
