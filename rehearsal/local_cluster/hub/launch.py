"""Commands in new namespaces, or in the namespaces of another such command. Uses only the standard library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rehearsal.local_cluster.hub import namespaces, signal_relay

ROOT = Path(__file__).parents[3]
BEGIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from rehearsal.local_cluster.hub.launch import main; main(sys.argv[1:])"


def in_new_namespaces(addresses: Sequence[str], resolver: str) -> tuple[str, ...]:
    """Return the command prefix for new namespaces whose loopback carries these addresses and whose names come from one resolver."""
    return (*_launcher(), "new", resolver, ",".join(addresses))


def in_namespaces_of(process: int) -> tuple[str, ...]:
    """Return the command prefix for the namespaces of a process that `in_new_namespaces` started: its process id outside of them."""
    return (*_launcher(), "beside", str(process))


def main(words: Sequence[str]) -> NoReturn:
    """Run `new RESOLVER ADDRESSES COMMAND…` or `beside PROCESS COMMAND…`; exit with the command's status, or 71 if the kernel refuses."""
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
    # Isolated from the environment, whose libraries could start threads: only a process with one thread may change its user namespace.
    return (sys.executable, "-I", "-S", "-c", BEGIN, str(ROOT))
