"""Terminal and report show limits in the same order and scope, and mark the same rows as tight."""

from __future__ import annotations

import itertools

import pytest

from components.plan.limit import Limit, LimitRow, compare, ordered, tight, tightest
from components.plan.limits import check
from rehearsal.report.limit_lines import limit_lines
from stacks.load import load_plan, region_names

LIMIT = Limit("things", 500, "things", "https://example.com", "", "")


@pytest.mark.parametrize("name", region_names())
def test_terminal_and_report_name_the_same_place_of_every_limit(name: str) -> None:
    rows = check(load_plan(name))
    lines = limit_lines(rows)
    reported = {line.row.limit: line.row.where for line in (*lines.measured, *lines.rules)}
    first: dict[str, str] = {}
    for item in tightest(rows):
        if item.bound is not None:
            first.setdefault(item.limit, item.where)
    assert reported == first


def test_of_two_equal_places_the_first_by_name_is_told_in_whatever_order_they_come() -> None:
    rows = [compare(LIMIT, where, 450) for where in ("research-a", "frontier/a100", "frontier")]
    for shuffled in itertools.permutations(rows):
        assert [item.where for item in tightest(shuffled)] == ["frontier"]
        assert [line.row.where for line in limit_lines(shuffled).measured] == ["frontier"]


@pytest.mark.parametrize(("use", "expected"), [(450, False), (450.001, True), (451, True), (500, True), (501, False), (0, False)])
def test_tight_is_less_than_a_tenth_of_headroom_and_not_broken(use: float, expected: bool) -> None:
    item = compare(LIMIT, "here", use)
    assert tight(item) is expected
    (line,) = (*limit_lines([item]).measured, *limit_lines([item]).broken)
    assert (line.look == "tight") is expected


def test_broken_rows_come_first_and_all_of_them() -> None:
    rows: list[LimitRow] = [compare(LIMIT, "a", 499), compare(LIMIT, "c", 600), compare(LIMIT, "b", 501), compare(LIMIT, "d", 1)]
    assert [item.where for item in ordered(rows)] == ["c", "b", "a", "d"]
    assert [item.where for item in tightest(rows)] == ["c", "b", "a"]
