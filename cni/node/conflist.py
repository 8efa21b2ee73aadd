"""CNI configuration list of the native network: stock plugins with the machine's secondary addresses."""

from __future__ import annotations

import json
from pathlib import Path

from cni.node.files import remove_file, write_if_changed
from cni.node.machine import Machine

DIRECTORY = Path("/etc/cni/net.d")
FILE = "10-gpufleet.conflist"
NETWORK = "gpufleet"
VERSION = "1.1.0"
"""https://github.com/containernetworking/cni/blob/main/SPEC.md, which plugins 1.9.1 and containerd 2 support."""


def document(machine: Machine, mtu: int, reservations: Path) -> dict[str, object]:
    """Return the configuration list: one range per secondary address, all in one range set, so that each pod takes one; mtu in bytes.

    https://www.cni.dev/plugins/current/ipam/host-local/ and https://www.cni.dev/plugins/current/main/ptp/
    """
    ranges = [
        # Without a gateway, a range uses the subnet's first address, Azure's router, which ptp would then claim on every pod's link.
        {"subnet": machine.subnet, "rangeStart": address, "rangeEnd": address, "gateway": machine.primary}
        for address in machine.secondaries
    ]
    ipam = {"type": "host-local", "dataDir": str(reservations), "ranges": [ranges], "routes": [{"dst": "0.0.0.0/0"}]}
    return {
        "cniVersion": VERSION,
        "name": NETWORK,
        "plugins": [
            # ptp's masquerading would hide pods' addresses outside of the subnet, also from pods of other machines.
            {"type": "ptp", "ipMasq": False, "mtu": mtu, "ipam": ipam},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def ensure(machine: Machine, mtu: int, reservations: Path, directory: Path) -> list[str]:
    """Write the configuration list to directory; return one line if it differs."""
    text = json.dumps(document(machine, mtu, reservations), indent=2) + "\n"
    path = directory / FILE
    return [f"{path}: {len(machine.secondaries)} addresses for pods"] if write_if_changed(path, text, mode=0o600) else []


def remove(directory: Path) -> list[str]:
    """Remove the configuration list; return one line if it existed."""
    path = directory / FILE
    return [f"{path}: removed"] if remove_file(path) else []
