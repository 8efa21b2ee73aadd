"""Cost of virtual machines per hour: of a plan by pool, cluster and region, and of any set of machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from components.plan.model import ClusterPlan, RegionPlan
from components.plan.vm_sizes import VM_SIZES, VmSize
from components.spec.pool import Capacity
from components.spec.region import NegotiatedPrice

HOURS_PER_MONTH = 730
"""Hours of a month in Azure's pricing calculator: https://azure.microsoft.com/pricing/calculator/"""
INCLUDED = (
    "virtual machines only, Linux, pay-as-you-go; not disks, traffic, load balancers, gateways, reservations or savings plans; "
    "spot machines at the pay-as-you-go price"
)
"""What a total contains."""
CONTROL_PLANE = "control plane"


@dataclass(frozen=True)
class ListPrice:
    """List price of one machine of a VM size in a location: pay-as-you-go, Linux; date (YYYY-MM-DD) is that of the snapshot."""

    usd_per_hour: Decimal
    date: str
    source: str


ListPrices = Mapping[tuple[str, str], ListPrice]
"""List prices by VM size and Azure location."""


@dataclass(frozen=True)
class Price:
    """Price of one machine: the negotiated price of the region file, otherwise the list price, which has a date and a source."""

    usd_per_hour: Decimal
    date: str | None
    source: str

    @property
    def negotiated(self) -> bool:
        """Return whether the price is from the region file."""
        return self.date is None


@dataclass(frozen=True)
class Prices:
    """Prices that apply in a region: its negotiated prices take precedence over list prices."""

    listed: ListPrices
    negotiated: Mapping[str, Decimal]

    def of(self, size: str, location: str) -> Price | None:
        """Return the price of one machine; None where neither the region file nor the list has one for this location."""
        if size in self.negotiated:
            return Price(self.negotiated[size], None, "prices in the region file")
        listed = self.listed.get((size, location))
        return None if listed is None else Price(listed.usd_per_hour, listed.date, listed.source)


@dataclass(frozen=True)
class CostRow:
    """Machines of one pool or control-plane role with the price of one machine; None where there is no price."""

    cluster: str
    role: str
    note: str
    size: VmSize
    location: str
    machines: int
    spot: bool
    price: Price | None

    @property
    def gpus(self) -> int:
        """Return the GPUs of all machines."""
        return self.machines * self.size.gpus

    @property
    def vcpus(self) -> int:
        """Return the vCPUs of all machines."""
        return self.machines * self.size.vcpus

    @property
    def usd_per_hour(self) -> Decimal | None:
        """Return the price of all machines, in US dollars per hour."""
        return None if self.price is None else self.machines * self.price.usd_per_hour

    @property
    def usd_per_gpu_hour(self) -> Decimal | None:
        """Return the price per GPU and hour; None for a size without GPUs."""
        return self.price.usd_per_hour / self.size.gpus if self.price is not None and self.size.gpus else None


@dataclass(frozen=True)
class Unpriced:
    """Machines of a size that has no price in a location."""

    size: str
    location: str
    machines: int

    def __str__(self) -> str:
        return f"{self.size} in {self.location}, {machine_count(self.machines)}"


@dataclass(frozen=True)
class CostTotal:
    """Sum over machines; usd_per_hour is that of the machines with a price, unpriced names the others.

    dates are those of the list prices used, oldest first; negotiated and spot count machines.
    """

    machines: int
    gpus: int
    vcpus: int
    usd_per_hour: Decimal
    negotiated: int
    spot: int
    unpriced: tuple[Unpriced, ...]
    dates: tuple[str, ...]

    @property
    def usd_per_month(self) -> Decimal:
        """Return the price of HOURS_PER_MONTH hours."""
        return self.usd_per_hour * HOURS_PER_MONTH

    @property
    def usd_per_gpu_hour(self) -> Decimal | None:
        """Return the price of all machines per GPU and hour; None without GPUs, or where a machine has no price."""
        return self.usd_per_hour / self.gpus if self.gpus and not self.unpriced else None

    @property
    def priced(self) -> int:
        """Return the number of machines with a price."""
        return self.machines - sum(one.machines for one in self.unpriced)


@dataclass(frozen=True)
class RegionCost:
    """Cost of a planned region: a row per pool and control-plane role, totals by cluster name, and the total."""

    rows: tuple[CostRow, ...]
    clusters: Mapping[str, CostTotal]
    total: CostTotal


def prices_of_region(listed: ListPrices, negotiated: Iterable[NegotiatedPrice]) -> Prices:
    """Return the prices that apply in a region, given the list prices and the region file's `prices`."""
    return Prices(listed, {one.vm_size: Decimal(str(one.usd_per_hour)) for one in negotiated})


def cost_of_region(plan: RegionPlan, listed: ListPrices) -> RegionCost:
    """Return the cost of all machines of a plan: the pools, the API servers and the etcd members."""
    prices = prices_of_region(listed, plan.spec.prices)
    rows = tuple(row for cluster in plan.clusters for row in _rows(cluster, plan.spec.location, prices))
    clusters = {cluster.name: total(row for row in rows if row.cluster == cluster.name) for cluster in plan.clusters}
    return RegionCost(rows, clusters, total(rows))


def cost_of_machines(machines: Mapping[tuple[str, str], int], prices: Prices) -> CostTotal:
    """Return the cost of numbers of machines by VM size and location."""
    return total(
        CostRow("", "", "", VM_SIZES.get(size) or VmSize(size, "", 0, 0), location, count, False, prices.of(size, location))
        for (size, location), count in machines.items()
    )


def total(rows: Iterable[CostRow]) -> CostTotal:
    """Return the sum of rows; rows without machines do not count."""
    used = [row for row in rows if row.machines]
    unpriced: Counter[tuple[str, str]] = Counter()
    for row in used:
        if row.price is None:
            unpriced[row.size.name, row.location] += row.machines
    return CostTotal(
        machines=sum(row.machines for row in used),
        gpus=sum(row.gpus for row in used),
        vcpus=sum(row.vcpus for row in used),
        usd_per_hour=sum((row.usd_per_hour for row in used if row.usd_per_hour is not None), Decimal(0)),
        negotiated=sum(row.machines for row in used if row.price is not None and row.price.negotiated),
        spot=sum(row.machines for row in used if row.spot),
        unpriced=tuple(Unpriced(size, location, count) for (size, location), count in sorted(unpriced.items())),
        dates=tuple(sorted({row.price.date for row in used if row.price is not None and row.price.date is not None})),
    )


def _rows(cluster: ClusterPlan, location: str, prices: Prices) -> Iterator[CostRow]:
    for pool in cluster.pools:
        note = f"zone {pool.spec.zone.value}, {pool.spec.capacity.value}"
        spot = pool.spec.capacity is Capacity.SPOT
        yield CostRow(cluster.name, pool.name, note, pool.size, location, pool.spec.nodes, spot, prices.of(pool.size.name, location))
    groups = [("API servers", cluster.api_servers.size, cluster.api_servers.count)]
    groups += [(f"{etcd.role} members", etcd.size, len(etcd.members)) for etcd in (cluster.etcd, cluster.events_etcd)]
    for role, size, count in groups:
        yield CostRow(cluster.name, role, CONTROL_PLANE, size, location, count, False, prices.of(size.name, location))


def dollars(value: Decimal) -> str:
    """Return US dollars and cents."""
    return f"{value:,.2f}"


def machine_count(count: int) -> str:
    """Return a number of machines in words."""
    return f"{count:,} machine{'' if count == 1 else 's'}"


def price_basis(cost: CostTotal) -> str:
    """Return the dates of the list prices, and the number of machines with a negotiated price."""
    listed = cost.priced - cost.negotiated
    parts = [f"list prices of {' to '.join(dict.fromkeys((cost.dates[0], cost.dates[-1])))}"] if listed else []
    parts += [f"negotiated prices for {machine_count(cost.negotiated)}"] if cost.negotiated else []
    return " and ".join(parts) or "no price applies"


def unpriced_text(cost: CostTotal) -> str:
    """Return the sizes without price, with locations and numbers of machines; empty where every machine has a price."""
    return f"without price: {'; '.join(map(str, cost.unpriced))}" if cost.unpriced else ""


def cost_text(cost: CostTotal) -> str:
    """Return a total in one line: per hour, per month and per GPU-hour, the basis, and the machines without price."""
    least = "at least " if cost.unpriced else ""
    amounts = [f"{least}{dollars(cost.usd_per_hour)} US$ per hour", f"{least}{dollars(cost.usd_per_month)} per month ({HOURS_PER_MONTH} h)"]
    if cost.usd_per_gpu_hour is not None:
        amounts.append(f"{dollars(cost.usd_per_gpu_hour)} per GPU-hour")
    return "; ".join(part for part in (", ".join(amounts), f"virtual machines at {price_basis(cost)}", unpriced_text(cost)) if part)


def cost_change_text(before: CostTotal, after: CostTotal) -> str:
    """Return the difference between two totals in one line; empty where neither the cost nor the machines without price differ."""
    if (before.usd_per_hour, before.unpriced) == (after.usd_per_hour, after.unpriced):
        return ""
    change = after.usd_per_hour - before.usd_per_hour
    missing = unpriced_text(after) if before.unpriced == after.unpriced else f"without price: {_listed(before)} -> {_listed(after)}"
    return "; ".join(
        part
        for part in (
            f"{dollars(before.usd_per_hour)} -> {dollars(after.usd_per_hour)} US$ per hour ({'+' if change >= 0 else ''}{dollars(change)})",
            f"virtual machines at {price_basis(after if after.priced else before)}",
            missing,
        )
        if part
    )


def _listed(cost: CostTotal) -> str:
    return ", ".join(f"{one.size} in {one.location} ({machine_count(one.machines)})" for one in cost.unpriced) or "none"
