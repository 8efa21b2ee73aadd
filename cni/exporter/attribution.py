"""Attribution of bytes to pods; pure, with the time as an argument.

An address is reused by later pods. Its counter is read when its reservation is freed and when the next one is made. Bytes counted until
then belong to the previous pod. Bytes counted from then on wait until the kubelet has named the pod, and are nobody's where it never does.
A late reading, as on a machine that starts thirty pods at once, finds bytes of a free address. They belong to the next pod if one follows
at once, because the processes of the previous pod had ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cni.node.accounting import SETS
from cni.node.addresses import Holder

DIRECTIONS = tuple(SETS)
LINGER_SECONDS = 300.0
"""Time for which a deleted pod is reported after its last bytes: as long as Prometheus considers a series alive.
https://prometheus.io/docs/prometheus/latest/querying/basics/#staleness
"""
UNNAMED_SECONDS = 120.0
"""Time in which the kubelet still reports a pod that has ended; after it, unnamed bytes of an address are nobody's."""
SAME_POD_SECONDS = 10.0
"""Time in which a kubelet may still report the previous pod of an address."""
MOST_PODS = 1_000
"""Most pods reported at once: four times what a machine runs. Above it, the pods that ended first are added to one sum of their
namespace.
"""


@dataclass(frozen=True)
class Pod:
    """A pod as the kubelet reports it; over is true when it has ended."""

    uid: str
    namespace: str
    name: str
    over: bool


Owner = tuple[str, str]
"""Namespace and name of a pod. The name is empty for the sum of a namespace's ended pods; both are empty for unattributed bytes."""
NOBODY: Owner = ("", "")
UNWRITTEN = "unwritten"
"""Container of a reservation whose file exists and is still empty."""


@dataclass
class AddressTenancy:
    """The use of an address by one pod; container is the reservation's, empty where addresses are not reserved on this machine.

    waiting contains the bytes of a pod without a name so far; former is the uid of the address's previous pod.
    """

    container: str
    since: float
    former: str = ""
    uid: str = ""
    owner: Owner | None = None
    released: float | None = None
    waiting: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DIRECTIONS, 0))


@dataclass
class PodBytes:
    """Bytes of one pod by direction. The names of the fields are those of the saved state.

    first is the time of its first report, told its last reported bytes, told_at their time, and ended the time when it lost its address.
    """

    bytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DIRECTIONS, 0))
    first: float | None = None
    told: dict[str, int] | None = None
    told_at: float = 0.0
    ended: float | None = None


class PodTraffic:
    """The bytes of every pod; every public method leaves them consistent."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, int]] = {direction: {} for direction in DIRECTIONS}
        self.tenants: dict[str, AddressTenancy] = {}
        self.bills: dict[Owner, PodBytes] = {NOBODY: PodBytes()}
        self.late: dict[str, dict[str, int]] = {}
        self.resets = 0

    def resume(self, reservations: Mapping[str, str]) -> None:
        """Prepare the first count() after a pause: bytes of an address that changed its pod during the pause are nobody's."""
        for address, tenant in self.tenants.items():
            if tenant.container and reservations.get(address, tenant.container) != tenant.container:
                self._pay(tenant, NOBODY)
                tenant.owner = NOBODY

    def count(self, counters: Mapping[str, Mapping[str, int]]) -> None:
        """Add the increase of each address's counter; a counter that is smaller than before was reset, and its whole value is added."""
        for direction, table in counters.items():
            seen = self.seen[direction]
            for address, value in table.items():
                last = seen.get(address)
                if last is None:
                    # Whoever had it before the exporter first looked.
                    self._add(NOBODY, {direction: value})
                elif value != last:
                    self.resets += value < last
                    self._charge(address, direction, value - last if value > last else value)
                seen[address] = value

    def reserve(self, reservations: Mapping[str, str], now: float) -> bool:
        """Follow the reservations, container by address, just after count(); return whether an address changed its pod."""
        changed = False
        for address, sandbox in reservations.items():
            tenant, container = self.tenants.get(address), sandbox or UNWRITTEN
            if tenant and tenant.released is None and tenant.container in (container, UNWRITTEN):
                tenant.container = container
            else:
                self._open(address, container, now)
                changed = True
        for address, tenant in self.tenants.items():
            if address not in reservations and tenant.container and tenant.released is None:
                tenant.released = now
                changed = True
        return changed

    def name(self, pods: Mapping[str, Iterable[Pod]], requested_at: float) -> bool:
        """Apply the kubelet's answer, requested at that time, to each address; return whether anything changed. Call just after
        reserve().
        """
        before = [(tenant.uid, tenant.released) for tenant in self.tenants.values()]
        for address in {*pods, *self.tenants}:
            here = list(pods.get(address, ()))
            tenant = self.tenants.get(address)
            if tenant is None or (not tenant.container and tenant.owner):
                self._follow_kubelet(address, tenant, here, requested_at)
            elif tenant.owner is None and tenant.since < requested_at and (pod := _likely(tenant, here, requested_at)):
                self._settle(tenant, pod)
        return before != [(tenant.uid, tenant.released) for tenant in self.tenants.values()]

    def samples(self, now: float, zero_seconds: float) -> Iterator[tuple[Owner, str, int]]:
        """Yield owner, direction and bytes of every series.

        A new pod is reported as 0 for `zero_seconds`: Prometheus counts the increase after a series' first sample, and each of several
        servers must have seen the 0.
        """
        for owner, bill in self.bills.items():
            bill.first = now if bill.first is None else bill.first
            young = owner != NOBODY and now - bill.first <= zero_seconds
            reported = dict.fromkeys(DIRECTIONS, 0) if young else bill.bytes
            if reported != bill.told:
                bill.told, bill.told_at = dict(reported), now
            for direction, value in reported.items():
                yield owner, direction, value

    def has_unreported(self) -> bool:
        """Return whether a pod will be reported for the first time."""
        return any(bill.first is None for bill in self.bills.values())

    def tidy(self, now: float) -> None:
        """Attribute bytes that stayed unnamed to nobody, and forget pods whose last bytes were reported long enough ago."""
        for address, gained in self.late.items():
            late = self.tenants.get(address)
            if late and late.owner is None:
                _merge(late.waiting, gained)
            else:
                self._add(late.owner if late and late.owner else NOBODY, gained)
        self.late = {}
        for tenant in self.tenants.values():
            if tenant.owner is None and tenant.released is not None and now - tenant.released > UNNAMED_SECONDS:
                self._pay(tenant, NOBODY)
        self._end_bills(now)
        ended = sorted((bill.ended, owner) for owner, bill in self.bills.items() if bill.ended is not None)
        for at, owner in ended:
            bill = self.bills[owner]
            if bill.told == bill.bytes and now - max(at, bill.told_at) > LINGER_SECONDS:
                del self.bills[owner]
        for _, owner in ended[: max(len(self.bills) - MOST_PODS, 0)]:
            if gone := self.bills.pop(owner, None):
                self._add((owner[0], ""), gone.bytes)

    def holders(self, teams: frozenset[str]) -> dict[str, Holder]:
        """Return the known pods that have an address now."""
        held = {
            address: tenant.owner for address, tenant in self.tenants.items() if tenant.owner and tenant.uid and tenant.released is None
        }
        return {address: Holder(*owner, team_of(owner, teams)) for address, owner in held.items()}

    def unnamed(self) -> int:
        """Return the number of addresses whose pod is not known yet."""
        return sum(tenant.owner is None and tenant.released is None for tenant in self.tenants.values())

    def _end_bills(self, now: float) -> None:
        """Mark pods without an address as ended; sums have no name and do not end."""
        alive = {tenant.owner for tenant in self.tenants.values() if tenant.released is None}
        for owner, bill in self.bills.items():
            if owner in alive or not owner[1]:
                bill.ended = None
            elif bill.ended is None:
                bill.ended = now

    def _charge(self, address: str, direction: str, gained: int) -> None:
        tenant = self.tenants.get(address)
        if tenant is None or tenant.released is not None:
            _merge(self.late.setdefault(address, dict.fromkeys(DIRECTIONS, 0)), {direction: gained})
        elif tenant.owner is None:
            tenant.waiting[direction] += gained
        else:
            self._add(tenant.owner, {direction: gained})

    def _add(self, owner: Owner, gained: Mapping[str, int]) -> None:
        _merge(self.bills.setdefault(owner, PodBytes()).bytes, gained)

    def _pay(self, tenant: AddressTenancy, owner: Owner) -> None:
        self._add(owner, tenant.waiting)
        tenant.waiting = dict.fromkeys(DIRECTIONS, 0)

    def _open(self, address: str, container: str, now: float) -> AddressTenancy:
        former = self.tenants.get(address)
        if former and former.owner is None:
            self._pay(former, NOBODY)
        tenant = self.tenants[address] = AddressTenancy(container, now, former=former.uid or former.former if former else "")
        _merge(tenant.waiting, self.late.pop(address, {}))
        return tenant

    def _settle(self, tenant: AddressTenancy, pod: Pod) -> None:
        tenant.uid, tenant.owner = pod.uid, (pod.namespace, pod.name)
        self._pay(tenant, tenant.owner)

    def _follow_kubelet(self, address: str, tenant: AddressTenancy | None, here: list[Pod], now: float) -> None:
        """Follow the kubelet alone where this machine has no reservations: an address changes its pod when the kubelet says so."""
        alive = [pod for pod in here if not pod.over]
        if alive and (tenant is None or all(pod.uid != tenant.uid for pod in alive)):
            self._settle(self._open(address, "", now), alive[0])
        elif tenant and not alive and tenant.released is None:
            tenant.released = now


def _merge(total: dict[str, int], gained: Mapping[str, int]) -> None:
    for direction, value in gained.items():
        total[direction] += value


def team_of(owner: Owner, teams: frozenset[str]) -> str:
    """Return the team of a pod: its namespace, where that is a team's."""
    return owner[0] if owner[0] in teams else ""


def _likely(tenant: AddressTenancy, here: list[Pod], now: float) -> Pod | None:
    """Return the most likely pod of an address: a new one, or the former one once the kubelet's answer is recent enough."""
    fresh = sorted((pod for pod in here if pod.uid != tenant.former), key=lambda pod: pod.over)
    if fresh:
        return fresh[0]
    same = [pod for pod in here if not pod.over]
    return same[0] if same and now - tenant.since > SAME_POD_SECONDS else None
