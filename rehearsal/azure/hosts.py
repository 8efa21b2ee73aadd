"""Hosts of machines. A host keeps its identity and its faults when its machines change."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rehearsal.azure.scenario import scenario_of

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud


class HostPool:
    """Hosts of one VM size in one zone, by number from 0: used ones, free ones, and how many exist."""

    def __init__(self) -> None:
        self.used: set[int] = set()
        self.free: list[int] = []
        self.met = 0
        self.peak = 0

    def take(self, cloud: Cloud, spare: float, *drawn_for: object) -> int:
        """Choose a host for one more machine, each free host with equal probability."""
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
        """Free a host; a broken one is not used again. Raises KeyError for a free host."""
        self.used.remove(number)
        if not broken:
            self.free.append(number)


class Hosts:
    """All hosts by name: location/zone/size/number.

    A host here is the hardware of one machine: a whole server for sizes with eight GPUs, a part of one for smaller sizes.
    """

    def __init__(self) -> None:
        self._pools: dict[tuple[str, str, str], HostPool] = {}

    def place(self, cloud: Cloud, location: str, zone: str, size: str, *drawn_for: object) -> str:
        """Place a machine on a host and return the host's name."""
        key = (location, zone or "-", size)
        pool = self._pools.setdefault(key, HostPool())
        return "/".join((*key, str(pool.take(cloud, scenario_of(cloud).spare_hosts, *drawn_for))))

    def leave(self, host: str, *, broken: bool = False) -> None:
        """Take a machine off its host. Raises KeyError for a host without a machine."""
        location, zone, size, number = host.split("/")
        self._pools[location, zone, size].leave(int(number), broken=broken)

    def in_use(self) -> int:
        """Return the number of hosts with a machine."""
        return sum(len(pool.used) for pool in self._pools.values())

    def dump(self) -> dict[str, Any]:
        """Return all hosts as plain JSON."""
        return {
            "/".join(key): {"used": sorted(pool.used), "free": pool.free, "met": pool.met, "peak": pool.peak}
            for key, pool in self._pools.items()
        }

    def load(self, data: dict[str, Any]) -> None:
        """Restore the state that dump returned."""
        self._pools = {}
        for key, kept in data.items():
            location, zone, size = key.split("/")
            pool = self._pools[location, zone, size] = HostPool()
            pool.used, pool.free, pool.met, pool.peak = set(kept["used"]), list(kept["free"]), kept["met"], kept["peak"]


def host_faults(cloud: Cloud, host: str) -> tuple[str, ...]:
    """Return the faults of a host that Azure does not detect, each once; they are permanent."""
    size = host.split("/")[2]
    rows = (row for row in scenario_of(cloud).bad_hosts if row.takes(size))
    return tuple(dict.fromkeys(row.fault for row in rows if cloud.draw("fault", host, row.fault) < row.share))
