"""Validation of a raw cluster's rotation policy against its pools, the IANA time zones and the calendar."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from pydantic import ValidationError

from components.plan.address_validation import raw_pool_layout
from components.plan.closed_days import closed_days
from components.plan.invalid_value import InvalidValue, Path, Raw, whole_number
from components.plan.raw_region import mappings
from components.plan.rotation_bounds import MOST_PERCENT, share
from components.plan.time_zones import time_zone_remedy, time_zones
from components.spec.images import ImageCatalog
from components.spec.pool import NODES_PER_CLUSTER
from components.spec.tenancy import Freeze, Growth, Window
from components.spec.types import Model

MOST_CLOSED_DAYS = 366
"""Consecutive days without an open window: a longer freeze is a mistake, since rotation would never start."""
M = TypeVar("M", bound=Model)


def validate_rotation(path: Path, cluster: Raw, catalog: ImageCatalog) -> Iterator[InvalidValue]:
    """Yield the invalid values of the raw rotation policy of a raw cluster at path."""
    rotation = cluster.get("rotation")
    if not isinstance(rotation, Mapping):
        return
    below = (*path, "rotation")
    yield from _time_zone(below, rotation)
    yield from _closed(below, rotation)
    nodes = _nodes(cluster)
    budget = rotation.get("budget")
    if nodes and isinstance(budget, Mapping):
        yield from _machines(below, budget, nodes)
        yield from _per_scale_set(path, cluster, budget, catalog)
        yield from _growth(below, rotation, budget, nodes)


def _nodes(cluster: Raw) -> int:
    """Return the number of machines of a raw cluster; 0 if a pool has no valid number."""
    pools = cluster.get("pools")
    counts = [whole_number(pool.get("nodes")) for pool in (pools if isinstance(pools, list) else ()) if isinstance(pool, Mapping)]
    known = [count for count in counts if count is not None and 0 <= count <= NODES_PER_CLUSTER]
    return sum(known) if len(known) == len(counts) else 0


def _machines(path: Path, budget: Raw, nodes: int) -> Iterator[InvalidValue]:
    """Yield a budget of more machines than the cluster has."""
    machines = whole_number(budget.get("machines"))
    if machines is not None and machines > nodes:
        reason = f"is more than the cluster's {nodes:,} machines"
        yield InvalidValue((*path, "budget", "machines"), machines, reason, f"write at most {nodes}", replaces_model_error=True)


def _per_scale_set(path: Path, cluster: Raw, budget: Raw, catalog: ImageCatalog) -> Iterator[InvalidValue]:
    """Yield a budget of more machines of a scale set than the largest one has."""
    per_set = whole_number(budget.get("per_scale_set"))
    pools = [(pool, raw_pool_layout(pool, catalog)) for _, pool in mappings(cluster, (*path, "pools"))]
    largest = max((min(found[0], pool["nodes"]) for pool, found in pools if found), default=0)
    if per_set is not None and all(found for _, found in pools) and per_set > largest > 0:
        reason, where = f"is more than the {largest:,} machines of the largest scale set", (*path, "rotation", "budget", "per_scale_set")
        yield InvalidValue(where, per_set, reason, f"write at most {largest}", replaces_model_error=True)


def _growth(path: Path, rotation: Raw, budget: Raw, nodes: int) -> Iterator[InvalidValue]:
    """Yield a first growth beyond the budget, where it has no effect; one up to the default is accepted in small clusters."""
    growth = rotation.get("growth")
    first = whole_number(growth.get("first")) if isinstance(growth, Mapping) else None
    machines, percent = (whole_number(budget.get(key)) for key in ("machines", "percent"))
    if first is None or machines is None or percent is None or machines < 1 or not 1 <= percent <= MOST_PERCENT:
        return
    bound = min(machines, share(nodes, percent))
    if first > max(bound, Growth().first):
        reason = f"is more than the {bound:,} machines that budget allows to be unavailable, so it has no effect"
        yield InvalidValue((*path, "growth", "first"), first, reason, f"write at most {bound}", replaces_model_error=True)


def _time_zone(path: Path, rotation: Raw) -> Iterator[InvalidValue]:
    """Yield a time zone that the IANA database does not contain."""
    zone = rotation.get("time_zone")
    if isinstance(zone, str) and zone not in time_zones():
        reason = "is no time zone of the IANA database"
        yield InvalidValue((*path, "time_zone"), zone, reason, time_zone_remedy(zone), replaces_model_error=True)


def _closed(path: Path, rotation: Raw) -> Iterator[InvalidValue]:
    """Yield freezes with which no window opens for more than MOST_CLOSED_DAYS days."""
    windows, freezes = _parsed(rotation.get("windows", []), Window), _parsed(rotation.get("freeze"), Freeze)
    if windows is None or freezes is None:
        return
    for closed in closed_days(windows, freezes):
        if closed.days > MOST_CLOSED_DAYS:
            reason = f"leaves no open window from {closed.first} to {closed.last}, {closed.days:,} days"
            remedy = f"write an earlier day, or open a window: rotation must be able to start once in {MOST_CLOSED_DAYS} days"
            yield InvalidValue((*path, "freeze", closed.freeze, "last"), str(freezes[closed.freeze].last), reason, remedy)


def _parsed(items: object, model: type[M]) -> list[M] | None:
    """Return a raw list as models; None if it is no list or has invalid entries, which the model reports."""
    try:
        return [model.model_validate(item) for item in items] if isinstance(items, list) else None
    except ValidationError:
        return None
