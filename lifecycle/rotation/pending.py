"""Pending nodes of a run in the order in which they start: nodes without jobs first, then gang by gang, the cheapest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lifecycle.rotation.budget import Need, Place
from lifecycle.rotation.model import Gang, Load, NodeObservation

BROKEN = Place("", "", "")
"""Key in place of compartments, for machines that are unavailable already, so that a start costs no budget."""
ORDER_SECONDS = 60.0
"""Seconds for which the order of gangs by cost is kept; costs change slowly."""
SERVICES_FROM = Load.NORMAL
"""Pods of this and a higher priority count as jobs or services; those below may be evicted at any time."""


@dataclass(frozen=True, slots=True)
class Single:
    """Position of a node without a gang in the index: its load and compartments."""

    load: Load
    place: Place


@dataclass(frozen=True, slots=True)
class Unit:
    """Nodes that start together: all pending nodes of a gang (or of gangs that share nodes), or one node without a gang."""

    need: Need
    gangs: tuple[str, ...]
    load: Load

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return self.need.nodes

    @property
    def name(self) -> str:
        """Name in messages: of the first gang or of the node."""
        return f"gang {self.gangs[0]}" if self.gangs else self.need.nodes[0]


class PendingNodes:
    """Index of the pending nodes; observed, gangs and places belong to the caller, which reports each change."""

    def __init__(self, observed: Mapping[str, NodeObservation], gangs: Mapping[str, Gang], places: Mapping[str, Place]) -> None:
        self._observed, self._known_gangs, self._places = observed, gangs, places
        self._filed: dict[str, Single | tuple[str, ...] | None] = {}
        self._singles: dict[Load, dict[Place, dict[str, None]]] = {load: defaultdict(dict) for load in Load}
        self._single_order: dict[Load, list[Place]] = {}
        self._of_gang: dict[str, dict[str, None]] = {}
        self._units: dict[str, Unit] = {}
        self._order: list[str] = []
        self._ordered_at = float("-inf")

    def __len__(self) -> int:
        return len(self._filed)

    def file(self, name: str) -> None:
        """Add a pending node, or file it anew after its observation changed."""
        self.remove(name)
        seen = self._observed[name]
        if (seen.cordoned_by or not seen.exists) and not seen.gangs:
            self._filed[name] = None
            return
        if seen.gangs:
            self._filed[name] = seen.gangs
            for gang in seen.gangs:
                if gang not in self._of_gang:
                    self._of_gang[gang] = {}
                    self._ordered_at = float("-inf")
                self._of_gang[gang][name] = None
                self.forget_unit(gang)
            return
        key = BROKEN if seen.unavailable else self._places[name]
        if key not in self._singles[seen.load]:
            self._single_order.pop(seen.load, None)
        self._filed[name] = Single(seen.load, key)
        self._singles[seen.load][key][name] = None

    def remove(self, name: str) -> None:
        """Remove a node that is not pending any more; a node that is not in the index is ignored."""
        filed = self._filed.pop(name, None)
        if filed is None:
            return
        if isinstance(filed, Single):
            names = self._singles[filed.load][filed.place]
            del names[name]
            if not names:
                del self._singles[filed.load][filed.place]
                self._single_order.pop(filed.load, None)
            return
        for gang in filed:
            names = self._of_gang[gang]
            del names[name]
            self.forget_unit(gang)
            if not names:
                del self._of_gang[gang]

    def forget_unit(self, gang: str) -> None:
        """Compute the unit of a gang anew when it is needed next, and of the gangs with which it shared nodes."""
        unit = self._units.pop(gang, None)
        if unit is not None:
            for other in unit.gangs:
                self._units.pop(other, None)

    def unit(self, gang: str) -> Unit | None:
        """Return the unit of a gang: its pending nodes, and those of all gangs that share a node with it; None without any."""
        found = self._units.get(gang)
        if found is not None or gang not in self._of_gang:
            return found
        gangs: dict[str, None] = {gang: None}
        nodes: dict[str, None] = {}
        left = [gang]
        while left:
            for name in self._of_gang.get(left.pop(), ()):
                if name not in nodes:
                    nodes[name] = None
                    for other in self._observed[name].gangs:
                        if other not in gangs:
                            gangs[other] = None
                            left.append(other)
        load = max(self._observed[name].load for name in nodes)
        unit = Unit(Need.of(self._places, nodes), tuple(gangs), load)
        for one in gangs:
            self._units[one] = unit
        return unit

    def single(self, name: str) -> Unit:
        """Return a node on its own as a unit."""
        return Unit(Need.of(self._places, (name,)), (), self._observed[name].load)

    def broken(self) -> Iterator[Unit]:
        """Yield nodes without a gang that are unavailable already, but not cordoned: starting them costs no budget."""
        for load in Load:
            for name in list(self._singles[load].get(BROKEN, ())):
                yield self.single(name)

    def singles(self, loads: tuple[Load, ...], takes: Callable[[Place], bool]) -> Iterator[Unit]:
        """Yield available nodes without a gang: by load, then those of the scale sets that had the most such nodes.

        takes returns whether compartments can take one more start; it is called before each node.
        """
        for load in loads:
            by_place = self._singles[load]
            for place in self._places_of(load):
                while takes(place) and (names := by_place.get(place)):
                    name = next(iter(names))
                    yield self.single(name)
                    if name in names:
                        break

    def _places_of(self, load: Load) -> list[Place]:
        """Return the compartments with nodes of a load, in the order of their number when the first of them was new."""
        order = self._single_order.get(load)
        if order is None:
            by_place = self._singles[load]
            order = sorted(by_place, key=lambda place: (-len(by_place[place]), place.scale_set, place.team))
            self._single_order[load] = order = [place for place in order if place is not BROKEN]
        return order

    def gang_ids(self, now: float) -> list[str]:
        """Return the gangs with pending nodes: of low priority first, then the cheapest to interrupt; the order is up to a minute old."""
        if now - self._ordered_at >= ORDER_SECONDS:
            self._order = sorted(self._of_gang, key=lambda gang: self._cost(gang, now))
            self._ordered_at = now
        return self._order

    def _cost(self, gang: str, now: float) -> tuple[bool, float, str]:
        unit = self.unit(gang)
        if unit is None:
            return False, 0.0, gang
        known = [self._known_gangs[one] for one in unit.gangs if one in self._known_gangs]
        return unit.load >= SERVICES_FROM, sum(one.lost_gpu_hours(now) for one in known), unit.gangs[0]
