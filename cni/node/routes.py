"""How the machine treats its pods' addresses: forwards to them, never owns them, and answers for those that no pod holds."""

from __future__ import annotations

import json
from pathlib import Path

from cni.node import iptables
from cni.node.commands import CommandError, run
from cni.node.links import Link
from cni.node.machine import Machine

METRIC = 4096
"""Behind the route of a pod that holds the address, which has metric 0."""
PROTOCOL = 76
"""Marks the routes that are ours, so that one whose address the machine lost is known again; no routing daemon has this number:
https://github.com/torvalds/linux/blob/v6.8/include/uapi/linux/rtnetlink.h#L276"""
SYSCTLS = Path("/proc/sys/net/ipv4")


def ensure(machine: Machine, found: tuple[Link, ...]) -> list[str]:
    """Has system settings, routes and forwarding in place, given the links; one line for each thing that had to be put there."""
    return [*_ensure_forwarding(), *_release_pod_addresses(machine, found), *_ensure_unreachable(machine), *_ensure_source_checks(machine), *_ensure_forward_policy()]


def remove() -> list[str]:
    """Takes the routes away; forwarding stays on, for pods that still run need it."""
    ours = _own_routes()
    _batch([f"route del unreachable {address} metric {METRIC}" for address in sorted(ours)])
    return [f"routes of {len(ours)} addresses removed"] if ours else []


def pod_links() -> dict[str, str]:
    """Links of the pods by their address: the host's routes to one address each."""
    rows = json.loads(run("ip", "-json", "-4", "route", "show", "table", "main", "scope", "host") or "[]")
    rows += json.loads(run("ip", "-json", "-4", "route", "show", "table", "main", "scope", "link") or "[]")
    return {row["dst"]: row["dev"] for row in rows if "dev" in row and "/" not in row["dst"]}


def _ensure_forwarding() -> list[str]:
    return _set_sysctl(SYSCTLS / "ip_forward", "1")


def _release_pod_addresses(machine: Machine, found: tuple[Link, ...]) -> list[str]:
    """Takes pods' addresses off the machine's own link, where they would be the machine's.

    cloud-init puts every address of the card there: https://docs.cloud-init.io/en/latest/reference/datasources/azure.html
    """
    owned = next((link.addresses for link in found if link.name == machine.interface), ())
    wrong = sorted(set(owned) & set(machine.secondaries))
    if not wrong:
        return []
    rows = json.loads(run("ip", "-json", "-4", "address", "show", "dev", machine.interface))[0]["addr_info"]
    _batch([f"address del {row['local']}/{row['prefixlen']} dev {machine.interface}" for row in rows if row["local"] in wrong])
    return [f"link {machine.interface}: {len(wrong)} addresses of pods taken off it"]


def _ensure_unreachable(machine: Machine) -> list[str]:
    """An address that no pod holds is answered for here; without that it would be sent out again, and come back, until its time is up."""
    ours, wanted = _own_routes(), set(machine.secondaries)
    _batch(
        [f"route replace unreachable {address} metric {METRIC} proto {PROTOCOL}" for address in machine.secondaries if address not in ours]
    )
    _batch([f"route del unreachable {address} metric {METRIC}" for address in sorted(ours - wanted)])
    lines = []
    if wanted - ours:
        lines.append(f"routes: unreachable while no pod holds it, for {len(wanted - ours)} addresses")
    if ours - wanted:
        lines.append(f"routes: removed those of {len(ours - wanted)} addresses that the machine no longer has")
    return lines


def _own_routes() -> set[str]:
    rows = json.loads(run("ip", "-json", "-4", "route", "show", "table", "main", "type", "unreachable", "proto", str(PROTOCOL)) or "[]")
    return {row["dst"] for row in rows if row.get("metric") == METRIC}


def _batch(lines: list[str]) -> None:
    """Has ip do many things in one process."""
    if lines:
        run("ip", "-4", "-batch", "-", given="".join(f"{line}\n" for line in lines))


def _ensure_source_checks(machine: Machine) -> list[str]:
    """Drops what a pod sends under another's address, before it is counted for that one.

    Pods' links alone: a machine with several cards may get packets on one that it would answer through another. The higher of a link's
    value and that of all counts, and Ubuntu sets that to 2, the loose check: https://docs.kernel.org/networking/ip-sysctl.html
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
        # A pod's link went away with its pod.
        return []
    except OSError as error:
        raise CommandError(("sysctl", "-w", f"{path}={value}"), None, f"{error.strerror}; run it as root") from None
    return [f"{path.relative_to('/proc/sys')} = {value}"]


def _ensure_forward_policy() -> list[str]:
    """Another program's policy, such as Docker's DROP, would end all that pods send."""
    if "-P FORWARD ACCEPT" in iptables.list_rules("filter", "FORWARD"):
        return []
    run("iptables", *iptables.WAIT_FOR_LOCK, "-P", "FORWARD", "ACCEPT")
    return ["iptables: policy of FORWARD is ACCEPT"]
