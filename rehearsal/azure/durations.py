"""Decides how long each operation takes: drawn from the scenario's distribution, for what it is drawn for and for nothing else."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, cast

from rehearsal.azure.duration_table import DEFAULTS, Duration, What
from rehearsal.azure.scenario import scenario_of

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

_NORMAL = NormalDist()
_LEAST = 2.0**-57
"""Half of the smallest step of a draw: a draw of 0 would lie infinitely far out."""


def seconds(cloud: Cloud, what: str, *drawn_for: object) -> float:
    """Seconds that an operation takes in the scenario in force; KeyError for what has no duration.

    drawn_for says which one it is (a key, a version, an attempt): the same ones take the same time in every run of a seed.
    """
    scenario = scenario_of(cloud)
    duration = duration_of(scenario.durations.get(cast("What", what)), what)
    median = duration.median_seconds * scenario.duration_factor
    if duration.sigma == 0 or median == 0:
        return median
    drawn = max(cloud.draw("duration", what, *drawn_for), _LEAST)
    return median * math.exp(duration.sigma * _NORMAL.inv_cdf(drawn))


def duration_of(named: Duration | None, what: str) -> Duration:
    """What a scenario names, else the default."""
    return named if named is not None else DEFAULTS[cast("What", what)]
