"""Quota and hardware of machines: reservations, placement on hosts, and allocation failures.

Reservations and placements are saved with the model. A restored resource does not reserve or place anything again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rehearsal.azure import hosts
from rehearsal.azure.errors import AzureError
from rehearsal.azure.hosts import Hosts
from rehearsal.azure.quota import MACHINES, QuotaScope, QuotaUsage, quota_names, size_of
from rehearsal.azure.resource import Json, location_key
from rehearsal.azure.scenario import AllocationFailure, elapsed, scenario_of

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

_GUIDANCE = "Read more about improving likelihood of allocation success at https://aka.ms/allocation-guidance"

Reserved = tuple[str, str, str]
"""Capacity reservation group, VM size and zone, all in lower case; the zone is empty outside one."""


class Capacity:
    """Quota in use, capacity reservations and the machines that use them, and hosts."""

    def __init__(self) -> None:
        self.quota = QuotaUsage()
        self.hosts = Hosts()
        self._reserved: dict[Reserved, tuple[int, int]] = {}

    def reserve(
        self, cloud: Cloud, *, subscription: str, location: str, size: str, spot: bool, machines: int, group: str = "", zone: str = ""
    ) -> None:
        """Take quota for a number of machines. Raises AzureError OperationNotAllowed and then takes nothing.

        group is the id of their capacity reservation group; machines within a reservation need no further quota.
        """
        self._change(cloud, (subscription, location), size, spot, machines, (group, size, zone))

    def release(
        self, cloud: Cloud, *, subscription: str, location: str, size: str, spot: bool, machines: int, group: str = "", zone: str = ""
    ) -> None:
        """Release what reserve took. Raises ValueError for more than was taken."""
        self._change(cloud, (subscription, location), size, spot, -machines, (group, size, zone))

    def set_reserved(
        self, cloud: Cloud, *, subscription: str, location: str, size: str, group: str, zone: str, machines: int, attempt: int = 0
    ) -> None:
        """Set the size of a capacity reservation. Raises AzureError if quota or hardware is missing, and then changes nothing.

        Unused machines of it count as used quota; attempt is the number of earlier attempts to enlarge it.

        https://learn.microsoft.com/azure/virtual-machines/capacity-reservation-overview
        """
        known = size_of(size, location)
        key = _reserved(group, size, zone)
        holds, used = self._reserved.get(key, (0, 0))
        if machines > max(holds, used) and self._fails(cloud, "/".join(key), location, known.name, zone, False, attempt):
            raise _no_hardware(zone, ())
        more = (max(machines, used) - max(holds, used)) * known.vcpus
        self.quota.change(cloud, _scope(subscription, location), dict.fromkeys(quota_names(known, spot=False), more))
        self._store(key, machines, used)

    def drawn(self, *, group: str, size: str, zone: str) -> int:
        """Return the number of machines that use a capacity reservation, including those beyond its size."""
        return self._reserved.get(_reserved(group, size, zone), (0, 0))[1]

    def place(
        self,
        cloud: Cloud,
        *,
        key: str,
        location: str,
        size: str,
        zone: str = "",
        spot: bool = False,
        attempt: int = 0,
        group: str = "",
        constraints: tuple[str, ...] = (),
    ) -> str:
        """Place a machine on a host and return the host's name. Raises AzureError AllocationFailed or a related code.

        key and attempt identify the machine and the attempt. constraints are the restrictions in Azure's words.
        """
        known = size_of(size, location)
        holds, used = self._reserved.get(_reserved(group, size, zone), (0, 0))
        if not (group and used <= holds) and self._fails(cloud, key, location, known.name, zone, spot, attempt):
            raise _no_hardware(zone, constraints)
        return self.hosts.place(cloud, location.lower(), zone, known.name, key, attempt)

    def leave(self, host: str, *, broken: bool = False) -> None:
        """Take a machine off its host. A broken host is not used again. Raises KeyError for a host without a machine."""
        self.hosts.leave(host, broken=broken)

    def move(self, cloud: Cloud, host: str, *, key: str, attempt: int, broken: bool = False) -> str:
        """Move a machine to another host, as a redeploy does, and return the new host.

        Raises AzureError if there is none; the machine then stays on its host.
        """
        location, zone, size, _ = host.split("/")
        new = self.place(cloud, key=key, location=location, size=size, zone="" if zone == "-" else zone, attempt=attempt)
        self.hosts.leave(host, broken=broken)
        return new

    def faults(self, cloud: Cloud, host: str) -> tuple[str, ...]:
        """Return the faults of a host that only a check on the machine detects: gpu, infiniband, nvlink, nvme."""
        return hosts.host_faults(cloud, host)

    def usages(self, cloud: Cloud, subscription: str, location: str) -> list[Json]:
        """Return usage and limits as `Microsoft.Compute/locations/<location>/usages` returns them."""
        return self.quota.usages(cloud, _scope(subscription, location))

    def dump(self) -> dict[str, Any]:
        """Return the whole state as plain JSON."""
        reserved = [[*key, *held] for key, held in self._reserved.items()]
        return {"quota": self.quota.dump(), "hosts": self.hosts.dump(), "reserved": reserved}

    def load(self, data: dict[str, Any]) -> None:
        """Restore the state that dump returned."""
        self.quota.load(data["quota"])
        self.hosts.load(data["hosts"])
        self._reserved = {(group, size, zone): (holds, used) for group, size, zone, holds, used in data["reserved"]}

    def _change(self, cloud: Cloud, where: QuotaScope, size: str, spot: bool, machines: int, reserved: Reserved) -> None:
        known = size_of(size, where[1])
        charged, key = machines, _reserved(*reserved)
        holds, used = self._reserved.get(key, (0, 0))
        if reserved[0]:
            charged = max(holds, used + machines) - max(holds, used)
        changes = {MACHINES: machines, **dict.fromkeys(quota_names(known, spot), charged * known.vcpus)}
        self.quota.change(cloud, _scope(*where), changes)
        if reserved[0]:
            self._store(key, holds, used + machines)

    def _store(self, key: Reserved, holds: int, used: int) -> None:
        if holds or used:
            self._reserved[key] = (holds, used)
        else:
            self._reserved.pop(key, None)

    def _fails(self, cloud: Cloud, key: str, location: str, size: str, zone: str, spot: bool, attempt: int) -> bool:
        rows = enumerate(scenario_of(cloud).allocation_failures)
        meant = (one for one in rows if _affects(one[1], location, size, zone, spot) and one[1].holds(elapsed(cloud)))
        return any(cloud.draw("allocation", number, key, attempt) < row.rate for number, row in meant)


def capacity_of(cloud: Cloud) -> Capacity:
    """Return the capacity that all machines of a model share."""
    return cast("Capacity", cloud.services.setdefault("capacity", Capacity()))


def _scope(subscription: str, location: str) -> QuotaScope:
    return subscription.lower(), location_key(location)


def _reserved(group: str, size: str, zone: str) -> Reserved:
    return group.lower(), size.lower(), zone


def _affects(row: AllocationFailure, location: str, size: str, zone: str, spot: bool) -> bool:
    return row.takes(size) and row.location in (None, location.lower()) and row.zone in (None, zone) and row.spot in (None, spot)


def _no_hardware(zone: str, constraints: tuple[str, ...]) -> AzureError:
    """Return the failure with Azure's message:
    https://learn.microsoft.com/troubleshoot/azure/virtual-machines/windows/allocation-failure"""
    if constraints:
        all_constraints = (*(("Availability Zone",) if zone else ()), *constraints, "VM Size")
        lines = "".join(f"\n  - {one}" for one in all_constraints)
        return AzureError(
            409,
            "OverconstrainedZonalAllocationRequest" if zone else "OverconstrainedAllocationRequest",
            "Allocation failed. VM(s) with the following constraints cannot be allocated, because the condition is too restrictive. Please "
            f"remove some constraints and try again. Constraints applied are:{lines}\n",
        )
    code, where = ("ZonalAllocationFailed", "zone") if zone else ("AllocationFailed", "region")
    message = f"Allocation failed. We do not have sufficient capacity for the requested VM size in this {where}. {_GUIDANCE}"
    return AzureError(409, code, message)
