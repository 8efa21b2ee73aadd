"""All that the node program may change on a machine, without counts, so that two moments can be compared; and its surroundings."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from fabric import Azure, CommandError, Machine

BACKENDS = ("nft", "legacy")
COUNTS = re.compile(r" packets \d+ bytes \d+| initval \S+")
NOISE = re.compile(r"^(#|:)")


def addresses(count: int, start: int = 5) -> tuple[str, ...]:
    return tuple(f"10.0.0.{start + at}" for at in range(count))


def surroundings(folder: Path, backend: str = "nft", live: str = "") -> dict[str, str]:
    """Environment of a machine whose iptables is of a backend, and whose containerd knows the sandboxes of the file `live` in folder."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("iptables", "iptables-save", "iptables-restore"):
        found = shutil.which(name.replace("iptables", f"iptables-{backend}"))
        if found and not (programs / name).exists():
            (programs / name).symlink_to(found)
    (folder / "live").write_text(live)
    (programs / "ctr").write_text(f"#!/bin/sh\nexec cat {folder}/live\n")
    (programs / "ctr").chmod(0o755)
    return {"PATH": f"{programs}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


def machine(azure: Azure, folder: Path, count: int = 8, backend: str = "nft") -> Machine:
    """A machine with so many addresses for pods, configured."""
    made = azure.machine("m1", "10.0.0.4", addresses(count), environment=surroundings(folder, backend))
    made.configure()
    return made


def rules(machine: Machine) -> list[str]:
    """Rules of every table in order; not the tables and chains that merely exist."""
    lines = []
    for table in ("filter", "nat", "mangle"):
        saved = machine.run("iptables-save", "-t", table).splitlines()
        lines += [f"{table}: {line}" for line in saved if not NOISE.match(line) and line != "COMMIT" and not line.startswith("*")]
    return lines


def routes(machine: Machine) -> list[str]:
    return sorted(line.strip() for line in machine.run("ip", "-4", "route", "show").splitlines())


def sets(machine: Machine) -> list[str]:
    saved = machine.run("ipset", "save").splitlines()
    return sorted(COUNTS.sub("", line) for line in saved)


def files(machine: Machine) -> dict[str, str]:
    found = [machine.cni / "10-gpufleet.conflist", machine.state / "network.env", machine.state / "network-status.json"]
    return {path.name: path.read_text() for path in found if path.exists()}


def everything(machine: Machine) -> dict[str, object]:
    return {"rules": rules(machine), "routes": routes(machine), "sets": sets(machine), "files": files(machine)}


def status(machine: Machine) -> dict[str, object]:
    found: dict[str, object] = json.loads((machine.state / "network-status.json").read_text())
    return found


def refusal(machine: Machine, *words: str) -> str:
    """The one line that the node program refuses with."""
    with pytest.raises(CommandError) as refused:
        machine.node(*words)
    said = refused.value.said.strip()
    assert (refused.value.status, said.count("\n")) == (1, 0)
    return said
