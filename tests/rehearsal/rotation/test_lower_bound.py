"""Tests of the lower bound: exhaustive search on small fleets never finds a shorter rotation."""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time
from functools import cache

import pytest

from lifecycle.rotation.calendar import Calendar, WeeklyWindow
from lifecycle.rotation.model import Load
from lifecycle.rotation.policy import Growth, Policy
from rehearsal.rotation.lower_bound import NodeWork, lower_bound
from tests.rehearsal.rotation.small_fleets import policy

MONDAY = datetime(2026, 11, 23, 6, tzinfo=UTC).timestamp()
FREE = policy(2)


def shortest(nodes: Sequence[NodeWork], rules: Policy, opens: Callable[[float], float] = lambda at: at) -> float:
    """Return the duration of the best order of starts, by trying all of them; opens returns the next time at which starts are allowed.

    A gang starts as a whole. The nodes are of one pool.
    """
    units: dict[str, list[int]] = {}
    for number, one in enumerate(nodes):
        units.setdefault(one.gang or one.name, []).append(number)
    members = list(units.values())
    smallest = min(map(len, members))

    def fits(unit: list[int], flying: tuple[tuple[float, int], ...], verdicts: int) -> bool:
        used = Counter(nodes[number].scale_set for _, number in flying)
        window = (
            rules.canaries if verdicts < rules.canaries else rules.growth.first + (rules.growth.factor - 1) * (verdicts - rules.canaries)
        )
        if len(flying) + len(unit) > min(rules.machines, max(window, smallest)):
            return False
        if not nodes[unit[0]].gang:
            return used[nodes[unit[0]].scale_set] < rules.per_scale_set
        used.update(nodes[number].scale_set for number in unit)
        return sum(count > rules.per_scale_set for count in used.values()) <= rules.scale_sets_at_once

    @cache
    def best(now: float, pending: frozenset[int], flying: tuple[tuple[float, int], ...]) -> float:
        if not pending:
            return max((end for end, _ in flying), default=now)
        verdicts = len(nodes) - len(flying) - sum(len(members[unit]) for unit in pending)
        found = math.inf
        if opens(now) == now:
            for unit in pending:
                if fits(members[unit], flying, verdicts):
                    started = [(now + nodes[number].seconds, number) for number in members[unit]]
                    found = min(found, best(now, pending - {unit}, tuple(sorted([*flying, *started]))))
        following = flying[0][0] if flying else math.inf
        following = min(following, opens(now)) if opens(now) > now else following
        if math.isfinite(following):
            left = tuple(one for one in flying if one[0] > following)
            found = min(found, best(following, pending, left))
        return found

    return best(0.0, frozenset(range(len(members))), ())


def drawn(draw: random.Random, most: int, unit: float) -> list[NodeWork]:
    """Return 2 to most nodes with whole durations; some of them are in gangs."""
    nodes, count = [], draw.randint(2, most)
    while len(nodes) < count:
        size = draw.choice([1, 1, 1, 2, 3])
        gang = f"gang-{len(nodes)}" if size > 1 else ""
        for _ in range(min(size, count - len(nodes))):
            name = f"node-{len(nodes)}"
            nodes.append(NodeWork(name, f"set-{draw.randint(0, 1)}", "gpu", "", draw.randint(1, 5) * unit, gang))
    return nodes


def test_no_order_of_starts_is_shorter_than_the_bound() -> None:
    draw, equal, compared = random.Random(5), 0, 0  # noqa: S311
    for _ in range(250):
        nodes = drawn(draw, 6, 1.0)
        rules = policy(
            draw.choice([2, 3, 4]),
            per_scale_set=draw.choice([1, 2, 4]),
            scale_sets_at_once=draw.choice([1, 2]),
            canaries=draw.choice([0, 0, 1, 2]),
            growth=draw.choice([Growth(1, 2), Growth(2, 3), Growth(10)]),
        )
        optimum = shortest(nodes, rules)
        bound = lower_bound(nodes, rules, MONDAY)
        assert bound.seconds <= optimum + 1e-6, (nodes, rules, bound)
        if math.isfinite(optimum):
            compared += 1
            equal += bound.seconds == optimum
    assert compared > 180
    assert equal > 25


def test_no_order_of_starts_in_weekly_windows_is_shorter_than_the_bound() -> None:
    draw = random.Random(6)  # noqa: S311
    for _ in range(25):
        hours = draw.choice([1, 2])
        calendar = Calendar((WeeklyWindow(frozenset(range(7)), time(draw.choice([6, 7])), hours),))
        nodes = drawn(draw, 6, 1_800.0)
        rules = policy(draw.choice([2, 3]), calendar=calendar, per_scale_set=3)

        def opens(at: float, calendar: Calendar = calendar) -> float:
            is_open, changes = calendar.span(MONDAY + at)
            return at if is_open else changes - MONDAY

        optimum = shortest(nodes, rules, opens)
        bound = lower_bound(nodes, rules, MONDAY)
        assert bound.seconds <= optimum + 1e-6, (nodes, rules, bound)


def singles(*seconds: float, scale_set: str = "set", load: Load = Load.EMPTY) -> list[NodeWork]:
    return [NodeWork(f"node-{number}", scale_set, "gpu", "team", one, load=load) for number, one in enumerate(seconds)]


@pytest.mark.parametrize(
    ("nodes", "rules", "seconds", "reason"),
    [
        (singles(*[600.0] * 6), policy(2), 1_800.0, "cluster"),
        (singles(*[600.0] * 6), policy(3, pools={"gpu": 2}), 1_800.0, "pool gpu"),
        (singles(*[600.0] * 6), policy(3, teams={"team": 1}), 3_600.0, "team team"),
        (singles(*[600.0] * 6), policy(3, per_scale_set=1), 3_600.0, "scale set"),
        (singles(600.0, 600.0, 3_000.0), policy(3), 3_000.0, "longest node"),
        (singles(*[600.0] * 6, load=Load.NORMAL), policy(6, idle_only_until=MONDAY + 900.0), 1_500.0, "wait for jobs"),
        (singles(*[60.0] * 40), policy(40, starts_per_minute=2), 38 * 30 + 60.0, "starts per minute"),
        (singles(*[60.0] * 40), policy(40, starts_per_day=20), 18 * 3_600 + 60.0, "starts per day"),
    ],
)
def test_the_bound_is_reached_where_one_limit_decides(nodes: list[NodeWork], rules: Policy, seconds: float, reason: str) -> None:
    bound = lower_bound(nodes, rules, MONDAY)
    assert (bound.seconds, bound.reason) == (seconds, reason)


def test_gangs_that_take_scale_sets_down_follow_each_other() -> None:
    nodes = [NodeWork(f"node-{number}", f"set-{number // 4}", "gpu", "", 600.0, f"gang-{number // 4}") for number in range(12)]
    bound = lower_bound(nodes, policy(12, per_scale_set=1, scale_sets_at_once=1), MONDAY)
    assert (bound.seconds, bound.reason) == (1_800.0, "scale sets at once")


def test_canaries_and_growth_lengthen_the_rotation() -> None:
    nodes = singles(*[600.0] * 31)
    assert lower_bound(nodes, policy(15), MONDAY).seconds == pytest.approx(31 * 600 / 15)
    grown = policy(15, canaries=1, growth=Growth(first=2, factor=2))
    # 1, then 2, 4, 8 and 15 nodes at once: the last one starts in the fifth round.
    assert lower_bound(nodes, grown, MONDAY).seconds == pytest.approx(5 * 600, abs=60)
    assert shortest(singles(*[600.0] * 7), policy(6, canaries=1, growth=Growth(2, 2))) == 3 * 600


def test_a_closed_calendar_never_ends() -> None:
    never = Calendar((WeeklyWindow(frozenset(), time(6), 1),))
    assert lower_bound(singles(60.0), policy(2, calendar=never), MONDAY).seconds == math.inf


def test_a_long_rotation_continues_in_the_next_window() -> None:
    daily = Calendar((WeeklyWindow(frozenset(range(7)), time(6), 1),))
    bound = lower_bound(singles(*[1_800.0] * 10), policy(2, calendar=daily), MONDAY)
    # Four nodes end in the hour of the window and two after its close, of which the last starts: the other four wait for a day.
    assert bound.seconds == pytest.approx(86_400 + 3_600, abs=1)
