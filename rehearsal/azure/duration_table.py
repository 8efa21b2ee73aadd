"""Says how long Azure's operations are taken to last, where a scenario says nothing else.

Microsoft publishes no timings of these operations at any scale; two rows have a sentence of its documentation behind them, named beside
them. The others are assumptions of the right order, chosen so that what is slow on Azure is slow here: a scenario that was measured
should replace them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from components.spec.types import Model

What = Literal[
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
"""What may take time: the resource or machine, and what is done with it."""


class Duration(Model):
    """How long something takes: a lognormal distribution, so that most are near the median and a few take much longer."""

    median_seconds: Annotated[float, Field(ge=0, le=604_800)]
    """Seconds that half of them take at most; 0 is done at once."""
    sigma: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Standard deviation of the natural logarithm: 0 is always the median, 0.3 has one in a hundred take twice the median or longer."""


def _row(median: float, sigma: float) -> Duration:
    return Duration(median_seconds=median, sigma=sigma)


DEFAULTS: Mapping[What, Duration] = {
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
