"""Reconciliation of a machine's pod network: first what pods need, and last the file that admits them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cni.node import accounting, addresses, conflist, metadata_service, nat, routes, settings, shaping, status
from cni.node.errors import NodeNetworkError
from cni.node.machine import Link, Machine
from cni.node.settings import Settings
from cni.node.status import NodeStatus


@dataclass(frozen=True)
class Paths:
    """Paths that the program reads and writes; state is deleted at a reboot, with every reservation of an address."""

    settings: Path = settings.PATH
    imds: str = metadata_service.METADATA_URL
    state: Path = Path("/run/gpufleet")
    cni: Path = conflist.DIRECTORY

    @property
    def reservations(self) -> Path:
        """host-local's data directory, of all networks."""
        return self.state / "cni"

    @property
    def network(self) -> Path:
        """host-local's folder of this network: its lock, and one file per reserved address."""
        return self.reservations / conflist.NETWORK


def ensure_network(paths: Paths, given: Settings, machine: Machine, found: Sequence[Link], warnings: Sequence[str]) -> list[str]:
    """Put the pod network of a machine in place, given its links; return one line per change.

    NodeNetworkError where the machine's link lacks its address. CommandError where a program of the system fails. Completed changes stay,
    and the next pass continues.
    """
    link = next((link for link in found if link.name == machine.interface and machine.primary in link.addresses), None)
    if link is None:
        has = ", ".join(f"{one.name} {' '.join(one.addresses)}" for one in found)
        raise NodeNetworkError(
            f"link {machine.interface}", f"it has not {machine.primary} (links: {has})", "it has", "see networkctl status"
        )
    now = _record_start(paths, given, machine, [*warnings, *_small_mtu(given, link)])
    lines = routes.ensure(machine, tuple(found))
    lines += nat.ensure_snat(machine, given.not_masqueraded) if given.snat else nat.remove_snat()
    lines += accounting.ensure(given, machine)
    lines += status.write_environment(paths.state, now.max_pods)
    mtu = min(given.mtu, link.mtu)
    lines += conflist.ensure(machine, mtu, paths.reservations, paths.cni) if given.native else conflist.remove(paths.cni)
    status.write(paths.state, dataclasses.replace(now, ready=True))
    return lines


def ensure_shaping(paths: Paths, given: Settings, machine: Machine) -> list[str]:
    """Put shaping in place as the settings define it; skip it where it is neither configured nor in place.

    It runs after the network, because a pod without shaping is better than a node without pods. Errors as shaping.ensure.
    """
    if given.shaping is None and not status.read(paths.state).shaped:
        return []
    lines = shaping.ensure(given, machine, addresses.read_holders(paths.state / "traffic" / "holders.json"))
    status.write(paths.state, dataclasses.replace(status.read(paths.state), shaped=given.shaping is not None))
    return lines


def remove_network(paths: Paths, given: Settings, machine: Machine) -> list[str]:
    """Undo ensure_network and ensure_shaping, except for forwarding and reservations, which running pods need; return one line per
    change.
    """
    lines = [*conflist.remove(paths.cni), *shaping.remove(machine)]
    accounting.remove(given, machine)
    lines += ["accounting: removed", *nat.remove_snat(), *routes.remove()]
    for name in (status.ENVIRONMENT, status.FILE):
        (paths.state / name).unlink(missing_ok=True)
    return lines


def _record_start(paths: Paths, given: Settings, machine: Machine, warnings: Sequence[str]) -> NodeStatus:
    """Record the started pass, so that it can be undone wherever it ends."""
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
