"""Sentences about images that have no capture in a region's location."""

from __future__ import annotations

from collections.abc import Sequence

from components.plan.model import RegionPlan


def missing_captures_text(plan: RegionPlan, pins: Sequence[str]) -> str:
    """Return one sentence with the location, the images and the remedy."""
    location, one = plan.spec.location, len(pins) == 1
    return (
        f"{plan.name}: {_listed(pins)} {'has' if one else 'have'} no capture in {location}, and a gallery takes a version from its own "
        f"location only: {_remedy(f'in {location}', one=one)} (docs/node-images.md)"
    )


def missing_capture_text(pin: str) -> str:
    """Return one sentence with an image and the remedy, where the location is not known."""
    return f"{pin} has no capture in the region's location; {_remedy('there', one=True)}"


def _remedy(place: str, *, one: bool) -> str:
    it, its = ("it", "its") if one else ("each", "each")
    return f"build {it} {place}, and enter {its} resource id under captures in node-images/versions.yaml"


def _listed(pins: Sequence[str]) -> str:
    """Return pins as words: a, b and c."""
    return " and ".join(part for part in (", ".join(pins[:-1]), pins[-1]) if part)
