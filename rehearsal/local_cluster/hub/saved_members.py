"""State of clusters that outlasts a run: ports, because etcd stores its members' addresses, and the members' disks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

from rehearsal.azure.state_directory import StateCorruptError
from rehearsal.local_cluster.hub.namespaces import MEMORY
from rehearsal.local_cluster.provisioned_machines import API_SERVER, ProvisionedMachine
from rehearsal.local_cluster.run_directory import RunDirectory
from stacks.atomic_write import write_atomically

FIRST_PORT, LAST_PORT = 20_000, 29_999
"""Below the ephemeral range of a new network namespace: 32768 to 60999, ip(7)."""
LOCAL_DISK, OS_DISK = "/var/lib/etcd", "/var/lib/gpufleet"
"""Folder of etcd's data, on local NVMe devices, and folder with the mark that the machine was a member."""
MEMBER, LOST = "data/member", "lost"
"""Folder of a member's data on the local disk, and the file that marks a machine that lost its data."""


class EtcdData(IntEnum):
    """Data of etcd on a machine's disk, best for a quorum first; a member that lost its data cannot start by itself."""

    DATA = 0
    NOTHING = 1
    LOST = 2


class SavedPorts:
    """Ports by name, stored in a file, so that a name always has the same port."""

    def __init__(self, path: Path) -> None:
        """Read the file; raise OSError, or StateCorruptError if it has other content."""
        self._path = path
        try:
            found = json.loads(path.read_text()) if path.exists() else {}
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(type(port) is int and FIRST_PORT <= port <= LAST_PORT for port in found.values()):
            raise StateCorruptError(f"{path} is no list of ports by name; remove {path.parent} to start with empty clusters")
        self._ports: dict[str, int] = found

    def port(self, name: str) -> int:
        """Return the port of a name, stored before it is returned; raise OSError."""
        if name not in self._ports:
            taken = set(self._ports.values())
            self._ports[name] = next(port for port in range(FIRST_PORT, LAST_PORT + 1) if port not in taken)
            write_atomically(self._path, json.dumps(self._ports, indent=1) + "\n")
        return self._ports[name]


class HubRunDirectory(RunDirectory):
    """Run directory in the namespace's memory, with saved ports."""

    def __init__(self, ports: SavedPorts) -> None:
        super().__init__(MEMORY)
        self._saved_ports = ports

    def port(self, name: str) -> int:
        """Return the port of a name, the same in every run."""
        return self._saved_ports.port(name)


class MemberDisks:
    """Folders of the disks of etcd machines: `<cluster>/<machine>/<vmId>/<disk>`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, cluster: str, machine: ProvisionedMachine) -> Mapping[str, Path]:
        """Return the folders of a machine's disks by path on the machine; none for an API server, which stores nothing."""
        if machine.role == API_SERVER:
            return {}
        own = self._own(cluster, machine)
        return {LOCAL_DISK: own / machine.local_disk, OS_DISK: own / machine.os_disk}

    def data_of(self, cluster: str, machine: ProvisionedMachine) -> EtcdData:
        """Return the state of etcd's data on a machine's local disk."""
        if (self._own(cluster, machine) / machine.local_disk / MEMBER).is_dir():
            return EtcdData.DATA
        return EtcdData.LOST if (self._own(cluster, machine).parent / LOST).exists() else EtcdData.NOTHING

    def remove_others(self, cluster: str, machines: Iterable[ProvisionedMachine]) -> None:
        """Remove disks of no machine in machines, and mark each remaining machine that loses one. No program may use the disks."""
        remaining = {path for one in machines for path in self.of(cluster, one).values()}
        for disk in self._folder.glob(f"{cluster}/*/*/*"):
            if disk not in remaining:
                if (disk / MEMBER).is_dir():
                    (disk.parents[1] / LOST).touch()
                shutil.rmtree(disk)
                with suppress(OSError):
                    disk.parent.rmdir()
        if not remaining and (self._folder / cluster).exists():
            shutil.rmtree(self._folder / cluster)

    def _own(self, cluster: str, machine: ProvisionedMachine) -> Path:
        return self._folder / cluster / machine.name / machine.vm_id
