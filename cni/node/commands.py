"""Runs the system's programs (ip, iptables, ipset, tc, ctr), each with a time limit and an error that says what it said."""

from __future__ import annotations

import os
import shlex
import subprocess

COMMAND_SECONDS = 20.0
"""A program that has not answered by then hangs: the slowest, iptables, waits for its lock for 10 s at most."""


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
    """Standard output of a program that got given as its standard input; CommandFailed where it fails, is missing or hangs."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            words, input=given or "", capture_output=True, text=True, errors="replace", check=False, timeout=COMMAND_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        raise CommandError(words, None, f"no answer within {SECONDS:.0f} s") from None
    except OSError as error:
        raise CommandError(words, None, f"{error.strerror or error}; install {words[0]}, or put its folder on PATH") from None
    if done.returncode:
        raise CommandError(words, done.returncode, done.stderr or done.stdout)
    return done.stdout
