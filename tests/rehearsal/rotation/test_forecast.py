"""Tests of the forecast over seeds and strategies."""

from __future__ import annotations

import math

import pytest

from rehearsal.rotation.forecast import COMPARED, OWN, forecast, percentile, simulate_seed
from rehearsal.rotation.region_rotation import RegionRun
from stacks.load import load_plan

MONDAY = 1_796_014_800
"""2026-11-30 06:00 in Stockholm."""


def test_a_percentile_is_the_nearest_rank() -> None:
    values = [5.0, 1.0, 3.0, 2.0, 4.0]
    assert [percentile(values, percent) for percent in (1, 10, 50, 90, 100)] == [1.0, 1.0, 3.0, 5.0, 5.0]
    assert percentile([7.0], 90) == 7.0
    assert math.isnan(percentile([], 50))


def test_each_strategy_gets_each_seed_and_progress_is_reported() -> None:
    told: list[tuple[int, int]] = []
    result = forecast(load_plan("dev"), RegionRun(MONDAY, seed=3), 2, (OWN, *COMPARED), lambda *counts: told.append(counts))
    assert [(one.strategy, one.seed) for one in result.results] == [(name, seed) for name in (OWN, *COMPARED) for seed in (3, 4)]
    assert told == [(done, 6) for done in range(7)]
    assert result.first.run.seed == 3
    assert result.results[0].finished == result.first.finished
    assert all(one.not_ready == 0 for one in result.results)


@pytest.mark.parametrize("strategy", [OWN, *COMPARED])
def test_no_strategy_is_faster_than_the_lower_bound(strategy: str) -> None:
    one = simulate_seed(load_plan("dev"), strategy, RegionRun(MONDAY, seed=5))
    assert one.seconds >= one.bound > 0
    assert one.most_unavailable <= 2
