"""Names of the time zones of the IANA database."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from components.plan.invalid_value import nearest

UTC = "UTC"
PLACEHOLDER = "Factory"
"""Zone of a machine that nobody has configured."""


@cache
def time_zones() -> tuple[str, ...]:
    """Return the names in the tzdata package, sorted.

    zoneinfo.available_timezones() also returns names that only this machine knows, such as localtime.
    """
    names = (files("tzdata") / "zones").read_text(encoding="ascii").split()
    return tuple(sorted(name for name in names if name != PLACEHOLDER))


def time_zone_remedy(value: str) -> str:
    """Return a remedy with the most similar time zone; for a text without area, with the zone of its city.

    An abbreviation such as CST has several meanings, and an offset such as UTC+1 has no summer time, so nothing similar is suggested.
    """
    word = value.replace(" ", "_")
    if "/" in word:
        return nearest(word, tuple(name for name in time_zones() if "/" in name))
    cities = [name for name in time_zones() if "/" in name and name.rpartition("/")[2].lower() == word.lower()]
    exact = [name for name in time_zones() if name.lower() == word.lower()]
    found = [*exact, *cities]
    return f"did you mean {found[0]}?" if found else "write UTC, or Area/City of the place whose local time you mean: America/Chicago"
