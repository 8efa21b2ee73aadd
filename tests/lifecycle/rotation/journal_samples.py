"""A small run and its journal, for tests of the journal and its stores."""

from __future__ import annotations

import sys
from datetime import date, time
from pathlib import Path

from components.spec.tenancy import Replacement
from lifecycle.rotation.calendar import Calendar, Freeze, WeeklyWindow
from lifecycle.rotation.journal import RunStart
from lifecycle.rotation.journal_file import JournalFile
from lifecycle.rotation.journal_records import Target
from lifecycle.rotation.journal_writer import JournalWriter
from lifecycle.rotation.model import Action, ActionKind, Load, NodeState, RunNode, Step, Task, Transition
from lifecycle.rotation.policy import Policy

STARTED = 1_790_000_000.25
FORWARD = (
    NodeState.CORDONED,
    NodeState.DRAINING,
    NodeState.DRAINED,
    NodeState.REPLACING,
    NodeState.JOINING,
    NodeState.PREFLIGHT,
)
AGAIN = NodeState.DRAINED
"""State after a failed preflight, from which a test's node can be replaced any number of times."""


class OwnLease:
    """Lease that this process holds until a test takes it away."""

    lost: Exception | None = None

    def check_held(self) -> None:
        if self.lost is not None:
            raise self.lost


def policy() -> Policy:
    """Return a policy in which every field has a value of its own."""
    return Policy(
        machines=12,
        per_scale_set=3,
        scale_sets_at_once=2,
        deadlines={Load.LOW: 0.0, Load.NORMAL: 600.0, Load.HIGH: 3_600.5},
        pools={"gpu": 9},
        teams={"vision": 4},
        calendar=Calendar(
            (WeeklyWindow(frozenset({0, 4}), time(22, 30), 7),),
            (Freeze(date(2026, 12, 20), date(2027, 1, 3), "holidays"),),
            "Europe/Berlin",
        ),
        idle_only_until=STARTED + 60,
        method=Replacement.REPLACE,
    )


def run_start(count: int = 4) -> RunStart:
    """Return a run of nodes in two scale sets."""
    nodes = tuple(
        RunNode(f"gpu-{number:04d}", f"gpu-{number % 2}", "gpu", "older image", Task.REMOVE if number == 1 else Task.ROTATE)
        for number in range(count)
    )
    return RunStart("r1", "dev-0", "dev", STARTED, "ada", {"gpu": Target(image="gpu@7", boot_digest="ab" * 16)}, policy(), nodes)


def step(*transitions: Transition, actions: tuple[Action, ...] = (), stopped: str = "", finished: bool = False) -> Step:
    """Return a step of the decision core."""
    return Step(transitions, actions, (), None, stopped, finished)


def walk(number: int, node: str = "gpu-0000") -> Transition:
    """Return transition `number` of a node whose preflight fails again and again, so that a journal can have any length."""
    cycle = (*FORWARD[3:], AGAIN)
    to = FORWARD[number] if number < 3 else cycle[(number - 3) % len(cycle)]
    return Transition(node, to, STARTED + number, f"cause {number}", attempt=1 + number // 4)


def write_until_killed(writer: JournalWriter) -> None:
    """Append steps, and print the number of each confirmed one; the step's action is that print."""
    print("ready", flush=True)
    while True:
        number = len(writer.journal.transitions)
        action = Action(ActionKind.CORDON, ("gpu-0000",), str(number))
        writer.carry_out(step(walk(number), actions=(action,)), STARTED + number, lambda done: print(done.reason, flush=True))


def _main(path: Path) -> None:
    store = JournalFile.open(path)
    write_until_killed(JournalWriter.proceed(store, OwnLease(), "dev-0"))


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
