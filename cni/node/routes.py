"""Forwarding and routes of pods' addresses, and events of changed routes."""

from __future__ import annotations

import errno
import json
import select
import socket
import time
from pathlib import Path
from types import TracebackType

from cni.node import commands
from cni.node.commands import CommandError, run
from cni.node.machine import Link, Machine

METRIC = 4096
"""Behind the route of a pod that has the address, whose metric is 0."""
PROTOCOL = 76
"""Marks this program's routes, so that a route whose address the machine lost is recognised. No routing daemon uses this number:
https://github.com/torvalds/linux/blob/v6.8/include/uapi/linux/rtnetlink.h#L276
"""
SYSCTLS = Path("/proc/sys/net/ipv4")


def ensure(machine: Machine, found: tuple[Link, ...]) -> list[str]:
    """Ensure system settings, routes and forwarding, given the links; return one line per change."""
    return [
        *_ensure_forwarding(),
        *_release_pod_addresses(machine, found),
        *_ensure_unreachable(machine),
        *_ensure_source_checks(machine),
        *_ensure_forward_policy(),
    ]


def remove() -> list[str]:
    """Remove the routes; forwarding stays on, because running pods need it."""
    ours = _own_routes()
    _batch([f"route del unreachable {address} metric {METRIC}" for address in sorted(ours)])
    return [f"routes of {len(ours)} addresses removed"] if ours else []


def pod_links() -> dict[str, str]:
    """Return the links of pods by address: the host's routes to one address each."""
    rows = json.loads(run("ip", "-json", "-4", "route", "show", "table", "main", "scope", "host") or "[]")
    rows += json.loads(run("ip", "-json", "-4", "route", "show", "table", "main", "scope", "link") or "[]")
    return {row["dst"]: row["dev"] for row in rows if "dev" in row and "/" not in row["dst"]}


def _ensure_forwarding() -> list[str]:
    return _set_sysctl(SYSCTLS / "ip_forward", "1")


def _release_pod_addresses(machine: Machine, found: tuple[Link, ...]) -> list[str]:
    """Remove pods' addresses from the machine's own link, which would make them the machine's.

    cloud-init adds every address of the card there: https://docs.cloud-init.io/en/latest/reference/datasources/azure.html
    """
    owned = next((link.addresses for link in found if link.name == machine.interface), ())
    wrong = sorted(set(owned) & set(machine.secondaries))
    if not wrong:
        return []
    rows = json.loads(run("ip", "-json", "-4", "address", "show", "dev", machine.interface))[0]["addr_info"]
    _batch([f"address del {row['local']}/{row['prefixlen']} dev {machine.interface}" for row in rows if row["local"] in wrong])
    return [f"link {machine.interface}: {len(wrong)} addresses of pods taken off it"]


def _ensure_unreachable(machine: Machine) -> list[str]:
    """Ensure an unreachable route for each pod address, so that packets to an unused address do not loop until their TTL ends."""
    ours, expected = _own_routes(), set(machine.secondaries)
    _batch(
        [f"route replace unreachable {address} metric {METRIC} proto {PROTOCOL}" for address in machine.secondaries if address not in ours]
    )
    _batch([f"route del unreachable {address} metric {METRIC}" for address in sorted(ours - expected)])
    lines = []
    if expected - ours:
        lines.append(f"routes: unreachable while no pod holds it, for {len(expected - ours)} addresses")
    if ours - expected:
        lines.append(f"routes: removed those of {len(ours - expected)} addresses that the machine no longer has")
    return lines


def _own_routes() -> set[str]:
    rows = json.loads(run("ip", "-json", "-4", "route", "show", "table", "main", "type", "unreachable", "proto", str(PROTOCOL)) or "[]")
    return {row["dst"] for row in rows if row.get("metric") == METRIC}


def _batch(lines: list[str]) -> None:
    """Run several ip commands in one process."""
    if lines:
        run("ip", "-4", "-batch", "-", given="".join(f"{line}\n" for line in lines))


def _ensure_source_checks(machine: Machine) -> list[str]:
    """Drop packets that a pod sends with the address of another pod, before they are counted for that pod.

    Only links of pods are checked: a machine with several cards may receive packets on one card and answer on another. The higher of the
    link's value and the global value applies, and Ubuntu sets the global one to 2, the loose check:
    https://docs.kernel.org/networking/ip-sysctl.html
    """
    loose = SYSCTLS / "conf/all/rp_filter"
    lines = _set_sysctl(loose, "0") if loose.read_text().strip() == "2" else []
    lines += _set_sysctl(SYSCTLS / "conf/default/rp_filter", "1")
    ours = set(machine.secondaries)
    for link in sorted({name for address, name in pod_links().items() if address in ours}):
        lines += _set_sysctl(SYSCTLS / "conf" / link / "rp_filter", "1")
    return lines


def _set_sysctl(path: Path, value: str) -> list[str]:
    try:
        if path.read_text().strip() == value:
            return []
        path.write_text(value)
    except FileNotFoundError:
        # The link was deleted with its pod.
        return []
    except OSError as error:
        raise CommandError(("sysctl", "-w", f"{path}={value}"), None, f"{error.strerror}; run it as root") from None
    return [f"{path.relative_to('/proc/sys')} = {value}"]


def _ensure_forward_policy() -> list[str]:
    """Set the policy of FORWARD to ACCEPT: the policy of another program, such as Docker's DROP, would stop all traffic of pods."""
    if "-P FORWARD ACCEPT" in commands.list_rules("filter", "FORWARD"):
        return []
    run("iptables", *commands.WAIT_FOR_LOCK, "-P", "FORWARD", "ACCEPT")
    return ["iptables: policy of FORWARD is ACCEPT"]


IPV4_ROUTES = 0x40
"""RTMGRP_IPV4_ROUTE of https://man7.org/linux/man-pages/man7/rtnetlink.7.html."""

GATHER_SECONDS = 0.5
"""Shortest time between two passes: pods start in groups, and one pass handles all of them."""

READ = 65_536


class RouteEvents:
    """Kernel events of added and removed routes, which each pod's address causes; a context manager."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE)
        self.socket.bind((0, IPV4_ROUTES))

    def __enter__(self) -> RouteEvents:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.socket.close()

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, or when routes have changed since the last call, but not before GATHER_SECONDS."""
        end = time.monotonic() + seconds
        time.sleep(min(seconds, GATHER_SECONDS))
        select.select([self.socket], [], [], max(0.0, end - time.monotonic()))
        self._read()

    def _read(self) -> None:
        """Discard all events; their content is not needed, even where the kernel dropped some."""
        while True:
            try:
                self.socket.recv(READ)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
