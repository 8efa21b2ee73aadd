"""Decides what of the clusters outlasts a run, and where: the ports that etcd remembers its members by, and their disks."""

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

FIRST_PORT, LAST_PORT = 20_000, 29_999
"""Below the ephemeral range of a new network namespace, in which nobody else is: 32768 to 60999, ip(7)."""
LOCAL_DISK, OS_DISK = "/var/lib/etcd", "/var/lib/gpufleet"
"""Where etcd's data lies, on local NVMe devices, and where the machine remembers that it was a member."""
MEMBER, LOST = "data/member", "lost"
"""Where on that disk a member's data is, and the file that says of a machine that it had some."""


class EtcdData(IntEnum):
    """What a machine's disk holds of etcd; the less, the less good it is for a quorum: who has lost its data may not start by itself."""

    DATA = 0
    NOTHING = 1
    LOST = 2


class SavedPorts:
    """Ports by name, in a file: a name has the same one for ever."""

    def __init__(self, path: Path) -> None:
        """OSError; StateBroken where the file holds something else."""
        self._path = path
        try:
            found = json.loads(path.read_text()) if path.exists() else {}
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(type(port) is int and FIRST_PORT <= port <= LAST_PORT for port in found.values()):
            raise StateCorruptError(f"{path} is no list of ports by name; remove {path.parent} to begin with empty clusters")
        self._ports: dict[str, int] = found

    def port(self, what: str) -> int:
        """The port of a name, written before it is given; OSError."""
        if what not in self._ports:
            taken = set(self._ports.values())
            self._ports[what] = next(port for port in range(FIRST_PORT, LAST_PORT + 1) if port not in taken)
            part = self._path.with_suffix(".part")
            part.write_text(json.dumps(self._ports, indent=1) + "\n")
            part.rename(self._path)
        return self._ports[what]


class HubRunDirectory(RunDirectory):
    """A run whose ports are the same in the next one; its folder, with the machines' files and keys, is in memory alone."""

    def __init__(self, ports: SavedPorts) -> None:
        super().__init__(MEMORY)
        self._kept = ports

    def port(self, what: str) -> int:
        """The port that this name has in every run."""
        return self._kept.port(what)


class MemberDisks:
    """Folders of the disks of a region's etcd machines: `<cluster>/<machine>/<vmId>/<disk>`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, cluster: str, machine: ProvisionedMachine) -> Mapping[str, Path]:
        """Where a machine's disks are, by its own paths; an API server's need not outlast it."""
        if machine.role == API_SERVER:
            return {}
        own = self._own(cluster, machine)
        return {LOCAL_DISK: own / machine.local_disk, OS_DISK: own / machine.os_disk}

    def holds(self, cluster: str, machine: ProvisionedMachine) -> EtcdData:
        """What a machine's local disk holds of etcd."""
        if (self._own(cluster, machine) / machine.local_disk / MEMBER).is_dir():
            return EtcdData.DATA
        return EtcdData.LOST if (self._own(cluster, machine).parent / LOST).exists() else EtcdData.NOTHING

    def keep_only(self, cluster: str, machines: Iterable[ProvisionedMachine]) -> None:
        """Remove the disks that none of these machines has, and remember of each machine that stays that it has lost one.

        Nothing may run on them.
        """
        kept = {path for one in machines for path in self.of(cluster, one).values()}
        for disk in self._folder.glob(f"{cluster}/*/*/*"):
            if disk not in kept:
                if (disk / MEMBER).is_dir():
                    (disk.parents[1] / LOST).touch()
                shutil.rmtree(disk)
                with suppress(OSError):
                    disk.parent.rmdir()
        if not kept and (self._folder / cluster).exists():
            shutil.rmtree(self._folder / cluster)

    def _own(self, cluster: str, machine: ProvisionedMachine) -> Path:
        return self._folder / cluster / machine.name / machine.born
