"""Property tests of the decision core: thousands of short histories in an adversarial world, and defects that these must detect."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifecycle.rotation.model import NodeState
from tests.support.rotation_world.defect_table import DEFECTS
from tests.support.rotation_world.defects import Defect, detected_after
from tests.support.rotation_world.history import run_history
from tests.support.rotation_world.scenario import RANGES, Scenario

HISTORIES = 2_000
MOST_HISTORIES = 150
"""Histories in which a defect must be detected."""
SCENARIOS = st.one_of(
    st.builds(Scenario, **{name: st.integers(*bounds) for name, bounds in RANGES.items()}),
    st.integers(0, 2**32).map(Scenario.drawn),
)
"""Small scenarios, which Hypothesis reduces further, and scenarios of any size."""


def test_every_history_keeps_each_rule() -> None:
    seen = Counter[str]()

    # The same histories in each run, so that a failure comes from a change. bench.rotation_histories runs many more.
    @settings(max_examples=HISTORIES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(SCENARIOS)
    def keeps_each_rule(scenario: Scenario) -> None:
        outcome = run_history(scenario)
        seen.update(histories=1, steps=outcome.steps, starts=outcome.starts, crashes=outcome.crashes)
        seen.update({state.value: count for state, count in outcome.ended.items()})

    keeps_each_rule()
    assert seen["histories"] >= HISTORIES
    # The histories are worth their name: nodes start, fail, are given up and removed, and processes end.
    assert seen["starts"] > HISTORIES
    assert seen["crashes"] > HISTORIES / 2
    assert all(seen[state] > HISTORIES / 20 for state in (NodeState.READY, NodeState.REMOVED, NodeState.FAILED, NodeState.BLOCKED)), seen


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda one: one.name.replace(" ", "-"))
def test_the_histories_detect(defect: Defect) -> None:
    assert detected_after(defect, MOST_HISTORIES) is not None, f"{MOST_HISTORIES} histories keep every rule"


def test_a_defect_whose_text_is_gone_is_an_error() -> None:
    with pytest.raises(ValueError, match="occurs 0 times instead of once; adapt it"):
        detected_after(Defect("none", "budget", "no such text", ""), 1)
