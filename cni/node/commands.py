"""Programs of the system (ip, iptables, ipset, tc, ctr), each with a time limit, and iptables rules."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable

COMMAND_SECONDS = 20.0
"""Time limit of a program. The slowest one, iptables, waits up to 10 s for its lock."""


class CommandError(Exception):
    """A program of the system that failed: words were run, status is its exit status (None: not run to its end), said its last words."""

    def __init__(self, words: tuple[str, ...], status: int | None, said: str) -> None:
        super().__init__(words, status, said)
        self.words = words
        self.status = status
        self.said = said

    def __str__(self) -> str:
        ended = "did not run to its end" if self.status is None else f"ended with status {self.status}"
        return " ".join(f"{shlex.join(self.words)[:200]} {ended}, where 0 is success: {self.said[-300:] or 'it said nothing'}".split())


def run(*words: str, given: str | None = None) -> str:
    """Return the standard output of a program that reads `given` from its standard input.

    CommandError where it fails, is missing or exceeds its time limit.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            words,
            input=given or "",
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=COMMAND_SECONDS,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise CommandError(words, None, f"no answer within {COMMAND_SECONDS:.0f} s") from None
    except OSError as error:
        raise CommandError(words, None, f"{error.strerror or error}; install {words[0]}, or put its folder on PATH") from None
    if done.returncode:
        raise CommandError(words, done.returncode, done.stderr or done.stdout)
    return done.stdout


WAIT_FOR_LOCK = ("-w", "10")
"""Seconds that iptables waits for the lock of another process."""


def list_rules(table: str, chain: str = "") -> list[str]:
    """Return the lines of a table, or of one chain, as iptables prints them. CommandError."""
    return run("iptables", *WAIT_FOR_LOCK, "-t", table, "-S", *([chain] if chain else [])).splitlines()


def has_rule(table: str, rule: str) -> bool:
    """Return whether a table contains a rule "-A CHAIN …", independent of how this version of iptables prints it. CommandError."""
    try:
        run("iptables", *WAIT_FOR_LOCK, "-t", table, "-C", *shlex.split(rule)[1:])
    except CommandError as failed:
        if failed.status is None:
            raise
        return False
    return True


def restore(table: str, lines: Iterable[str]) -> None:
    """Apply lines of iptables-restore in one transaction, which leaves other rules unchanged. CommandError."""
    run("iptables-restore", "--noflush", *WAIT_FOR_LOCK, given="\n".join((f"*{table}", *lines, "COMMIT", "")))


def remove_chain(table: str, chain: str) -> bool:
    """Remove a chain and every jump to it in one transaction; return whether it existed. CommandError."""
    present = list_rules(table)
    if f"-N {chain}" not in present:
        return False
    jumps = [f"-D{line[2:]}" for line in present if line.startswith("-A ") and line.endswith(f" -j {chain}")]
    restore(table, [f":{chain} - [0:0]", *jumps, f"-X {chain}"])
    return True
