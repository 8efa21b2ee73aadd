"""Commands of the node program: one pass, and the loop that repeats it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from cni.node import addresses, metadata_service, settings, status
from cni.node.commands import CommandError
from cni.node.errors import NodeNetworkError
from cni.node.files import locked
from cni.node.machine import Machine, list_links
from cni.node.metadata_service import REPEATS, MetadataTrust
from cni.node.reconcile import Paths, ensure_network, ensure_shaping, remove_network
from cni.node.routes import RouteEvents
from cni.node.settings import Settings

NOTIFY_SECONDS = 1.0
"""A service manager that does not read its messages within this time loses one: the network does not wait for it."""


def notify(*states: str) -> None:
    """Send states such as READY=1 to systemd; nothing without NOTIFY_SOCKET:
    https://www.freedesktop.org/software/systemd/man/sd_notify.html
    """
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return
    address = f"\0{path[1:]}" if path.startswith("@") else path
    # A service manager that restarts must not end the program.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
        out.settimeout(NOTIFY_SECONDS)
        out.sendto("\n".join(states).encode(), address)


PASS_SECONDS = 5.0
"""Longest time between passes, hence the longest time that a removed part is missing. A new pod starts the next pass earlier."""
REPEAT_SECONDS = 2.0
REQUEST_SECONDS = 15.0
"""Time between requests to the metadata service after an answer was accepted; a card's addresses rarely change."""
LEAK_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 10.0
RESUME_PATIENCE_SECONDS = 10.0
"""Time for the metadata service to answer where an earlier answer of this boot is known."""
LOCK_SECONDS = 60.0
PASS_ERRORS = (NodeNetworkError, CommandError, OSError)
"""Errors of a pass that the next pass may not meet."""


class Program:
    """The program on one machine; say receives each line for a person."""

    def __init__(self, paths: Paths, say: Callable[[str], None]) -> None:
        self.paths = paths
        self.say = say

    def apply(self, patience: float) -> None:
        """Put everything in place once; NodeNetworkError where no answer was accepted within `patience` seconds."""
        given = settings.read(self.paths.settings)
        trust = MetadataTrust(given.planned_pods, status.read(self.paths.state).machine)
        known = trust.accepted is not None
        trouble = self._request(trust, min(patience, RESUME_PATIENCE_SECONDS) if known else patience)
        if trouble is not None:
            if not known:
                raise trouble
            self.say(f"warning: {trouble}; continuing with its earlier answer")
        if trust.accepted is not None:
            self.ensure_network(given, trust.accepted, trust.warnings())
            self.ensure_shaping(given, trust.accepted)

    def _request(self, trust: MetadataTrust, patience: float) -> NodeNetworkError | CommandError | None:
        """Request until an answer is accepted; return the last error after `patience` seconds."""
        end, failures = time.monotonic() + patience, 0
        while True:
            trouble: NodeNetworkError | CommandError
            try:
                if trust.accept(metadata_service.request_machine(self.paths.imds, list_links())):
                    return None
                trouble, wait = _unconfirmed(self.paths.imds), REPEAT_SECONDS
            except (NodeNetworkError, CommandError) as error:
                trouble, wait = error, pause(failures)
                failures += 1
            if time.monotonic() + wait > end:
                return trouble
            time.sleep(wait)

    def ensure_network(self, given: Settings, machine: Machine, warnings: Sequence[str]) -> None:
        """Put the pod network in place, and report each change. Raises PASS_ERRORS."""
        with locked(self.paths.state / "gpufleet-node.lock", LOCK_SECONDS):
            for line in ensure_network(self.paths, given, machine, list_links(), warnings):
                self.say(line)

    def ensure_shaping(self, given: Settings, machine: Machine) -> None:
        """Put shaping in place as the settings define it, and report each change. Raises PASS_ERRORS."""
        with locked(self.paths.state / "gpufleet-node.lock", LOCK_SECONDS):
            for line in ensure_shaping(self.paths, given, machine):
                self.say(line)

    def run(self) -> NoReturn:
        """Repeat passes until the process ends; raise NodeNetworkError if another process runs or the settings are invalid."""
        with locked(self.paths.state / "run.lock", 0.0, "see systemctl status gpufleet-node.service"):
            loop = ReconcileLoop(self, settings.read(self.paths.settings))
            with RouteEvents() as events:
                while True:
                    events.wait(loop.step())

    def reconcile(self) -> None:
        """Free leaked addresses once."""
        for line in addresses.free_leaked(self.paths.network):
            self.say(line)

    def remove(self) -> None:
        """Remove everything that apply put in place; NodeNetworkError while run would restore it."""
        given, state = settings.read(self.paths.settings), self.paths.state
        stop = "systemctl stop gpufleet-node.service, then try again"
        with locked(state / "run.lock", 0.0, stop), locked(state / "gpufleet-node.lock", LOCK_SECONDS):
            machine = status.read(state).machine
            if machine is None:
                self.say("nothing was put in place since this machine booted")
                return
            for line in remove_network(self.paths, given, machine):
                self.say(line)


class ReconcileLoop:
    """State of run between its passes; problems are by the part that failed, until that part succeeds."""

    def __init__(self, program: Program, given: Settings) -> None:
        self.program = program
        self.given = given
        self.trust = MetadataTrust(given.planned_pods, status.read(program.paths.state).machine)
        self.ready = False
        self.failures = 0
        self.request_at = self.free_at = -float("inf")
        self.problems: dict[str, str] = {}

    def step(self) -> float:
        """Run one pass; return the seconds to wait for the next."""
        before = dict(self.problems)
        self._try("settings", self._read_settings)
        if time.monotonic() >= self.request_at:
            self._try("card", self._request)
        if self.trust.accepted is not None:
            self._try("network", self._put)
            self._try("shaping", self._shape)
        if self.given.native and time.monotonic() >= self.free_at:
            self.free_at = time.monotonic() + LEAK_SECONDS
            self._try("leaks", self.program.reconcile)
        self._report(before)
        return PASS_SECONDS if self.ready else max(0.0, self.request_at - time.monotonic())

    def _try(self, part: str, work: Callable[[], None]) -> None:
        """Run one part, so that its failure does not stop the others."""
        try:
            work()
        except PASS_ERRORS as error:
            self.problems[part] = str(error)
        else:
            self.problems.pop(part, None)

    def _read_settings(self) -> None:
        given = settings.read(self.program.paths.settings)
        if given != self.given:
            self.given, self.trust = given, MetadataTrust(given.planned_pods, self.trust.accepted)
            self.program.say(f"{self.program.paths.settings} has changed")

    def _request(self) -> None:
        """Request from the metadata service and schedule the next request: soon where no answer was accepted yet or one must be
        repeated.
        """
        self.request_at = time.monotonic() + (REQUEST_SECONDS if self.trust.accepted else pause(self.failures))
        self.failures += 1
        if not self.trust.accept(metadata_service.request_machine(self.program.paths.imds, list_links())):
            self.request_at = time.monotonic() + REPEAT_SECONDS
            raise _unconfirmed(self.program.paths.imds)
        self.failures = 0
        self.request_at = time.monotonic() + REQUEST_SECONDS

    def _put(self) -> None:
        if self.trust.accepted is None:
            return
        self.program.ensure_network(self.given, self.trust.accepted, self.trust.warnings())
        if not self.ready:
            self.ready = True
            self.program.say("ready")

    def _shape(self) -> None:
        if self.trust.accepted is not None and self.ready:
            self.program.ensure_shaping(self.given, self.trust.accepted)

    def _report(self, before: Mapping[str, str]) -> None:
        """Report a problem once, not at every pass, and record it for status."""
        problems = tuple(self.problems.values())
        # READY=1 in every pass: a lost one would keep the kubelet from starting, and systemd ignores repeated ones.
        ready = ("READY=1",) if self.ready else ()
        notify(*ready, "WATCHDOG=1", f"STATUS={problems[0] if problems else 'everything in place'}")
        now = status.read(self.program.paths.state)
        if now.problems != problems:
            status.write(self.program.paths.state, dataclasses.replace(now, problems=problems))
        for part, problem in self.problems.items():
            if before.get(part) != problem:
                self.program.say(f"problem: {problem}")
        for part in before.keys() - self.problems.keys():
            self.program.say(f"{part}: resolved")


def _unconfirmed(url: str) -> NodeNetworkError:
    return NodeNetworkError(
        url, "fewer or other addresses than expected", f"the same answer {REPEATS} times in a row", metadata_service.REMEDY
    )


def pause(failures: int) -> float:
    """Return the seconds to wait after failed requests: up to 1, 2, 4, … 10, at random, so that machines that booted together do not
    synchronize.
    """
    return random.uniform(0.5, 1.0) * min(LONGEST_PAUSE_SECONDS, 2.0 ** min(failures, 10))
