"""How rules of iptables are listed, looked for and changed, by whichever backend the machine has."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from cni.node.commands import CommandError, run

WAIT_FOR_LOCK = ("-w", "10")
"""Seconds that iptables waits for another's lock."""


def list_rules(table: str, chain: str = "") -> list[str]:
    """Lines of a table, or of one chain of it, as iptables prints them. CommandFailed."""
    return run("iptables", *WAIT_FOR_LOCK, "-t", table, "-S", *([chain] if chain else [])).splitlines()


def has_rule(table: str, rule: str) -> bool:
    """Whether a table has a rule, "-A CHAIN …", in whatever words it is printed: versions differ in them. CommandFailed."""
    try:
        run("iptables", *WAIT_FOR_LOCK, "-t", table, "-C", *shlex.split(rule)[1:])
    except CommandError as failed:
        if failed.status is None:
            raise
        return False
    return True


def restore(table: str, lines: Iterable[str]) -> None:
    """Lines of iptables-restore in one transaction, which leaves alone what they do not name. CommandFailed."""
    run("iptables-restore", "--noflush", *WAIT_FOR_LOCK, given="\n".join((f"*{table}", *lines, "COMMIT", "")))


def remove_chain(table: str, chain: str) -> bool:
    """Take a chain and every jump to it away, in one transaction; whether it was there. CommandFailed."""
    standing = list_rules(table)
    if f"-N {chain}" not in standing:
        return False
    jumps = [f"-D{line[2:]}" for line in standing if line.startswith("-A ") and line.endswith(f" -j {chain}")]
    restore(table, [f":{chain} - [0:0]", *jumps, f"-X {chain}"])
    return True
