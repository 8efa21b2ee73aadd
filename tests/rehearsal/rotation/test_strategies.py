"""Tests of the strategies that a rotation is compared with: the same budgets and lifecycle, in another order."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import pytest

from lifecycle.rotation.model import Load, NodeState, RunNode
from lifecycle.rotation.policy import Growth, Policy
from lifecycle.rotation.rotation import Rotation
from rehearsal.rotation.simulate import Outcome, Strategy, simulate
from rehearsal.rotation.strategies import BarrierWaves, NodeOrder
from tests.rehearsal.rotation.small_fleets import CALM, DEAF, STARTED, fleet, nodes, policy, population

PEOPLE = population([40, 40], [range(0, 16, 2), range(1, 24, 3), range(40, 52)], Load.BALLOON)
RULES = policy(12, per_scale_set=6, canaries=1, growth=Growth(4, 3), pools={"gpu": 12})
Make = Callable[[Sequence[RunNode], Policy, float], Strategy]


def run(make: Make, conditions: object = CALM) -> tuple[Outcome, Strategy]:
    run_nodes = nodes(PEOPLE)
    strategy = make(run_nodes, RULES, float(STARTED))
    one = fleet(PEOPLE, DEAF if conditions is DEAF else CALM)
    return simulate(strategy, run_nodes, one, float(STARTED), RULES.machines), strategy


@pytest.mark.parametrize("make", [Rotation, BarrierWaves, NodeOrder, partial(NodeOrder, signals=False)])
def test_every_strategy_makes_all_nodes_ready_within_the_budget(make: Make) -> None:
    outcome, _ = run(make)
    assert outcome.states[NodeState.READY] == 80
    assert outcome.most_unavailable <= 12


def test_waves_begin_with_the_canaries_grow_and_are_slower() -> None:
    outcome, waves = run(BarrierWaves)
    assert isinstance(waves, BarrierWaves)
    assert waves.waves[:2] == [1, 4]
    assert sum(waves.waves) == 80
    assert max(waves.waves) == 12
    starts = sorted(set(outcome.started_at.values()))
    assert 1 + sum(later - earlier > 60 for earlier, later in pairwise(starts)) == len(waves.waves)
    assert outcome.losses.interruptions == dict.fromkeys(("job-0", "job-1", "job-2"), 1)
    assert outcome.seconds > run(Rotation)[0].seconds


def test_node_order_starts_nodes_by_name_and_lets_gangs_wait_for_longer() -> None:
    outcome, _ = run(NodeOrder)
    first = sorted(name for name in outcome.started_at if name.startswith("set-0"))
    assert [outcome.started_at[name] for name in first] == sorted(outcome.started_at[name] for name in first)
    assert outcome.losses.gpu_hours > 1.5 * run(Rotation)[0].losses.gpu_hours


def test_node_order_without_signals_evicts_at_once_and_loses_the_work_since_the_last_checkpoint() -> None:
    with_signals, _ = run(NodeOrder)
    without, _ = run(partial(NodeOrder, signals=False))
    assert with_signals.losses.work == 0.0
    assert without.losses.work > 28 * 8 * 600 / 3_600


def test_node_order_waits_for_the_deadline_of_a_job_that_ignores_the_signal() -> None:
    outcome, _ = run(NodeOrder, DEAF)
    assert outcome.losses.work > 0.0
    assert outcome.seconds > 3_600
