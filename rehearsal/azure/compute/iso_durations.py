"""Decides what a span of time in a compute body says: PT10M and its like, of hours, minutes and seconds."""

from __future__ import annotations

import re

from rehearsal.azure.errors import invalid

_SPAN = re.compile(r"PT(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,7})S)?")


def span_seconds(text: object, target: str) -> float:
    """Seconds of an ISO 8601 span; AzureError InvalidParameter naming the property where it is none."""
    found = _SPAN.fullmatch(str(text))
    if found is None or str(text) == "PT":
        raise invalid(f"The value '{text}' of parameter '{target}' is not a valid ISO 8601 duration, such as PT10M.", target)
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(hours * 3_600 + minutes * 60 + seconds)


def bounded(text: object, target: str, least: float, most: float) -> float:
    """Seconds of a span that must lie between two bounds, in seconds; AzureError InvalidParameter."""
    seconds = span_seconds(text, target)
    if not least <= seconds <= most:
        message = (
            f"The value '{text}' of parameter '{target}' is out of range. The value must be between PT{least / 60:.0f}M and "
            f"PT{most / 60:.0f}M inclusive."
        )
        raise invalid(message, target)
    return seconds
