"""Tests of the budgets and rates of a rotation."""

from __future__ import annotations

from lifecycle.rotation.budget import CLUSTER, DOMAINS, Ledger, Need, Place, Rate
from lifecycle.rotation.policy import Policy


def ledger(**bounds: object) -> Ledger:
    """Return a ledger of eight machines: a0..a3 in scale set a, b0..b3 in b; even ones belong to team t."""
    defaults: dict[str, object] = {"machines": 8, "per_scale_set": 1, "scale_sets_at_once": 1, "deadlines": {}}
    found = Ledger(Policy(**(defaults | bounds)))  # type: ignore[arg-type]
    for scale_set in "ab":
        for number in range(4):
            found.record(f"{scale_set}{number}", Place(scale_set, f"pool-{scale_set}", "" if number % 2 else "t"), False)
    return found


def lacks(found: Ledger, *names: str, gang: bool = False) -> list[str]:
    """Return the keys of the budgets that a start would exceed."""
    return [one.key for one in found.shortages(Need.of(found.places, names), gang=gang)]


def down(found: Ledger, *names: str) -> None:
    """Make machines unavailable."""
    for name in names:
        found.record(name, found.places[name], True)


def test_a_start_up_to_the_clusters_budget_is_allowed_and_one_more_is_not() -> None:
    found = ledger(machines=2, per_scale_set=4)
    assert lacks(found, "a0", "a1") == []
    assert lacks(found, "a0", "a1", "a2") == [CLUSTER]
    down(found, "b0")
    assert lacks(found, "a0", "a1") == [CLUSTER]


def test_pools_teams_and_scale_sets_have_their_own_budgets() -> None:
    found = ledger(pools={"pool-a": 2}, teams={"t": 1}, per_scale_set=3)
    assert lacks(found, "a0", "b2") == ["team t"]
    assert lacks(found, "a1", "a3", "a0") == ["pool pool-a"]
    assert lacks(found, "b1", "b3") == []
    assert lacks(ledger(), "a1", "a3") == ["scale set a"]


def test_a_gang_may_take_a_scale_set_down_and_only_as_many_at_once() -> None:
    found = ledger()
    assert lacks(found, "a0", "a1", gang=True) == []
    assert lacks(found, "a0", "a1", "b0", "b1", gang=True) == [DOMAINS]
    down(found, "a0", "a1")
    assert found.is_down("a")
    assert lacks(found, "b0", "b1", gang=True) == [DOMAINS]
    assert lacks(found, "a2", "a3", gang=True) == []


def test_a_machine_that_is_unavailable_costs_nothing_and_counts_once() -> None:
    found = ledger(machines=1)
    down(found, "a0", "a0")
    assert found.total == 1
    assert lacks(found, "a0") == []
    assert lacks(found, "a0", "a1") == [CLUSTER, "scale set a"]


def test_a_machine_that_changes_its_team_is_counted_in_the_new_one() -> None:
    found = ledger(teams={"t": 1})
    down(found, "a0")
    assert lacks(found, "b2") == ["team t"]
    found.record("a0", Place("a", "pool-a", "other"), True)
    assert lacks(found, "b2") == []
    assert found.teams["other"] == found.total == 1


def test_faults_beyond_the_budget_leave_a_negative_rest() -> None:
    found = ledger(machines=1)
    down(found, "a0", "b0")
    assert found.free == -1


def test_a_rate_gives_a_minutes_worth_at_once_and_then_its_tokens() -> None:
    rate = Rate.full(6, 6, 0.0)
    assert rate.wait(6, 0.0) == 0
    rate.take(6, 0.0)
    assert rate.wait(1, 0.0) == 10
    assert rate.wait(1, 10.0) == 0
    assert rate.wait(6, 1_000.0) == 0


def test_a_request_larger_than_a_minutes_worth_leaves_a_debt() -> None:
    rate = Rate.full(2, 2, 0.0)
    assert rate.wait(5, 0.0) == 0
    rate.take(5, 0.0)
    assert rate.wait(1, 0.0) == 120


def test_a_clock_that_is_set_back_does_not_stop_a_rate() -> None:
    rate = Rate.full(1, 1, 10_000.0)
    rate.take(1, 10_000.0)
    assert rate.wait(1, 5_000.0) == 60
    assert rate.wait(1, 5_060.0) == 0
