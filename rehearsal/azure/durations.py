"""Durations of Azure's operations: how a scenario writes them, and their defaults.

Microsoft publishes no durations of these operations at any scale. Two rows cite a sentence of its documentation. The others are
assumptions of the right order of magnitude, so that slow operations of Azure are slow here: replace them with measurements.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from components.spec.types import Model, form

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_WRITTEN = re.compile("".join(rf"(?:([0-9]{{1,7}}){unit})?" for unit, _ in _UNITS))
_LARGEST = 366 * 86_400


@lru_cache(maxsize=1_024)
def span_seconds(text: str) -> float:
    """Return the seconds of a span as a scenario writes it. Raises ValueError."""
    found = _WRITTEN.fullmatch(text)
    if found is None or not text:
        raise ValueError("is no span of time; write days, hours, minutes and seconds as 1d, 2h30m or 45s")
    numbers = [None if number is None else int(number) for number in found.groups()]
    below = False
    for number, carry in zip(numbers, (_LARGEST, 24, 60, 60), strict=True):
        if below and number is not None and number >= carry:
            raise ValueError("has a unit that fills the one before it; write 2h30m and not 1h90m")
        below = below or number is not None
    total = float(sum((number or 0) * length for number, (_, length) in zip(numbers, _UNITS, strict=True)))
    if total > _LARGEST:
        raise ValueError("is longer than a year; write at most 366d")
    return total


def _checked(text: str) -> str:
    span_seconds(text)
    return text


TimeSpan = Annotated[
    str,
    form(r"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "a span of time without spaces, larger units first: 1d, 2h30m or 45s"),
    StringConstraints(min_length=2),
    AfterValidator(_checked),
]
"""A span of time from the scenario's start, or a length of time."""


OperationName = Literal[
    "vm.create",
    "vm.boot",
    "vm.start",
    "vm.restart",
    "vm.reimage",
    "vm.update",
    "vm.delete",
    "vm.deallocate",
    "vm.power_off",
    "vm.redeploy",
    "scale_set.put",
    "scale_set.delete",
    "network.put",
    "network.delete",
    "gateway.put",
    "gateway.delete",
    "load_balancer.put",
    "private_endpoint.put",
    "dns.put",
    "resolver.put",
    "vault.put",
    "vault.delete",
    "storage.put",
    "storage.delete",
    "identity.put",
    "role.put",
    "image.put",
    "image.replicate",
    "image.build",
    "disk.put",
    "reservation.put",
]
"""Names of operations with a duration: the resource or machine, and the operation."""


class Duration(Model):
    """How long something takes: a lognormal distribution, so that most are near the median and a few take much longer."""

    median_seconds: Annotated[float, Field(ge=0, le=604_800)]
    """Seconds that half of them take at most; 0 is done at once."""
    sigma: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Standard deviation of the natural logarithm: 0 is always the median, 0.3 has one in a hundred take twice the median or longer."""


def _row(median: float, sigma: float) -> Duration:
    return Duration(median_seconds=median, sigma=sigma)


DEFAULTS: Mapping[OperationName, Duration] = {
    "vm.create": _row(45.0, 0.3),
    "vm.boot": _row(75.0, 0.3),
    "vm.start": _row(45.0, 0.3),
    "vm.restart": _row(60.0, 0.3),
    "vm.reimage": _row(90.0, 0.3),
    "vm.update": _row(15.0, 0.2),
    "vm.delete": _row(60.0, 0.3),
    "vm.deallocate": _row(60.0, 0.3),
    "vm.power_off": _row(20.0, 0.3),
    "vm.redeploy": _row(180.0, 0.3),
    "scale_set.put": _row(5.0, 0.2),
    "scale_set.delete": _row(10.0, 0.2),
    "network.put": _row(4.0, 0.2),
    "network.delete": _row(10.0, 0.2),
    # "Creating a gateway can often take 45 minutes or more": https://learn.microsoft.com/azure/vpn-gateway/tutorial-create-gateway-portal
    "gateway.put": _row(2700.0, 0.1),
    "gateway.delete": _row(600.0, 0.1),
    "load_balancer.put": _row(4.0, 0.2),
    "private_endpoint.put": _row(30.0, 0.2),
    "dns.put": _row(20.0, 0.2),
    "resolver.put": _row(60.0, 0.2),
    "vault.put": _row(30.0, 0.2),
    "vault.delete": _row(10.0, 0.2),
    "storage.put": _row(25.0, 0.2),
    "storage.delete": _row(5.0, 0.2),
    "identity.put": _row(2.0, 0.0),
    "role.put": _row(1.0, 0.0),
    "image.put": _row(5.0, 0.2),
    # "a few hours in some cases": https://learn.microsoft.com/azure/virtual-machines/azure-compute-gallery
    "image.replicate": _row(2400.0, 0.5),
    "image.build": _row(1800.0, 0.2),
    "disk.put": _row(5.0, 0.2),
    "reservation.put": _row(20.0, 0.2),
}
"""A duration for everything that What names."""
