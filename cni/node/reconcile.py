"""In which order a machine's pod network is put in place: what pods need first, and last what lets them come."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cni.node import accounting, address_holders, conflist, imds, routes, settings, shaping, snat, status
from cni.node.errors import NodeNetworkError
from cni.node.links import Link
from cni.node.machine import Machine
from cni.node.settings import Settings
from cni.node.status import NodeStatus


@dataclass(frozen=True)
class Paths:
    """Where the program finds and leaves everything; state is gone after a reboot, and with it every reservation of an address."""

    settings: Path = settings.PATH
    imds: str = imds.METADATA_URL
    state: Path = Path("/run/gpufleet")
    cni: Path = conflist.DIRECTORY

    @property
    def reservations(self) -> Path:
        """host-local's data directory, of all networks."""
        return self.state / "cni"

    @property
    def network(self) -> Path:
        """host-local's folder of this network: its lock, and a file for each address that is reserved."""
        return self.reservations / conflist.NETWORK


def ensure_network(paths: Paths, given: Settings, machine: Machine, found: Sequence[Link], warnings: Sequence[str]) -> list[str]:
    """Has everything in place for a machine, given its links; one line for each thing that was not.

    Refused where the machine's link does not carry its address now; CommandFailed where a program of the system fails. What was done by
    then stays, and the next pass goes on from it.
    """
    link = next((link for link in found if link.name == machine.interface and machine.primary in link.addresses), None)
    if link is None:
        has = ", ".join(f"{one.name} {' '.join(one.addresses)}" for one in found)
        raise NodeNetworkError(
            f"link {machine.interface}", f"it has not {machine.primary} (links: {has})", "it has", "see networkctl status"
        )
    now = _record_start(paths, given, machine, [*warnings, *_small_mtu(given, link)])
    lines = routes.ensure(machine, tuple(found))
    lines += snat.ensure_snat(machine, given.not_masqueraded) if given.snat else snat.remove_snat()
    lines += accounting.ensure(given, machine)
    lines += status.write_environment(paths.state, now.max_pods)
    mtu = min(given.mtu, link.mtu)
    lines += conflist.ensure(machine, mtu, paths.reservations, paths.cni) if given.native else conflist.remove(paths.cni)
    status.write(paths.state, dataclasses.replace(now, ready=True))
    return lines


def ensure_shaping(paths: Paths, given: Settings, machine: Machine) -> list[str]:
    """Has shaping as the settings say; where they say nothing of it and none was put in place, it is not even looked for.

    By itself and after put, for a pod that nobody shapes is better than a node that has none. Refused and CommandFailed as shaping.keep.
    """
    if given.shaping is None and not status.read(paths.state).shaped:
        return []
    lines = shaping.ensure(given, machine, address_holders.read_holders(paths.state / "traffic" / "holders.json"))
    status.write(paths.state, dataclasses.replace(status.read(paths.state), shaped=given.shaping is not None))
    return lines


def remove_network(paths: Paths, given: Settings, machine: Machine) -> list[str]:
    """Undoes what put did, but for forwarding and the reservations, which pods that still run need; one line for each thing."""
    lines = [*conflist.remove(paths.cni), *shaping.remove(machine)]
    accounting.remove(given, machine)
    lines += ["accounting: removed", *snat.remove_snat(), *routes.remove()]
    for name in (status.ENVIRONMENT, status.FILE):
        (paths.state / name).unlink(missing_ok=True)
    return lines


def _record_start(paths: Paths, given: Settings, machine: Machine, warnings: Sequence[str]) -> NodeStatus:
    """Writes down what is begun, so that it can be undone from wherever it ends."""
    before = status.read(paths.state)
    now = NodeStatus(
        ready=before.ready,
        mode=given.mode,
        machine=machine,
        shaped=before.shaped or given.shaping is not None,
        max_pods=status.max_pods(given, machine),
        warnings=tuple(warnings),
        problems=before.problems,
    )
    status.write(paths.state, now)
    return now


def _small_mtu(given: Settings, link: Link) -> list[str]:
    if link.mtu >= given.mtu:
        return []
    return [f"link {link.name} has an MTU of {link.mtu} bytes; planned are {given.mtu}; pods get the link's; raise it on the link"]
