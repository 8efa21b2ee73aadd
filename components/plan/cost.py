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


@dataclass(frozen=True, kw_only=True)
class PricedMachines:
    """Machines of one VM size with the price of one machine; None where there is no price."""

    size: VmSize
    location: str
    machines: int
    spot: bool = False
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


@dataclass(frozen=True, kw_only=True)
class CostRow(PricedMachines):
    """Machines of one pool or control-plane role."""

    cluster: str
    role: str
    note: str


@dataclass(frozen=True)
class Unpriced:
    """Machines of a size that has no price in a location."""

    size: str
    location: str
    machines: int


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
        PricedMachines(
            size=VM_SIZES.get(size) or VmSize(size, "", 0, 0), location=location, machines=count, price=prices.of(size, location)
        )
        for (size, location), count in machines.items()
    )


def total(rows: Iterable[PricedMachines]) -> CostTotal:
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
    """Yield a row for each pool, and for each role of the control plane."""
    for pool in cluster.pools:
        yield CostRow(
            cluster=cluster.name,
            role=pool.name,
            note=f"zone {pool.spec.zone.value}, {pool.spec.capacity.value}",
            size=pool.size,
            location=location,
            machines=pool.spec.nodes,
            spot=pool.spec.capacity is Capacity.SPOT,
            price=prices.of(pool.size.name, location),
        )
    groups = [("API servers", cluster.api_servers.size, cluster.api_servers.count)]
    groups += [(f"{etcd.role} members", etcd.size, len(etcd.members)) for etcd in (cluster.etcd, cluster.events_etcd)]
    for role, size, count in groups:
        price = prices.of(size.name, location)
        yield CostRow(cluster=cluster.name, role=role, note=CONTROL_PLANE, size=size, location=location, machines=count, price=price)
