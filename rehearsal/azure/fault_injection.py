"""Injected faults of running machines: maintenance, host failures and spot evictions, single and in bursts.

A scale set receives them as events on its key: "evict" and "host_failed" with a list of instance ids; "maintenance" with the kind (Freeze,
Reboot, Redeploy), the seconds of notice and such a list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rehearsal.azure.compute.instances import state_of
from rehearsal.azure.durations import span_seconds
from rehearsal.azure.scenario import EvictionBurst, Evictions, HostFailures, Maintenance, scenario_of

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

SERVICE = "happenings"
SETS = "microsoft.compute/virtualmachinescalesets"
TICK = 3_600.0
"""Seconds of one draw of faults of single machines."""
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class AffectedMachines:
    """Machines of one scale set that a fault can affect: key and location of the set, size and ids of the machines."""

    key: str
    location: str
    size: str
    instances: tuple[str, ...]


class FaultInjection:
    """Faults of the active scenario. turn distinguishes its plans from those of an earlier scenario."""

    def __init__(self) -> None:
        self._turn = 0

    def begin(self, cloud: Cloud) -> None:
        """Plan the faults of the scenario that has just started. Plans of earlier scenarios no longer apply."""
        self._turn += 1
        scenario = scenario_of(cloud)
        for number, maintenance in enumerate(scenario.maintenance):
            cloud.events.after(span_seconds(maintenance.at), SERVICE, "maintenance", self._turn, number)
        for number, burst in enumerate(scenario.eviction_bursts):
            cloud.events.after(span_seconds(burst.at), SERVICE, "burst", self._turn, number)
        if scenario.host_failures or scenario.evictions:
            cloud.events.after(0.0, SERVICE, "tick", self._turn, 0)

    def event(self, cloud: Cloud, name: str, args: tuple[Any, ...]) -> None:
        """Handle a planned event."""
        turn, number = args
        if turn != self._turn:
            return
        scenario = scenario_of(cloud)
        if name == "maintenance":
            _maintain(cloud, number, scenario.maintenance[number])
        elif name == "burst":
            _burst(cloud, number, scenario.eviction_bursts[number])
        else:
            _draw(cloud, "host_failed", scenario.host_failures, number, _met(cloud))
            _draw(cloud, "evict", scenario.evictions, number, _met(cloud, spot_alone=True))
            cloud.events.after(TICK, SERVICE, "tick", turn, number + 1)

    def dump(self) -> dict[str, Any]:
        """Return plain JSON; the plans themselves are events of the model."""
        return {"turn": self._turn}

    def load(self, data: dict[str, Any]) -> None:
        """Restore the state that dump returned."""
        self._turn = data["turn"]


def _met(cloud: Cloud, *, spot_alone: bool = False) -> Iterator[AffectedMachines]:
    """Yield machines on a host, by scale set and size."""
    for key in list(cloud.index.of_type(SETS)):
        resource = cloud.resources[key]
        state = state_of(resource)
        by_size: dict[str, list[str]] = {}
        for name, one in state.instances.items():
            model = state.models[one.model]
            if one.host and not one.going and (model.spot or not spot_alone):
                by_size.setdefault(model.size, []).append(name)
        for size, names in by_size.items():
            yield AffectedMachines(key, resource.location, size, tuple(names))


def _draw(cloud: Cloud, name: str, rows: tuple[HostFailures | Evictions, ...], tick: int, fleet: Iterable[AffectedMachines]) -> None:
    """Plan faults of single machines before the next tick. Each machine has its own draw and time."""
    if not rows:
        return
    for met in fleet:
        rate = sum(row.per_instance_day for row in rows if row.takes(met.size))
        chance = 1 - math.exp(-rate * TICK / DAY)
        for one in met.instances if rate else ():
            drawn = cloud.draw(name, met.key, one, tick)
            if drawn < chance:
                cloud.events.after(TICK * drawn / chance, met.key, name, [one])


def _maintain(cloud: Cloud, number: int, row: Maintenance) -> None:
    for met, chosen in _chosen(cloud, "maintenance", number, row, _met(cloud)):
        cloud.events.after(0.0, met.key, "maintenance", row.kind, span_seconds(row.notice), chosen)


def _burst(cloud: Cloud, number: int, row: EvictionBurst) -> None:
    for met, chosen in _chosen(cloud, "burst", number, row, _met(cloud, spot_alone=True)):
        cloud.events.after(0.0, met.key, "evict", chosen)


def _chosen(
    cloud: Cloud, what: str, number: int, row: Maintenance | EvictionBurst, fleet: Iterable[AffectedMachines]
) -> Iterator[tuple[AffectedMachines, list[str]]]:
    """Yield the share of machines that a row affects, by scale set; sets without one are omitted."""
    for met in fleet:
        if row.takes(met.size) and row.location in (None, met.location):
            chosen = [one for one in met.instances if cloud.draw(what, number, met.key, one) < row.share]
            if chosen:
                yield met, chosen
