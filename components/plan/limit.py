"""What a limit is: a bound, who says so, what a breach means and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """One limit: bound in unit, None where the plan or the region file gives it; reason says what a breach means, remedy what to do.

    at_least turns the comparison round: the use must reach the bound. rule marks a bound that a plan is meant to sit at, so that
    nearness says nothing.
    """

    name: str
    bound: float | None
    unit: str
    source: str
    reason: str
    remedy: str
    at_least: bool = False
    rule: bool = False
