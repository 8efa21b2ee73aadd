"""Bounds of rotation in machines, notes on gangs and freezes, days without an open window, and time zones."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from components.plan import azure_limits, rotation_bounds
from components.plan.closed_days import closed_days
from components.plan.limits import check
from components.plan.model import RegionPlan
from components.plan.region import plan_region
from components.plan.rotation_bounds import rotation_notes, share
from components.plan.time_zones import time_zone_remedy, time_zones
from components.spec.region import Region
from components.spec.tenancy import Day, Freeze, Window
from lifecycle.rotation import calendar
from stacks.load import REGIONS, load_catalog, region_names

CATALOG = load_catalog()
START = date(2026, 11, 2)
"""A Monday."""


def planned(name: str, rotation: dict[str, Any], **region: Any) -> RegionPlan:
    """Return the plan of a shipped region with keys of the first cluster's rotation, and of the region, replaced."""
    document = yaml.safe_load((REGIONS / f"{name}.yaml").read_text())
    document["clusters"][0]["rotation"] |= rotation
    return plan_region(Region.model_validate(document | region), CATALOG)


@pytest.mark.parametrize("name", region_names())
def test_the_rotation_policy_of_a_shipped_region_has_no_notes(name: str) -> None:
    assert list(rotation_notes(planned(name, {}))) == []


def test_shares_are_rounded_down_to_at_least_one_machine() -> None:
    assert [share(7_500, 5), share(24, 12), share(12, 5), share(19, 10)] == [375, 2, 1, 1]


def test_bounds_are_those_of_the_cluster_of_each_pool_and_of_each_allocation() -> None:
    plan = planned("southcentralus", {"share_per_day_percent": 10})
    first, frontier = plan.clusters[0], plan.clusters[2]
    assert (rotation_bounds.cluster_bound(first), rotation_bounds.starts_per_day(first)) == (375, 750)
    assert [rotation_bounds.pool_bound(first, pool) for pool in first.pools] == [None]
    assert [rotation_bounds.pool_bound(frontier, pool) for pool in frontier.pools] == [500, 180, 67, 2]
    assert [rotation_bounds.allocation_bound(first, one) for one in first.spec.tenancy.allocations] == [540, 216, 108]


def test_one_note_of_a_pool_mentions_each_bound_that_is_too_small_and_names_the_smallest() -> None:
    budget = {"percent": 5, "machines": 50, "per_scale_set": 10, "per_pool_percent": 15, "per_team_percent": 20}
    pool, alignment, multimodal = rotation_notes(planned("swedencentral", {"budget": budget}))
    assert pool.path == ("clusters", 0, "rotation", "budget", "machines")
    assert pool.text.endswith(
        "gangs of more than 50 machines are rotated only when idle; "
        "raise percent to at least 9, and raise machines to at least 100, and raise per_pool_percent to at least 17"
    )
    assert alignment.text.startswith("20 % of the 400 machines of team alignment in pool h100 may be unavailable, that is 80, and a gang ")
    assert multimodal.text.endswith("gangs of more than 40 machines are rotated only when idle; raise per_team_percent to at least 50")


def test_the_remedies_of_gang_notes_lead_to_a_policy_without_notes() -> None:
    budget = {"percent": 9, "machines": 100, "per_scale_set": 10, "per_pool_percent": 17, "per_team_percent": 50}
    assert list(rotation_notes(planned("swedencentral", {"budget": budget}))) == []


def test_a_gang_larger_than_half_of_its_cluster_cannot_be_allowed_and_the_remedy_says_so() -> None:
    document = yaml.safe_load((REGIONS / "swedencentral.yaml").read_text())
    cluster = document["clusters"][0]
    cluster["pools"] = [cluster["pools"][0] | {"nodes": 150}]
    cluster["tenancy"]["allocations"] = []
    cluster["rotation"]["budget"] = {"percent": 50, "machines": 150, "per_scale_set": 10}
    (note,) = rotation_notes(plan_region(Region.model_validate(document), CATALOG))
    assert note.text.endswith(
        "gangs of more than 75 machines are rotated only when idle; percent is at most 50, so lower largest_gang to 75"
    )


def test_calls_count_the_clusters_that_rotate_at_once_and_those_with_the_most_calls() -> None:
    def calls(at_once: int) -> float:
        plan = planned("southcentralus", {"azure_calls_per_minute": 200}, clusters_rotating_at_once=at_once)
        (row,) = (row for row in check(plan) if row.limit == azure_limits.INSTANCE_CALLS.name)
        return row.use

    assert [calls(at_once) for at_once in (1, 2, 3, 32)] == [200, 350, 500, 500]


def test_calls_of_clusters_in_different_subscriptions_are_not_added() -> None:
    document = yaml.safe_load((REGIONS / "southcentralus.yaml").read_text()) | {"clusters_rotating_at_once": 3}
    document["clusters"][1]["subscription"] = "11111111-2222-4333-8444-555555555555"
    rows = check(plan_region(Region.model_validate(document), CATALOG))
    assert [row.use for row in rows if row.limit == azure_limits.INSTANCE_CALLS.name] == [300, 150]


days = st.integers(0, 60).map(lambda number: START + timedelta(days=number))
freezes = st.lists(
    st.tuples(days, st.integers(0, 20)).map(
        lambda pair: Freeze(first=pair[0], last=min(pair[0] + timedelta(days=pair[1]), START + timedelta(days=60)), reason="test")
    ),
    max_size=5,
)
windows = st.lists(
    st.builds(
        Window,
        days=st.sets(st.sampled_from(Day), min_size=1, max_size=3).map(tuple),
        opens=st.sampled_from(["00:00", "06:30", "20:00", "23:59"]),
        hours=st.integers(1, 24),
    ),
    max_size=2,
)


@given(windows=windows, freezes=freezes)
def test_closed_days_are_those_on_which_the_calendar_of_a_run_has_no_open_moment(windows: list[Window], freezes: list[Freeze]) -> None:
    numbers = {day: number for number, day in enumerate(Day)}
    run = calendar.Calendar(
        tuple(
            calendar.WeeklyWindow(frozenset(numbers[day] for day in one.days), time.fromisoformat(one.opens), one.hours) for one in windows
        ),
        tuple(calendar.Freeze(one.first, one.last, one.reason) for one in freezes),
    )

    def opens(day: date) -> bool:
        midnight = datetime.combine(day, time(), UTC).timestamp()
        is_open, changes = run.span(midnight)
        return is_open or changes < midnight + 86_400

    found = closed_days(windows, freezes)
    covered = [span.first + timedelta(days=number) for span in found for number in range(span.days)]
    assert len(covered) == len(set(covered))
    assert not any(opens(day) for day in covered)
    assert all(opens(span.first - timedelta(days=1)) and opens(span.last + timedelta(days=1)) for span in found)
    assert {freeze.first for freeze in freezes} <= set(covered)
    assert all(freezes[span.freeze].last == max(one.last for one in freezes if span.first <= one.first <= span.last) for span in found)


def test_a_freeze_outlasts_runs_only_with_the_days_around_it_on_which_no_window_opens() -> None:
    freeze = [{"first": "2026-12-21", "last": "2027-01-01", "reason": "holidays"}]
    (note,) = rotation_notes(planned("dev", {"freeze": freeze, "give_up_after_days": 15}))
    assert note.path == ("clusters", 0, "rotation", "freeze", 0)
    assert note.text == (
        "no window opens from 2026-12-18 to 2027-01-03, 17 days, and give_up_after_days is 15: a run that begins just before then blocks "
        "pending machines; raise give_up_after_days to at least 18, or begin runs after it"
    )
    assert not list(rotation_notes(planned("dev", {"freeze": freeze, "give_up_after_days": 18})))
    assert not list(rotation_notes(planned("dev", {"freeze": freeze, "give_up_after_days": 15, "windows": []})))


def test_time_zones_are_those_of_the_package_and_not_those_of_this_machine() -> None:
    assert {"UTC", "America/Chicago", "Europe/Stockholm"} <= set(time_zones())
    assert not {"localtime", "Factory", "posixrules"} & set(time_zones())


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("stockholm", "did you mean Europe/Stockholm?"),
        ("New York", "did you mean America/New_York?"),
        ("utc", "did you mean UTC?"),
        ("US/Centrall", "did you mean US/Central?"),
        ("CST", "write UTC, or Area/City of the place whose local time you mean: America/Chicago"),
        ("", "write UTC, or Area/City of the place whose local time you mean: America/Chicago"),
    ],
)
def test_a_wrong_time_zone_leads_to_the_nearest_or_to_the_form(value: str, remedy: str) -> None:
    assert time_zone_remedy(value) == remedy
