"""Decides which reserved addresses no pod holds any more, and frees them: plugins do that at DEL alone, which a crash may prevent."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from cni.node.commands import CommandError, run
from cni.node.file_lock import locked
from cni.node.routes import pod_links

IN_FLIGHT_SECONDS = 300.0
"""Age below which a reservation is left alone: a sandbox is recorded only behind its ADD, and the kubelet waits four minutes for all of it:
https://github.com/kubernetes/cri-client/blob/v0.36.3/pkg/remote_runtime.go#L221"""
HOST_LOCAL_LOCK_SECONDS = 10.0
PROC = Path("/proc")


@dataclass(frozen=True)
class Reservation:
    """A file of host-local's: the address in its name, and the sandbox that it is for, "" where a crash left the file empty.

    changed is its time of change, in nanoseconds since 1970.
    """

    address: str
    sandbox: str
    changed: int


def read_reservations(folder: Path) -> tuple[Reservation, ...]:
    """The reservations of a network, by address."""
    paths = [path for path in folder.iterdir() if _is_address(path.name)] if folder.is_dir() else []
    found = [one for path in paths if (one := _reservation(path)) is not None]
    return tuple(sorted(found, key=lambda one: ipaddress.ip_address(one.address).packed))


def free_leaked(folder: Path, now: float | None = None) -> list[str]:
    """Frees what no live sandbox has; one line for each address that it freed. now is in seconds since 1970, else the clock's.

    First the candidates are read, and only then the runtime is asked, without the lock, for it may be slow and every ADD waits for the
    lock; then, under the lock, each file goes that is still the same. CommandFailed where the runtime cannot be asked: nothing is freed.
    """
    before = (time.time() if now is None else now) - IN_FLIGHT_SECONDS
    candidates = [one for one in read_reservations(folder) if not one.sandbox or one.changed < before * 1e9]
    if not candidates:
        return []
    spared = sandboxes_in_flight() | live_sandboxes()
    dead = [one for one in candidates if one.sandbox not in spared]
    if not dead:
        return []
    with locked(folder / "lock", HOST_LOCAL_LOCK_SECONDS, "a plugin hangs with host-local's lock: find it with fuser, and end it"):
        links = pod_links()
        return [_free_address(folder, one, links.get(one.address)) for one in dead if _reservation(folder / one.address) == one]


def live_sandboxes() -> frozenset[str]:
    """Ids of every container of the kubelet's, sandboxes among them, running or not; CommandFailed where containerd cannot say.

    By ctr, which comes with containerd itself, whereas crictl is a package of its own. A sandbox has its container from its start until
    it is removed, behind its DEL.
    """
    return frozenset(run("ctr", "--namespace", "k8s.io", "--timeout", "10s", "containers", "list", "--quiet").split())


def sandboxes_in_flight(proc: Path = PROC) -> frozenset[str]:
    """Sandboxes for which a plugin runs now, by the variable that every plugin is started with: https://www.cni.dev/docs/spec/#parameters"""
    found = set()
    for path in proc.glob("[0-9]*/environ"):
        try:
            variables = path.read_bytes().split(b"\0")
        except OSError:
            # It has ended meanwhile.
            continue
        found |= {one.partition(b"=")[2].decode(errors="replace") for one in variables if one.startswith(b"CNI_CONTAINERID=")}
    return frozenset(found)


def count_reserved(folder: Path, addresses: Set[str]) -> int:
    """How many of the addresses are reserved."""
    return sum(one.address in addresses for one in read_reservations(folder))


def _free_address(folder: Path, one: Reservation, link: str | None) -> str:
    """Frees one address under the lock. Its old pod's link goes first: its route would stay, and take what is for the next pod."""
    if link is not None:
        try:
            run("ip", "link", "delete", "dev", link)
        except CommandError:
            # With the pod's namespace it may have gone by itself.
            if one.address in pod_links():
                raise
    (folder / one.address).unlink()
    return f"address {one.address} freed: " + (f"sandbox {one.sandbox} is gone" if one.sandbox else "its reservation was empty")


def _reservation(path: Path) -> Reservation | None:
    """What a file says now; None where it is gone."""
    try:
        changed = path.stat().st_mtime_ns
        words = path.read_bytes().decode(errors="replace").split()
    except OSError:
        return None
    return Reservation(path.name, words[0] if words else "", changed)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
