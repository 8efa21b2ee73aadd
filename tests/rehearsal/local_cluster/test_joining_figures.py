"""Figures of a join, computed from its counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rehearsal.local_cluster.joining.figures import NodeFailure, Tally, joined, percentile, step_figures


@given(st.lists(st.floats(0, 100), min_size=1, max_size=300), st.floats(0.01, 1.0))
def test_a_percentile_is_a_value_that_at_least_that_share_does_not_exceed(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9
    assert sum(value < found for value in values) < share * len(values) + 1e-9


def test_figures_of_nothing_are_zero() -> None:
    assert step_figures([]) == step_figures(()) == step_figures([0.0][:0])
    assert (step_figures([]).count, step_figures([]).p99) == (0, 0.0)


def test_a_join_tells_its_steps_in_their_order_and_what_was_refused() -> None:
    tally = Tally()
    for number in range(100):
        tally.step("client request", float(number))
    tally.step("node", 7.0)
    tally.mutating.extend([0.1, 0.2])
    tally.statuses.update({429: 3, 201: 2})
    failure = NodeFailure("a", "node", 403, "no")
    found = joined(tally, 9.0, 1, (failure,), 0.5)
    assert list(found.steps) == ["client request", "node"]
    assert (found.steps["client request"].p50, found.steps["client request"].p99, found.steps["client request"].longest) == (
        49.0,
        98.0,
        99.0,
    )
    assert (found.refused, found.mutating.count, found.failures) == (3, 2, (failure,))
