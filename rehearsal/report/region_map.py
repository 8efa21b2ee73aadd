"""Drawing of a region: the hub, its connection to each cluster, and each cluster's control plane and scale sets by subnet."""

from __future__ import annotations

from collections.abc import Sequence

from components.plan.model import API_SERVER_PORT, ClusterPlan, EtcdPlan, HubPlan, PoolPlan, RegionPlan, SubnetPlan
from components.spec.cluster import Commons, Connectivity
from components.spec.pool import Interconnect
from rehearsal.report.drawing import CHARACTER_WIDTH, Drawing, fitted
from rehearsal.report.palette import is_spot, pool_looks

WIDTH = 960.0
GUTTER = 116.0
BUS = 26.0
HUB_HEIGHT = 104.0
GAP = 18.0
INSET = 14.0
HEADER = 44.0
CONTROL_WIDTH = 232.0
CONTROL_HEIGHT = 188.0
API_HEIGHT = 72.0
TRACK_WIDTH = 256.0
SUBNET_ROW = 18.0
CELL = 13.0
SAMPLE = 22.0
POOL_ROW = 22.0
MEMBER = 13.0
FONT = 12.5

NODES_LEFT = GUTTER + INSET + CONTROL_WIDTH + 24
TRACK_LEFT = NODES_LEFT + 182
COUNT_LEFT = TRACK_LEFT + TRACK_WIDTH + 10


def region_map(plan: RegionPlan) -> Drawing:
    """Return the map of a region, as tall as its clusters need."""
    drawing = Drawing(f"Map of {plan.name}: the hub, {len(plan.clusters)} clusters and their scale sets", WIDTH)
    looks = pool_looks(plan)
    most = max((pool.machines_per_subnet for cluster in plan.clusters for pool in cluster.pools), default=1)
    per_machine = TRACK_WIDTH / max(most, 1)
    _hub(drawing, plan)
    top, branch = HUB_HEIGHT + GAP, HUB_HEIGHT
    for cluster in plan.clusters:
        height = _cluster_height(cluster)
        _cluster(drawing, cluster, top, height, looks, per_machine)
        branch = _branch(drawing, cluster, top, plan.hub)
        top += height + GAP
    drawing.line("bus", (BUS, HUB_HEIGHT), (BUS, branch))
    drawing.height = _legend(drawing, top + 4, per_machine, most)
    return drawing


def _hub(drawing: Drawing, plan: RegionPlan) -> None:
    hub = plan.hub
    drawing.rect(
        "box hub", 0.5, 0.5, WIDTH - 1, HUB_HEIGHT - 0.5, radius=4, title=f"Hub network {hub.vnet_name}", mark=("hub", hub.vnet_name)
    )
    drawing.text("name", INSET, 24, "Hub")
    drawing.text(
        "detail",
        INSET + 42,
        24,
        fitted(f"{hub.vnet_name} · {hub.address_prefix} · VPN clients in {hub.client_pool}", WIDTH - 80, FONT),
    )
    notes = {
        "gateway": f"VPN gateway {plan.spec.hub.gateway.value}",
        "runner": "runs the region's updates",
        "endpoints": "private endpoints",
        "resolver": f"DNS resolver {hub.resolver_address}",
    }
    width = (WIDTH - 2 * INSET - 12 * (len(hub.subnets) - 1)) / len(hub.subnets)
    for position, subnet in enumerate(hub.subnets):
        left = INSET + position * (width + 12)
        drawing.rect("part", left, 38, width, 52, radius=3, title=f"Subnet {subnet.name}, {subnet.cidr}", mark=("hub-subnet", subnet.role))
        drawing.spans(left + 10, 59, ("label", subnet.role), ("detail", subnet.cidr))
        drawing.text("detail", left + 10, 78, fitted(notes.get(subnet.role, ""), width - 16, FONT))


def _cluster_height(cluster: ClusterPlan) -> float:
    rows = sum(POOL_ROW + SUBNET_ROW * len(pool.subnet_roles) for pool in cluster.pools)
    return HEADER + max(CONTROL_HEIGHT, rows) + INSET


def _cluster(drawing: Drawing, cluster: ClusterPlan, top: float, height: float, looks: dict[str, str], per_machine: float) -> None:
    spec = cluster.spec
    purpose = "research commons" if isinstance(spec.purpose, Commons) else f"dedicated to {spec.purpose.team}"
    own = f" · subscription {spec.subscription[:8]}" if spec.subscription else ""
    drawing.rect(
        "box", GUTTER, top, WIDTH - GUTTER - 0.5, height, radius=4, title=f"Cluster {cluster.name}", mark=("cluster", cluster.name)
    )
    detail = f"{purpose} · {cluster.nodes:,} nodes · slot {spec.slot}, {cluster.network.block}{own} · Kubernetes {spec.kubernetes}"
    room = WIDTH - GUTTER - 3 * INSET - len(cluster.name) * 9
    drawing.spans(GUTTER + INSET, top + 25, ("name", cluster.name), ("detail", fitted(detail, room, FONT)))
    _control_plane(drawing, cluster, top + HEADER)
    y = top + HEADER
    for pool in cluster.pools:
        _pool(drawing, cluster, pool, y, looks[pool.name], per_machine)
        y += POOL_ROW + SUBNET_ROW * len(pool.subnet_roles)


def _control_plane(drawing: Drawing, cluster: ClusterPlan, top: float) -> None:
    left, servers = GUTTER + INSET, cluster.api_servers
    drawing.rect(
        "part",
        left,
        top,
        CONTROL_WIDTH,
        70,
        radius=3,
        title=f"API servers {servers.name} behind {servers.load_balancer}",
        mark=("api", cluster.name),
    )
    drawing.text("label", left + 10, top + 20, "API servers")
    drawing.text("detail end", left + CONTROL_WIDTH - 10, top + 20, f"{servers.count} × {short_size(servers.size.name)}")
    titles = [f"{servers.name}: one of {servers.count} API servers, zones {', '.join(servers.zones)}"] * servers.count
    _row_of(drawing, "square", left + 10, top + 30, CONTROL_WIDTH - 20, titles)
    drawing.text("detail", left + 10, top + 61, f"{servers.address}:{API_SERVER_PORT}")
    top += API_HEIGHT + 10
    drawing.rect("part", left, top, CONTROL_WIDTH, CONTROL_HEIGHT - API_HEIGHT - 10, radius=3, title="etcd members by zone")
    etcd_clusters = (cluster.etcd, cluster.events_etcd)
    zones = sorted({member.zone for etcd in etcd_clusters for member in etcd.members})
    first, width = left + 92, (CONTROL_WIDTH - 98) / max(len(zones), 1)
    for column, zone in enumerate(zones):
        drawing.text("detail", first + column * width, top + 18, f"zone {zone}")
    for row, etcd in enumerate(etcd_clusters):
        _etcd(drawing, etcd, left + 10, top + 32 + 37 * row, zones, first, width)


def _etcd(drawing: Drawing, etcd: EtcdPlan, left: float, y: float, zones: list[str], first: float, width: float) -> None:
    drawing.text("label", left, y + 7, etcd.role)
    drawing.text("detail", left, y + 22, short_size(etcd.size.name))
    for column, zone in enumerate(zones):
        here = [member for member in etcd.members if member.zone == zone]
        titles = [f"{member.name} {member.address} zone {zone}" for member in here]
        _row_of(drawing, "round", first + column * width, y, width - 4, titles, [member.name for member in here])


def _row_of(drawing: Drawing, look: str, left: float, top: float, width: float, titles: list[str], names: Sequence[str] = ()) -> None:
    """Draw as many squares or circles as fit, and the number of the others."""
    room = int(width / MEMBER)
    shown = len(titles) if len(titles) <= room else max(room - 3, 0)
    for position, title in enumerate(titles[:shown]):
        mark = ("machine", names[position]) if names else None
        x = left + position * MEMBER
        if look == "round":
            drawing.circle("machine", x + 5, top + 5, 5, title=title, mark=mark)
        else:
            drawing.rect("machine", x, top, 10, 10, radius=1, title=title, mark=mark)
    if shown < len(titles):
        text = f"{'+' if shown else ''}{len(titles) - shown:,}"
        drawing.text("detail", left + shown * MEMBER, top + 10, text, title=f"{len(titles):,} machines")


def _pool(drawing: Drawing, cluster: ClusterPlan, pool: PoolPlan, top: float, look: str, per_machine: float) -> None:
    spec = pool.spec
    interconnect = "InfiniBand" if spec.interconnect is Interconnect.INFINIBAND else "Ethernet"
    sets = f"{len(pool.scale_sets)} scale set{'' if len(pool.scale_sets) == 1 else 's'}"
    title = f"Pool {pool.name} of {cluster.name}: {spec.nodes:,} machines in {sets}, image {pool.image.pin}"
    drawing.rect(f"cell {look}", NODES_LEFT, top + 4, 10, 10, title=title, mark=("pool", f"{cluster.name}/{pool.name}"))
    bought = " · spot" if is_spot(pool) else ""
    detail = f"{spec.nodes:,} × {short_size(pool.size.name)}{bought} · zone {spec.zone.value} · {interconnect} · {sets}"
    room = WIDTH - NODES_LEFT - 17 - len(pool.name) * 7 - 8
    drawing.spans(NODES_LEFT + 17, top + 14, ("label", pool.name), ("detail", fitted(detail, room, FONT)))
    for row, role in enumerate(pool.subnet_roles):
        _subnet(drawing, pool, role, _subnet_of(cluster, role), top + POOL_ROW + row * SUBNET_ROW, look, per_machine)


def _subnet_of(cluster: ClusterPlan, role: str) -> SubnetPlan | None:
    """Return the subnet of a role; None if the pool needs more slots than the cluster has, which is an exceeded limit."""
    return next((subnet for subnet in cluster.network.subnets if subnet.role == role), None)


def _subnet(drawing: Drawing, pool: PoolPlan, role: str, subnet: SubnetPlan | None, y: float, look: str, per_machine: float) -> None:
    cidr = subnet.cidr if subnet else "no such slot"
    sets = [item for item in pool.scale_sets if item.subnet_role == role]
    machines = sum(item.capacity for item in sets)
    drawing.text("detail", NODES_LEFT + 17, y + 11, role)
    drawing.text("detail end", TRACK_LEFT - 8, y + 11, cidr)
    drawing.rect(
        "track",
        TRACK_LEFT,
        y,
        max(pool.machines_per_subnet * per_machine, 2),
        CELL,
        title=f"{role} {cidr} has room for {pool.machines_per_subnet:,} machines",
    )
    x = TRACK_LEFT
    for item in sets:
        width = item.capacity * per_machine
        title = f"{item.name}: {item.capacity} machines, {item.capacity * pool.addresses_per_machine:,} addresses"
        drawing.rect(f"cell {look}", x, y, max(width - 0.8, 2.4), CELL, title=title, mark=("scale-set", item.name))
        if is_spot(pool):
            drawing.rect("stripes", x, y, max(width - 0.8, 2.4), CELL)
        x += width
    drawing.text("count", COUNT_LEFT, y + 11, f"{machines:,} of {pool.machines_per_subnet:,}")


def _branch(drawing: Drawing, cluster: ClusterPlan, top: float, hub: HubPlan) -> float:
    """Draw the line from the hub to a cluster; return its height on the page."""
    y = top + HEADER + 35
    if cluster.connectivity is Connectivity.PRIVATE_LINK:
        title = f"Private endpoint {cluster.api_servers.endpoint_name} in the hub: only the API servers of {cluster.name} are reachable"
        drawing.line("link", (BUS, y), (GUTTER + INSET, y), title=title)
        drawing.line("tip", (GUTTER + INSET - 6, y - 4), (GUTTER + INSET, y), (GUTTER + INSET - 6, y + 4))
        drawing.text("detail", BUS + 8, y - 7, "private link")
        drawing.text("detail", BUS + 8, y + 17, cluster.api_servers.endpoint_address or "")
    else:
        drawing.line(
            "peering",
            (BUS, y),
            (GUTTER, y),
            title=f"{hub.vnet_name} and {cluster.network.vnet_name} are peered: the hub reaches nodes and pods",
        )
        drawing.text("detail", BUS + 8, y - 7, "peering")
        drawing.text("detail", BUS + 8, y + 17, "all addresses")
    return y


def _legend(drawing: Drawing, top: float, per_machine: float, most: int) -> float:
    y, x = top + 12, GUTTER
    scale = next((step for step in (100, 10, 1) if step <= most / 4), 1)
    machines = f"{scale} machine{'' if scale == 1 else 's'}: a cell is one scale set; its width is its number of machines"
    entries = (
        (("cell plain",), scale * per_machine, machines),
        (("track",), SAMPLE, "room left in the subnet"),
        (("cell plain", "stripes"), SAMPLE, "spot"),
    )
    for looks, width, text in entries:
        room = width + 8 + len(text) * FONT * CHARACTER_WIDTH
        if x > GUTTER and x + room > WIDTH:
            y, x = y + 20, GUTTER
        for look in looks:
            drawing.rect(look, x, y - 10, width, CELL)
        drawing.text("detail", x + width + 8, y + 1, text)
        x += room + 24
    return y + 12


def short_size(name: str) -> str:
    """Return the name of a VM size without the common prefix."""
    return name.removeprefix("Standard_")
