"""Addresses of pods: their pods, as the traffic exporter records them, and the release of leaked reservations."""

from __future__ import annotations

import ipaddress
import json
import os
import time
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass
from pathlib import Path

from cni.node.commands import CommandError, run
from cni.node.files import locked
from cni.node.routes import pod_links

HOLDERS_PATH = Path("/run/gpufleet/traffic/holders.json")


@dataclass(frozen=True)
class Holder:
    """The pod that has an address; team is its namespace if that is a team's, else empty."""

    namespace: str
    pod: str
    team: str


def read_holders(path: Path = HOLDERS_PATH) -> dict[str, Holder]:
    """Return holders by address; none where the file is missing or invalid.

    Holders affect weights only: an unknown pod is treated as one without a team, and must not stop the network from being put in place.
    """
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    return {address: holder for address, entry in document.items() if (holder := _holder(entry))}


def write_holders(path: Path, holders: Mapping[str, Holder]) -> None:
    """Replace the file atomically, so that a reader finds all of the old or all of the new holders."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(json.dumps({address: asdict(holder) for address, holder in sorted(holders.items())}, indent=1) + "\n")
    new.replace(path)


def _holder(entry: object) -> Holder | None:
    if not isinstance(entry, dict):
        return None
    values = [entry.get(key) for key in ("namespace", "pod", "team")]
    texts = [value for value in values if isinstance(value, str)]
    return Holder(*texts) if len(texts) == len(values) else None


IN_FLIGHT_SECONDS = 300.0
"""Reservations younger than this are left alone: a sandbox is recorded only after its ADD, and the kubelet waits up to four minutes for
it:
https://github.com/kubernetes/cri-client/blob/v0.36.3/pkg/remote_runtime.go#L221
"""
HOST_LOCAL_LOCK_SECONDS = 10.0
PROC = Path("/proc")


@dataclass(frozen=True)
class Reservation:
    """One file of host-local: the address in its name, and its sandbox, "" where a crash left the file empty.

    changed is its modification time, in nanoseconds since 1970.
    """

    address: str
    sandbox: str
    changed: int


def read_reservations(folder: Path) -> tuple[Reservation, ...]:
    """Return the reservations of a network, sorted by address."""
    paths = [path for path in folder.iterdir() if _is_address(path.name)] if folder.is_dir() else []
    found = [one for path in paths if (one := _reservation(path)) is not None]
    return tuple(sorted(found, key=lambda one: ipaddress.ip_address(one.address).packed))


def free_leaked(folder: Path, now: float | None = None) -> list[str]:
    """Free addresses that no live sandbox has; return one line per address. now is in seconds since 1970; default: the clock.

    Plugins free an address at DEL only, which a crash can prevent. The candidates are read first. The runtime is then queried without the
    lock, because it may be slow and every ADD waits for the lock. Under the lock, each file that is still unchanged is removed.
    CommandError where the runtime cannot be queried: nothing is freed.
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
    """Return the IDs of all containers of the kubelet, sandboxes included, running or not. CommandError.

    The command is ctr, which is part of containerd, whereas crictl is a separate package. A sandbox has its container from its start until
    it is removed after its DEL.
    """
    return frozenset(run("ctr", "--namespace", "k8s.io", "--timeout", "10s", "containers", "list", "--quiet").split())


def sandboxes_in_flight(proc: Path = PROC) -> frozenset[str]:
    """Return sandboxes for which a plugin runs now, from the environment of every plugin: https://www.cni.dev/docs/spec/#parameters"""
    found = set()
    for path in proc.glob("[0-9]*/environ"):
        try:
            variables = path.read_bytes().split(b"\0")
        except OSError:
            # The process has ended meanwhile.
            continue
        found |= {one.partition(b"=")[2].decode(errors="replace") for one in variables if one.startswith(b"CNI_CONTAINERID=")}
    return frozenset(found)


def count_reserved(folder: Path, addresses: Set[str]) -> int:
    """Return the number of the addresses that are reserved."""
    return sum(one.address in addresses for one in read_reservations(folder))


def _free_address(folder: Path, one: Reservation, link: str | None) -> str:
    """Free one address under the lock. The link of its old pod is deleted first, because its route would capture packets of the next
    pod.
    """
    if link is not None:
        try:
            run("ip", "link", "delete", "dev", link)
        except CommandError:
            # It may have been deleted with the pod's namespace.
            if one.address in pod_links():
                raise
    (folder / one.address).unlink()
    return f"address {one.address} freed: " + (f"sandbox {one.sandbox} is gone" if one.sandbox else "its reservation was empty")


def _reservation(path: Path) -> Reservation | None:
    """Return the content of a file now; None where it does not exist."""
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
