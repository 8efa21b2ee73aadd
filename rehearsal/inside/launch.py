"""Runs a command inside: in namespaces of its own, or in those of another such command; only the standard library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rehearsal.inside import kernel, relay

ROOT = Path(__file__).parents[2]
BEGIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from rehearsal.inside.launch import main; main(sys.argv[1:])"


def in_new(addresses: Sequence[str], resolver: str) -> tuple[str, ...]:
    """What to put before a command, to run it in namespaces of its own: loopback carries these addresses, and one resolver is asked."""
    return (*_launcher(), "new", resolver, ",".join(addresses))


def beside(process: int) -> tuple[str, ...]:
    """What to put before a command, to run it in the namespaces of one that `in_new` began, told by its process id out here."""
    return (*_launcher(), "beside", str(process))


def main(words: Sequence[str]) -> NoReturn:
    """`new RESOLVER ADDRESSES COMMAND…` or `beside PROCESS COMMAND…`: run it and end as it ends; 71 where the kernel refuses."""
    try:
        if words[0] == "new":
            kernel.separate()
            resolver, addresses = words[1], [one for one in words[2].split(",") if one]
            relay.run(lambda: kernel.furnish(addresses, resolver), words[3:])
        kernel.enter(int(words[1]))
        relay.run(lambda: None, words[2:])
    except (kernel.KernelRefuses, OSError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(relay.REFUSED)


def _launcher() -> tuple[str, ...]:
    # Isolated, and without what an environment would load: a user namespace is left by a process of one thread alone.
    return (sys.executable, "-I", "-S", "-c", BEGIN, str(ROOT))
