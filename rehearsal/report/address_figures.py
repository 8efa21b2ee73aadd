"""Drawings of a region's private addresses against Azure's bounds, and of its address blocks."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from components.plan import addresses, azure_limits
from components.plan.limits import LimitRow
from components.plan.model import ClusterPlan, RegionPlan
from components.spec.cluster import Connectivity
from components.spec.pool import NODE_SUBNET_SLOTS
from rehearsal.report.drawing import Drawing, fitted
from rehearsal.report.numbers import number, percent
from rehearsal.report.palette import pool_looks

WIDTH = 960.0
LEFT = 140.0
FONT = 12.5
BAR_RIGHT = 116.0
BAR_WIDTH = WIDTH - LEFT - BAR_RIGHT
BAR = 18.0
ROW = 28.0
STRIP_WIDTH = 816.0
STRIP = 22.0
INTERNAL = int(ipaddress.IPv4Address("10.0.0.0"))
ALL_BLOCKS = 64
PARTS = 32
"""Parts of a cluster's block: /19s."""
CLUSTER_ROW = 30.0

_Segment = tuple[str, int, str, str]
"""Look, addresses, name and title of one part of a bar."""


def address_use(plan: RegionPlan, limits: Sequence[LimitRow]) -> Drawing:
    """Return bars of the addresses in use per virtual network and peered group, on one scale; limits are the plan's rows."""
    drawing = Drawing(f"Private addresses in use in {plan.name} against Azure's bounds", WIDTH)
    looks = pool_looks(plan)
    clusters = {cluster.name: cluster for cluster in plan.clusters}
    networks = [(row, _network_segments(clusters[row.where], looks)) for row in limits if row.limit == azure_limits.VNET_ADDRESSES.name]
    groups = [(row, _group_segments(plan, row)) for row in limits if row.limit == azure_limits.PEERED_ADDRESSES.name]
    scale = BAR_WIDTH / max([row.bound or 0.0 for row, _ in networks + groups] + [row.use for row, _ in networks + groups] + [1.0])
    y = _bars(drawing, "Virtual networks", networks, 0.0, scale)
    drawing.height = _bars(drawing, "Peered groups", groups, y + 14, scale)
    return drawing


def _network_segments(cluster: ClusterPlan, looks: dict[str, str]) -> list[_Segment]:
    """Return a network's addresses by pool, and those of its control plane and endpoints."""
    pools = [(f"cell {looks[pool.name]}", pool.private_addresses, pool.name, f"pool {pool.name}") for pool in cluster.pools]
    rest = cluster.private_addresses - sum(pool.private_addresses for pool in cluster.pools)
    return [*pools, ("cell plain", rest, "control plane", "control plane, front ends and endpoints")]


def _group_segments(plan: RegionPlan, row: LimitRow) -> list[_Segment]:
    """Return a peered group's addresses: those of each peered cluster and of the hub."""
    peered = [cluster for cluster in plan.clusters if cluster.connectivity is Connectivity.PEERING]
    rest = int(row.use) - sum(cluster.private_addresses for cluster in peered)
    return [
        *(("cell peer", cluster.private_addresses, cluster.name, f"cluster {cluster.name}") for cluster in peered),
        ("cell plain", rest, "hub", "hub"),
    ]


def _bars(drawing: Drawing, heading: str, bars: Sequence[tuple[LimitRow, list[_Segment]]], top: float, scale: float) -> float:
    bound = next((row.bound for row, _ in bars if row.bound), None)
    drawing.text("label", 0, top + 14, heading)
    if bound:
        drawing.text("detail end", LEFT + bound * scale, top + 14, f"bound {number(bound)}")
    y = top + 24
    for row, segments in bars:
        drawing.text("detail end", LEFT - 10, y + 13, fitted(row.where, LEFT - 10, FONT), title=row.where)
        drawing.rect("track", LEFT, y, (row.bound or 0) * scale, BAR, title=f"{row.where}: bound {number(row.bound)} addresses")
        x = LEFT
        for look, use, name, title in segments:
            drawing.rect(look, x, y, use * scale, BAR, title=f"{row.where}: {title}: {number(use)} addresses")
            if len(name) * FONT * 0.7 < use * scale:
                drawing.text(f"inside start on-{look.removeprefix('cell ')}", x + 8, y + 13.5, name)
            x += use * scale
        if row.bound:
            drawing.line("bound", (LEFT + row.bound * scale, y - 3), (LEFT + row.bound * scale, y + BAR + 3))
        used = percent(row.use / row.bound) if row.bound else ""
        drawing.text(
            "broken-text" if row.broken else "count",
            LEFT + max(x - LEFT, (row.bound or 0) * scale) + 8,
            y + 13,
            f"{number(row.use)} ({used})",
        )
        y += ROW
    return y


def block_map(plan: RegionPlan) -> Drawing:
    """Return the drawing of the /14 blocks of 10.0.0.0/8, the region's blocks, and the used and free /19 parts of each cluster."""
    drawing = Drawing(f"Address blocks of {plan.name} in 10.0.0.0/8", WIDTH)
    space = ipaddress.IPv4Network(plan.spec.address_space)
    blocks = max(addresses.blocks_in(plan.spec.address_space), 1)
    first = (int(space.network_address) - INTERNAL) >> (32 - addresses.BLOCK_LENGTH)
    step = STRIP_WIDTH / ALL_BLOCKS
    _strip_label(drawing, 0, "10.0.0.0/8", "all regions")
    for index in range(ALL_BLOCKS):
        ours = first <= index < first + blocks
        block = ipaddress.IPv4Address(INTERNAL + (index << (32 - addresses.BLOCK_LENGTH)))
        title = f"{block}/{addresses.BLOCK_LENGTH}: {plan.name if ours else 'outside this region'}"
        drawing.rect("cell ours" if ours else "track", LEFT + index * step, 0, step - 1, STRIP, title=title)
    top = STRIP + 26
    drawing.line("zoom", (LEFT + first * step, STRIP), (LEFT, top))
    drawing.line("zoom", (LEFT + (first + blocks) * step, STRIP), (LEFT + STRIP_WIDTH, top))
    _region_strip(drawing, plan, blocks, top)
    drawing.height = _cluster_strips(drawing, plan, top + STRIP + 18)
    return drawing


def _strip_label(drawing: Drawing, top: float, name: str, detail: str) -> None:
    drawing.text("label end", LEFT - 10, top + 9, fitted(name, LEFT - 10, FONT), title=name)
    drawing.text("detail end", LEFT - 10, top + 23, fitted(detail, LEFT - 10, FONT))


def _region_strip(drawing: Drawing, plan: RegionPlan, blocks: int, top: float) -> None:
    """Draw the blocks of the hub and of each cluster slot."""
    _strip_label(drawing, top, plan.name, plan.spec.address_space)
    step = STRIP_WIDTH / blocks
    used = {cluster.spec.slot + 1: cluster for cluster in plan.clusters}
    for index in range(blocks):
        cluster = used.get(index)
        name = "hub" if index == 0 else cluster.name if cluster else "free"
        look = "cell plain" if index == 0 else "cell ours" if cluster else "track"
        slot = "" if index == 0 else f" (slot {index - 1})"
        drawing.rect(look, LEFT + index * step, top, step - 1, STRIP, title=f"{name}{slot}", mark=("block", name) if cluster else None)
        if step > 40:
            drawing.text(
                "detail middle" if look == "track" else "inside", LEFT + (index + 0.5) * step, top + 15, fitted(name, step - 4, FONT)
            )


def _cluster_strips(drawing: Drawing, plan: RegionPlan, top: float) -> float:
    step = STRIP_WIDTH / PARTS
    spare = (addresses.CONTROL_SLOT + 1 + PARTS) / 2
    for look, slot, heading in (
        ("detail", 0.0, "node subnets, by slot"),
        ("detail", addresses.SERVICE_SLOT, "services"),
        ("detail middle", addresses.CONTROL_SLOT + 0.5, "control"),
        ("detail middle", spare + 0.3, "spare"),
    ):
        drawing.text(look, LEFT + slot * step, top + 10, heading)
    top += 18
    looks = pool_looks(plan)
    for cluster in plan.clusters:
        _strip_label(drawing, top, cluster.name, cluster.network.block)
        owner = {role: pool.name for pool in cluster.pools for role in pool.subnet_roles}
        for part in range(PARTS):
            look, title = _part(part, owner.get(f"nodes-{part:02d}"), looks)
            drawing.rect(look, LEFT + part * step, top, step - 1, STRIP, title=f"{cluster.name}: /19 number {part}: {title}")
            if part < NODE_SUBNET_SLOTS:
                inside = "detail middle" if look == "track" else f"inside on-{look.removeprefix('cell ')}"
                drawing.text(inside, LEFT + (part + 0.5) * step, top + 15, str(part))
        top += CLUSTER_ROW
    return top


def _part(part: int, pool: str | None, looks: dict[str, str]) -> tuple[str, str]:
    """Return the look and the title of one /19 of a cluster's block."""
    if part < NODE_SUBNET_SLOTS:
        return (f"cell {looks[pool]}", f"pool {pool}") if pool else ("track", "free node subnet")
    if part < addresses.CONTROL_SLOT:
        return "cell service", "services"
    return ("cell plain", "control plane") if part == addresses.CONTROL_SLOT else ("track", "spare")
