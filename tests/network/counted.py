"""Counters of a machine's kernel, packets of a capture, and machines for each backend of iptables."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from fabric import Azure, Capture, Machine, Pod

from cni.exporter.counters import Rules, parse_rules, parse_sets

BACKENDS = ("nft", "legacy")
TOOLS = ("iptables", "iptables-save", "iptables-restore")
IP_LENGTH = re.compile(r"^IP \(.*?\blength (\d+)\)|ethertype IPv4.*?\(tos .*?\blength (\d+)\)")
SEGMENT = 1448
"""Bytes of TCP's payload in a packet of 1,500 whose header has timestamps."""


def on_path(folder: Path, backend: str) -> dict[str, str]:
    """Environment in which iptables is one of its backends, as a distribution's alternatives have it."""
    if missing := [tool for tool in TOOLS if shutil.which(_of(tool, backend)) is None]:
        pytest.skip(f"no {', '.join(_of(tool, backend) for tool in missing)} here (Debian package iptables)")
    folder.mkdir(parents=True)
    for tool in TOOLS:
        (folder / tool).symlink_to(str(shutil.which(_of(tool, backend))))
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def _of(tool: str, backend: str) -> str:
    return tool.replace("iptables", f"iptables-{backend}")


def machine_of(azure: Azure, backend: str, folder: Path, addresses: int = 8) -> Machine:
    """A machine whose iptables is of a backend, with its pod network in place."""
    secondaries = [f"10.0.0.{last}" for last in range(5, 5 + addresses)]
    machine = azure.machine(f"m-{backend}", "10.0.0.4", secondaries, environment=on_path(folder / backend, backend))
    machine.apply()
    return machine


def rules(machine: Machine) -> Rules:
    """Counts of the machine's rules."""
    return parse_rules(machine.run("iptables-save", "-c", "-t", "mangle"))


def internet(machine: Machine, hook: str) -> dict[str, int]:
    """Bytes that a hook's published rules have counted, by direction."""
    counts = rules(machine).counts
    names = {way: (hook, f"openai traffic=internet-{way}") for way in ("out", "in")}
    return {way: counts[name][1] for way, name in names.items() if name in counts}


def of_pod(machine: Machine, pod: Pod) -> dict[str, int]:
    """Bytes that the sets have counted for a pod's address, by direction."""
    return {way: table[pod.address] for way, table in parse_sets(machine.run("ipset", "save")).bytes.items()}


def lengths(capture: Capture) -> list[int]:
    """Bytes of each captured packet, from its IP header on."""
    return [int(found[1] or found[2]) for line in capture.lines if (found := IP_LENGTH.search(line))]


def on_the_wire(sizes: list[int]) -> int:
    """Bytes that packets of TCP have once they are cut into such as a network carries, each with a header of its own."""
    return sum(size if size <= SEGMENT + 52 else size + 52 * (-(-(size - 52) // SEGMENT) - 1) for size in sizes)
