"""Decides on which hardware a machine lands: hosts keep their identity, and with it their faults, whoever is on them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rehearsal.azure.scenario import scenario_of

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud


class HostPool:
    """The hosts of one VM size in one zone, by number from 0: those in use, those that were and are free, and how many there are."""

    def __init__(self) -> None:
        self.used: set[int] = set()
        self.free: list[int] = []
        self.met = 0
        self.peak = 0

    def take(self, cloud: Cloud, spare: float, *drawn_for: object) -> int:
        """A host for one more machine: any free one, each as likely."""
        self.peak = max(self.peak, len(self.used) + 1)
        unmet = max(0, self.peak + math.ceil(self.peak * spare) - self.met)
        choices = len(self.free) + unmet
        chosen = int(cloud.draw("host", *drawn_for) * choices) if self.free else choices
        if chosen >= len(self.free):
            number = self.met
            self.met += 1
        else:
            self.free[chosen], self.free[-1] = self.free[-1], self.free[chosen]
            number = self.free.pop()
        self.used.add(number)
        return number

    def leave(self, number: int, *, broken: bool) -> None:
        """Free a host; a broken one is not used again. KeyError where nobody is on it."""
        self.used.remove(number)
        if not broken:
            self.free.append(number)


class Hosts:
    """Every host by name: location/zone/size/number.

    A host here is what one machine gets: a whole server for the sizes with eight GPUs, a part of one for smaller sizes.
    """

    def __init__(self) -> None:
        self._pools: dict[tuple[str, str, str], HostPool] = {}

    def place(self, cloud: Cloud, location: str, zone: str, size: str, *drawn_for: object) -> str:
        """Put a machine on a host: its name."""
        key = (location, zone or "-", size)
        pool = self._pools.setdefault(key, HostPool())
        return "/".join((*key, str(pool.take(cloud, scenario_of(cloud).spare_hosts, *drawn_for))))

    def leave(self, host: str, *, broken: bool = False) -> None:
        """Take a machine off its host; KeyError where none is on it."""
        location, zone, size, number = host.split("/")
        self._pools[location, zone, size].leave(int(number), broken=broken)

    def in_use(self) -> int:
        """Hosts with a machine on them."""
        return sum(len(pool.used) for pool in self._pools.values())

    def dump(self) -> dict[str, Any]:
        """Plain JSON of who is where."""
        return {
            "/".join(key): {"used": sorted(pool.used), "free": pool.free, "met": pool.met, "peak": pool.peak}
            for key, pool in self._pools.items()
        }

    def load(self, data: dict[str, Any]) -> None:
        """Take up what dump told of."""
        self._pools = {}
        for key, kept in data.items():
            location, zone, size = key.split("/")
            pool = self._pools[location, zone, size] = HostPool()
            pool.used, pool.free, pool.met, pool.peak = set(kept["used"]), list(kept["free"]), kept["met"], kept["peak"]


def host_faults(cloud: Cloud, host: str) -> tuple[str, ...]:
    """What is broken on a host without Azure's knowing, each fault once: a host has it for good."""
    size = host.split("/")[2]
    rows = (row for row in scenario_of(cloud).bad_hosts if row.takes(size))
    return tuple(dict.fromkeys(row.fault for row in rows if cloud.draw("fault", host, row.fault) < row.share))
