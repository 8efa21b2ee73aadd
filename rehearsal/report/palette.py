"""Colours of the pools: one per pool name, the same in every cluster and drawing of a report."""

from __future__ import annotations

from components.plan.model import PoolPlan, RegionPlan
from components.spec.pool import Capacity

COLOURS = 8
"""Number of pool colours in the style sheet; people with any colour vision can distinguish them: https://jfly.uni-koeln.de/color/"""


def pool_looks(plan: RegionPlan) -> dict[str, str]:
    """Return the CSS class of each pool name, in order of first appearance; after eight they repeat, and labels distinguish pools."""
    names = dict.fromkeys(pool.name for cluster in plan.clusters for pool in cluster.pools)
    return {name: f"pool-{position % COLOURS}" for position, name in enumerate(names)}


def is_spot(pool: PoolPlan) -> bool:
    """Return whether Azure may evict the pool's machines, which drawings show as stripes."""
    return pool.spec.capacity is Capacity.SPOT
