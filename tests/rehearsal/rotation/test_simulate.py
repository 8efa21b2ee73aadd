"""Tests of simulated rotations: the production core against small modelled fleets."""

from datetime import time

import pytest

from lifecycle.rotation.calendar import Calendar, WeeklyWindow
from lifecycle.rotation.model import Load, NodeState, Step
from lifecycle.rotation.policy import Growth, Policy
from lifecycle.rotation.rotation import Rotation
from rehearsal.rotation.lower_bound import lower_bound, node_work
from rehearsal.rotation.modelled_fleet import HARDWARE, ModelledFleet
from rehearsal.rotation.population import Conditions, Population
from rehearsal.rotation.simulate import COLUMNS, Outcome, StalledError, Timeline, simulate
from tests.rehearsal.rotation.small_fleets import CALM, DEAF, STARTED, fleet, nodes, policy, population

PEOPLE = population([20, 20, 20], [range(8), range(20, 26), (30, 31, 41, 42)], Load.BALLOON)
RULES = policy(10, per_scale_set=4, canaries=1, growth=Growth(4, 3))


def run(people: Population, rules: Policy, one: ModelledFleet, seen: list[Step] | None = None) -> Outcome:
    run_nodes = nodes(people)
    core = Rotation(run_nodes, rules, float(STARTED))
    journal = (lambda _: None) if seen is None else seen.append
    return simulate(core, run_nodes, one, float(STARTED), rules.machines, journal)


def without_pools(outcome: Outcome) -> tuple[object, ...]:
    return outcome.finished, outcome.steps, outcome.work, outcome.losses.gpu_hours, outcome.started_at, outcome.unused


def test_a_rotation_ends_with_every_node_ready_within_its_budget_and_no_job_interrupted_twice() -> None:
    outcome = run(PEOPLE, RULES, fleet(PEOPLE))
    assert outcome.states[NodeState.READY] == 60
    assert outcome.most_unavailable == 10
    assert outcome.losses.interruptions == {"job-0": 1, "job-1": 1, "job-2": 1}
    assert outcome.losses.work == 0.0
    assert outcome.pools == {"gpu": outcome.finished}


def test_the_same_seed_gives_the_same_rotation() -> None:
    assert without_pools(run(PEOPLE, RULES, fleet(PEOPLE))) == without_pools(run(PEOPLE, RULES, fleet(PEOPLE)))
    other = population([20, 20, 20], [range(8), range(20, 26), (30, 31, 41, 42)], Load.BALLOON, seed=2)
    assert run(other, RULES, fleet(other)).finished != run(PEOPLE, RULES, fleet(PEOPLE)).finished


@pytest.mark.parametrize("conditions", [CALM, DEAF])
def test_no_rotation_is_shorter_than_the_bound(conditions: Conditions) -> None:
    one = fleet(PEOPLE, conditions)
    one.machines[3].fault = one.machines[50].fault = HARDWARE
    outcome = run(PEOPLE, RULES, one)
    assert outcome.states[NodeState.READY] == 60
    bound = lower_bound(node_work(PEOPLE, outcome.work, RULES), RULES, float(STARTED))
    assert 1.0 <= outcome.seconds / bound.seconds < 2.0
    busy = sum(outcome.work.values())
    unused = sum(outcome.unused.values())
    # Seconds out of service and unused ones together are the budget; an order that makes nodes wait in a state would add to them.
    assert busy + unused == pytest.approx(outcome.seconds * RULES.machines, rel=0.02)


def test_jobs_that_ignore_the_signal_lose_work_at_the_deadline() -> None:
    outcome = run(PEOPLE, RULES, fleet(PEOPLE, DEAF))
    assert outcome.losses.work > 18 * 8 * 3_600 / 3_600
    assert outcome.seconds > 3_600


def test_the_timeline_has_a_row_per_minute_and_counts_every_node_and_start() -> None:
    outcome = run(PEOPLE, RULES, fleet(PEOPLE))
    columns = outcome.timeline.columns
    assert tuple(columns) == COLUMNS
    assert outcome.timeline.rows == int(outcome.seconds // 60) + 2
    assert all(sum(columns[state][row] for state in NodeState) == 60 for row in range(outcome.timeline.rows))
    assert sum(columns["starts"]) == 60
    assert max(columns["unavailable"]) <= 10
    assert columns["lost_gpu_hours"][-1] == pytest.approx(outcome.losses.gpu_hours, rel=1e-4)
    assert Timeline(0.0).rows == 0


def test_the_journal_receives_every_transition_once() -> None:
    steps: list[Step] = []
    outcome = run(PEOPLE, RULES, fleet(PEOPLE), steps)
    assert sum(len(step.transitions) for step in steps) == outcome.transitions
    restored = Rotation(nodes(PEOPLE), RULES, float(STARTED))
    restored.replay(one for step in steps for one in step.transitions)
    assert restored.step(outcome.finished).finished


def test_a_stopped_rotation_ends_with_pending_nodes() -> None:
    one = fleet(PEOPLE, CALM.model_copy(update={"failing_share": 1.0}))
    outcome = run(PEOPLE, policy(10, failed_of=10, failed_share=0.2), one)
    assert "failed" in outcome.stopped
    assert outcome.states[NodeState.PENDING] > 0


def test_a_rotation_that_cannot_go_on_names_the_reason() -> None:
    people = population([4])
    never = policy(1, calendar=Calendar((WeeklyWindow(frozenset(), time(6), 1),)), give_up_after=1e9)
    with pytest.raises(StalledError, match=r"has not finished after 60 days .*\(4 pending\); the last reason is: no window is open"):
        run(people, never, fleet(people))
