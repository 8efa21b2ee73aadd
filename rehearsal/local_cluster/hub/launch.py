"""Runs a command inside: in namespaces of its own, or in those of another such command; only the standard library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rehearsal.local_cluster.hub import namespaces, signal_relay

ROOT = Path(__file__).parents[3]
BEGIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from rehearsal.local_cluster.hub.launch import main; main(sys.argv[1:])"


def in_new_namespaces(addresses: Sequence[str], resolver: str) -> tuple[str, ...]:
    """What to put before a command, to run it in namespaces of its own: loopback carries these addresses, and one resolver is asked."""
    return (*_launcher(), "new", resolver, ",".join(addresses))


def in_namespaces_of(process: int) -> tuple[str, ...]:
    """What to put before a command, to run it in the namespaces of one that `in_new_namespaces` began, told by its process id out here."""
    return (*_launcher(), "beside", str(process))


def main(words: Sequence[str]) -> NoReturn:
    """`new RESOLVER ADDRESSES COMMAND…` or `beside PROCESS COMMAND…`: run it and end as it ends; 71 where the kernel refuses."""
    try:
        if words[0] == "new":
            namespaces.unshare_namespaces()
            resolver, addresses = words[1], [one for one in words[2].split(",") if one]
            signal_relay.run(lambda: namespaces.configure_namespaces(addresses, resolver), words[3:])
        namespaces.enter_namespaces(int(words[1]))
        signal_relay.run(lambda: None, words[2:])
    except (namespaces.NamespaceError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(signal_relay.REFUSED)


def _launcher() -> tuple[str, ...]:
    # Isolated, and without what an environment would load: a user namespace is left by a process of one thread alone.
    return (sys.executable, "-I", "-S", "-c", BEGIN, str(ROOT))
