"""What the program does when: one pass that puts everything in place, and the loop that keeps it there."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from cni.node import imds, leaked_addresses, settings, status, systemd
from cni.node.commands import CommandError
from cni.node.errors import NodeNetworkError
from cni.node.file_lock import locked
from cni.node.links import list_links
from cni.node.machine import Machine
from cni.node.metadata_trust import REPEATS, MetadataTrust
from cni.node.reconcile import Paths, ensure_network, ensure_shaping, remove_network
from cni.node.route_events import RouteEvents
from cni.node.settings import Settings

PASS_SECONDS = 5.0
"""Between passes of the loop at most: as long may what a stranger removed be missing. A pod that comes brings the next one on."""
REPEAT_SECONDS = 2.0
REQUEST_SECONDS = 15.0
"""Between questions to the metadata service once its answer is taken; a card's addresses rarely change."""
LEAK_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 10.0
RESUME_PATIENCE_SECONDS = 10.0
"""Time for the metadata service to answer where the card is known from an earlier answer of this boot."""
LOCK_SECONDS = 60.0
PASS_ERRORS = (NodeNetworkError, CommandError, OSError)
"""What a pass may meet that the next may not."""


class Program:
    """The program on one machine; say takes each line for a person."""

    def __init__(self, paths: Paths, say: Callable[[str], None]) -> None:
        self.paths = paths
        self.say = say

    def apply(self, patience: float) -> None:
        """Puts everything in place once; Refused where no answer of the metadata service could be taken within so many seconds."""
        given = settings.read(self.paths.settings)
        trust = MetadataTrust(given.planned_pods, status.read(self.paths.state).machine)
        known = trust.taken is not None
        trouble = self._ask(trust, min(patience, RESUME_PATIENCE_SECONDS) if known else patience)
        if trouble is not None:
            if not known:
                raise trouble
            self.say(f"warning: {trouble}; going on with what it said before")
        if trust.taken is not None:
            self.ensure_network(given, trust.taken, trust.warnings())
            self.ensure_shaping(given, trust.taken)

    def _ask(self, trust: MetadataTrust, patience: float) -> NodeNetworkError | CommandError | None:
        """Asks until an answer is taken, or the time is up: then what is in the way."""
        end, failures = time.monotonic() + patience, 0
        while True:
            trouble: NodeNetworkError | CommandError
            try:
                if trust.hear(imds.request_machine(self.paths.imds, list_links())):
                    return None
                trouble, wait = _unconfirmed(self.paths.imds), REPEAT_SECONDS
            except (NodeNetworkError, CommandError) as error:
                trouble, wait = error, pause(failures)
                failures += 1
            if time.monotonic() + wait > end:
                return trouble
            time.sleep(wait)

    def ensure_network(self, given: Settings, machine: Machine, warnings: Sequence[str]) -> None:
        """Puts everything in place for a machine, and says what was not; TROUBLE where something is in the way."""
        with locked(self.paths.state / "gpufleet-node.lock", LOCK_SECONDS):
            for line in ensure_network(self.paths, given, machine, list_links(), warnings):
                self.say(line)

    def ensure_shaping(self, given: Settings, machine: Machine) -> None:
        """Has the machine's internet rate shared as the settings say, and says what was not; TROUBLE where something is in the way."""
        with locked(self.paths.state / "gpufleet-node.lock", LOCK_SECONDS):
            for line in ensure_shaping(self.paths, given, machine):
                self.say(line)

    def run(self) -> NoReturn:
        """Keeps everything in place until the process is ended; Refused where another one does already, or the settings are no good."""
        with locked(self.paths.state / "run.lock", 0.0, "see systemctl status gpufleet-node.service"):
            loop = ReconcileLoop(self, settings.read(self.paths.settings))
            with RouteEvents() as changes:
                while True:
                    changes.wait(loop.step())

    def reconcile(self) -> None:
        """Frees leaked addresses once."""
        for line in leaked_addresses.free_leaked(self.paths.network):
            self.say(line)

    def remove(self) -> None:
        """Takes away what apply put in place; Refused while run would put it back."""
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
    """What run remembers from step to step; problems are by the part that met them, until that part succeeds."""

    def __init__(self, program: Program, given: Settings) -> None:
        self.program = program
        self.given = given
        self.trust = MetadataTrust(given.planned_pods, status.read(program.paths.state).machine)
        self.ready = False
        self.failures = 0
        self.ask_at = self.free_at = -float("inf")
        self.problems: dict[str, str] = {}

    def step(self) -> float:
        """One look at everything; the seconds to wait for the next."""
        before = dict(self.problems)
        self._try("settings", self._read_settings)
        if time.monotonic() >= self.ask_at:
            self._try("card", self._ask)
        if self.trust.taken is not None:
            self._try("network", self._put)
            self._try("shaping", self._shape)
        if self.given.native and time.monotonic() >= self.free_at:
            self.free_at = time.monotonic() + LEAK_SECONDS
            self._try("leaks", self.program.reconcile)
        self._tell(before)
        return PASS_SECONDS if self.ready else max(0.0, self.ask_at - time.monotonic())

    def _try(self, part: str, work: Callable[[], None]) -> None:
        """Does one part, so that none keeps another from being done."""
        try:
            work()
        except PASS_ERRORS as error:
            self.problems[part] = str(error)
        else:
            self.problems.pop(part, None)

    def _read_settings(self) -> None:
        given = settings.read(self.program.paths.settings)
        if given != self.given:
            self.given, self.trust = given, MetadataTrust(given.planned_pods, self.trust.taken)
            self.program.say(f"{self.program.paths.settings} has changed")

    def _ask(self) -> None:
        """Asks the metadata service, and decides when to ask again: soon where nothing is known yet, or its answer is to be heard again."""
        self.ask_at = time.monotonic() + (REQUEST_SECONDS if self.trust.taken else pause(self.failures))
        self.failures += 1
        if not self.trust.hear(imds.request_machine(self.program.paths.imds, list_links())):
            self.ask_at = time.monotonic() + REPEAT_SECONDS
            raise _unconfirmed(self.program.paths.imds)
        self.failures = 0
        self.ask_at = time.monotonic() + REQUEST_SECONDS

    def _put(self) -> None:
        if self.trust.taken is None:
            return
        self.program.ensure_network(self.given, self.trust.taken, self.trust.warnings())
        if not self.ready:
            self.ready = True
            self.program.say("ready")

    def _shape(self) -> None:
        if self.trust.taken is not None and self.ready:
            self.program.ensure_shaping(self.given, self.trust.taken)

    def _tell(self, before: Mapping[str, str]) -> None:
        """Says a problem once, not at every pass, and notes it for the status."""
        problems = tuple(self.problems.values())
        # READY=1 every time: one that was lost would keep the kubelet from starting, and one too many is nothing to systemd.
        ready = ("READY=1",) if self.ready else ()
        systemd.notify(*ready, "WATCHDOG=1", f"STATUS={problems[0] if problems else 'everything in place'}")
        now = status.read(self.program.paths.state)
        if now.problems != problems:
            status.write(self.program.paths.state, dataclasses.replace(now, problems=problems))
        for part, problem in self.problems.items():
            if before.get(part) != problem:
                self.program.say(f"problem: {problem}")
        for part in before.keys() - self.problems.keys():
            self.program.say(f"{part}: well again")


def _unconfirmed(url: str) -> NodeNetworkError:
    return NodeNetworkError(url, "fewer or other addresses than expected", f"the same answer {SETTLED} times in a row", imds.REMEDY)


def pause(failures: int) -> float:
    """Seconds to wait after so many failures before, up to 1, 2, 4, … 10: drawn, or machines that booted together would ask together."""
    return random.uniform(0.5, 1.0) * min(LONGEST_PAUSE_SECONDS, 2.0 ** min(failures, 10))
