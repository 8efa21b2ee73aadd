"""Tests of the times at which a rotation may start on nodes."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.rotation.calendar import Calendar, Freeze, WeeklyWindow
from tests.support.rotation_world.rules import is_open

EVERY_DAY = frozenset(range(7))
HOUR, DAY = 3_600.0, 86_400.0


def at(text: str) -> float:
    """Return a time of UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_without_windows_and_freezes_it_is_always_open() -> None:
    assert Calendar().span(at("2026-11-23T12:00")) == (True, float("inf"))


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_opens() -> None:
    nights = Calendar((WeeklyWindow(frozenset({4}), time(22), 6),))
    assert nights.span(at("2026-11-27T21:00")) == (False, at("2026-11-27T22:00"))
    assert nights.span(at("2026-11-28T01:00")) == (True, at("2026-11-28T04:00"))
    assert nights.span(at("2026-11-28T04:00")) == (False, at("2026-12-04T22:00"))


def test_windows_that_touch_are_one_span() -> None:
    both = Calendar((WeeklyWindow(EVERY_DAY, time(8), 4), WeeklyWindow(EVERY_DAY, time(12), 2)))
    assert both.span(at("2026-11-23T09:00")) == (True, at("2026-11-23T14:00"))


def test_a_window_opens_at_its_local_time_in_summer_and_winter() -> None:
    berlin = Calendar((WeeklyWindow(EVERY_DAY, time(9), 1),), (), "Europe/Berlin")
    assert berlin.span(at("2026-07-01T06:00")) == (False, at("2026-07-01T07:00"))
    assert berlin.span(at("2026-12-01T06:00")) == (False, at("2026-12-01T08:00"))


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_a_window_over_a_change_of_the_clock_lasts_its_elapsed_hours(day: str) -> None:
    berlin = Calendar((WeeklyWindow(EVERY_DAY, time(1), 4),), (), "Europe/Berlin")
    opened = berlin.span(at(f"{day}T00:30") - 3 * HOUR)[1]
    assert berlin.span(opened) == (True, opened + 4 * HOUR)


def test_a_window_at_a_skipped_local_time_opens_one_hour_later() -> None:
    berlin = Calendar((WeeklyWindow(EVERY_DAY, time(2, 30), 1),), (), "Europe/Berlin")
    assert berlin.span(at("2026-03-29T00:00")) == (False, at("2026-03-29T01:30"))


def test_a_freeze_contains_both_its_local_days() -> None:
    freeze = Freeze(date(2026, 12, 24), date(2026, 12, 26), "holidays")
    kolkata = Calendar((), (freeze,), "Asia/Kolkata")
    begins, ends = at("2026-12-23T18:30"), at("2026-12-26T18:30")
    assert kolkata.span(begins - 1) == (True, begins)
    assert kolkata.span(begins) == (False, ends)
    assert kolkata.freeze(begins) == freeze
    assert kolkata.freeze(ends) is None


def test_a_freeze_cuts_a_window_over_midnight() -> None:
    nights = Calendar((WeeklyWindow(EVERY_DAY, time(22), 6),), (Freeze(date(2026, 11, 24), date(2026, 11, 24), "launch"),))
    assert nights.span(at("2026-11-23T23:00")) == (True, at("2026-11-24T00:00"))
    assert nights.span(at("2026-11-24T01:00")) == (False, at("2026-11-25T00:00"))


def test_a_calendar_that_never_opens_has_no_next_time() -> None:
    frozen = Calendar((), (Freeze(date(2026, 1, 1), date(2030, 1, 1), "closed"),))
    assert frozen.span(at("2026-06-01T00:00")) == (False, float("inf"))


def test_tomorrow_is_the_next_local_midnight() -> None:
    assert Calendar(time_zone="America/Los_Angeles").tomorrow(at("2026-11-23T07:59")) == at("2026-11-23T08:00")


@given(
    st.lists(st.builds(WeeklyWindow, st.frozensets(st.integers(0, 6), min_size=1), st.times(), st.integers(1, 24)), min_size=1, max_size=3),
    st.lists(st.integers(0, 20), max_size=2),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/Los_Angeles", "Australia/Lord_Howe"]),
    st.floats(0, 20),
)
def test_a_span_agrees_with_each_moment(windows: list[WeeklyWindow], frozen: list[int], zone: str, days: float) -> None:
    freezes = tuple(Freeze(date(2026, 3, 20 - day % 15), date(2026, 3, 21), "frozen") for day in frozen)
    calendar = Calendar(tuple(windows), freezes, zone)
    now = at("2026-03-15T00:00") + days * DAY
    opened, changes = calendar.span(now)
    assert opened == is_open(calendar, now)
    if changes < now + 30 * DAY:
        assert is_open(calendar, (now + changes) / 2) == opened
        assert is_open(calendar, changes) != opened
        assert is_open(calendar, changes - 0.001) == opened
