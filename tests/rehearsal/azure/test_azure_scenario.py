"""A scenario says what it may and nothing else; durations come from it and from the seed alone."""

from __future__ import annotations

import math
import statistics
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.durations import DEFAULTS, Duration, OperationName, span_seconds
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.scenario import (
    ActiveScenario,
    AllocationFailure,
    Outage,
    Scenario,
    begin_scenario,
    elapsed,
    operation_seconds,
    scenario_of,
)


def cloud_with(scenario: Scenario, seed: int = 0) -> Cloud:
    cloud = new_cloud(["11111111-1111-4111-8111-111111111111"], "22222222-2222-4222-8222-222222222222", seed=seed)
    begin_scenario(cloud, scenario)
    return cloud


@pytest.mark.parametrize(
    ("text", "wanted"), [("0s", 0), ("45s", 45), ("90m", 5_400), ("2h30m", 9_000), ("1d", 86_400), ("1d2h3m4s", 93_784), ("1d30m", 88_200)]
)
def test_a_span_is_as_many_seconds_as_it_says(text: str, wanted: float) -> None:
    assert span_seconds(text) == wanted


@pytest.mark.parametrize("text", ["", "90", "1.5h", "30m2h", "2h 30m", "-1h", "1H", "2h90m", "1d24h", "1m60s", "367d", "2h30", "h"])
def test_a_span_that_could_be_misread_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        span_seconds(text)


@given(st.integers(0, 365), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_a_span_of_all_units_is_their_sum(days: int, hours: int, minutes: int, rest: int) -> None:
    assert span_seconds(f"{days}d{hours}h{minutes}m{rest}s") == ((days * 24 + hours) * 60 + minutes) * 60 + rest


@pytest.mark.parametrize(
    "document",
    [
        {"sede": 1},
        {"durations": {"vm.creat": {"median_seconds": 1}}},
        {"durations": {"vm.create": {"median_seconds": -1}}},
        {"allocation_failures": [{"rate": 3}]},
        {"allocation_failures": [{"rate": 0.03, "starts": "2h", "ends": "1h"}]},
        {"maintenance": [{"at": "1h", "share": 0.1, "kind": "Pause"}]},
        {"outages": [{"status": 404}]},
        {"throttling": {"compute": 0}},
    ],
)
def test_a_scenario_that_azure_could_not_be_is_refused(document: object) -> None:
    with pytest.raises(ValidationError):
        Scenario.model_validate(document)


def test_every_field_of_a_scenario_is_described() -> None:
    schema = Scenario.model_json_schema()
    fields = {
        f"{name}.{key}": field
        for name, model in {"Scenario": schema, **schema["$defs"]}.items()
        for key, field in model["properties"].items()
    }
    assert [place for place, field in fields.items() if not field.get("description")] == []


def test_everything_that_takes_time_has_a_default_duration() -> None:
    assert set(DEFAULTS) == set(get_args(OperationName))


def test_an_interval_holds_from_its_start_until_just_before_its_end() -> None:
    outage = Outage(starts="1h", ends="2h")
    assert [outage.holds(at) for at in (3_599.9, 3_600, 7_199.9, 7_200)] == [False, True, True, False]
    assert AllocationFailure(rate=1, starts="1h").holds(1e9)


def test_a_scenario_begins_when_it_is_put_in_force_and_comes_back_from_a_saved_state() -> None:
    cloud = cloud_with(Scenario())
    cloud.advance(cloud.now + 100)
    begin_scenario(cloud, Scenario(seed=7, durations={"vm.create": Duration(median_seconds=3)}, outages=(Outage(starts="1h"),)))
    cloud.advance(cloud.now + 50)
    saved = cloud.services["scenario"].dump()
    cloud.services["scenario"] = ActiveScenario(Scenario(), cloud.now)
    cloud.services["scenario"].load(saved)
    assert elapsed(cloud) == 50
    assert scenario_of(cloud).seed == 7
    assert operation_seconds(cloud, "vm.create", "one") == 3


def test_durations_lie_about_their_median_as_the_scenario_says() -> None:
    cloud = cloud_with(Scenario(durations={"vm.create": Duration(median_seconds=60, sigma=0.3)}))
    drawn = [operation_seconds(cloud, "vm.create", number) for number in range(4_000)]
    assert statistics.median(drawn) == pytest.approx(60, rel=0.03)
    assert statistics.stdev(map(math.log, drawn)) == pytest.approx(0.3, rel=0.05)
    assert min(drawn) > 10


def test_a_duration_depends_on_the_seed_and_on_what_it_is_drawn_for_alone() -> None:
    first, second, other = cloud_with(Scenario()), cloud_with(Scenario()), cloud_with(Scenario(), seed=1)
    operation_seconds(second, "vm.delete", "somebody else")
    assert operation_seconds(first, "vm.create", "a", 1) == operation_seconds(second, "vm.create", "a", 1)
    assert (
        len(
            {
                operation_seconds(first, "vm.create", "a", 1),
                operation_seconds(first, "vm.create", "a", 2),
                operation_seconds(other, "vm.create", "a", 1),
            }
        )
        == 3
    )


def test_a_factor_of_nothing_does_everything_at_once() -> None:
    cloud = cloud_with(Scenario(duration_factor=0))
    assert {operation_seconds(cloud, what, "x") for what in DEFAULTS} == {0}
    double, single = cloud_with(Scenario(duration_factor=2)), cloud_with(Scenario())
    assert operation_seconds(double, "vm.boot", "x") == pytest.approx(2 * operation_seconds(single, "vm.boot", "x"))


def test_what_has_no_duration_is_a_mistake_in_the_program() -> None:
    with pytest.raises(KeyError):
        operation_seconds(cloud_with(Scenario()), "vm.paint", "x")
