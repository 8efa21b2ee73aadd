"""Quota usage of a subscription in a location: machines and vCPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from components.plan.vm_sizes import VM_SIZES, VmSize
from rehearsal.azure.errors import AzureError, conflict
from rehearsal.azure.resource import Json
from rehearsal.azure.scenario import Grant, scenario_of
from rehearsal.azure.vm_size_names import vm_size

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

MACHINES, CORES, SPOT_CORES = "virtualMachines", "cores", "lowPriorityCores"
"""Names under which `az vm list-usage` counts machines, regular vCPUs of every family, and spot vCPUs."""
MACHINES_BOUND = 25_000
"""Machines per subscription and location: https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits"""
SETS, SETS_BOUND = "virtualMachineScaleSets", 2_500
"""Scale sets per subscription and location; the same page."""
NO_BOUND = 2**31 - 1
"""Limit that `usages` returns for a family without a bound."""
_QUOTA_LABELS = {CORES: "Total Regional Cores", SPOT_CORES: "LowPriorityCores"}
_LOCALIZED = {
    CORES: "Total Regional vCPUs",
    SPOT_CORES: "Total Regional Low-priority vCPUs",
    MACHINES: "Virtual Machines",
    SETS: "Virtual Machine Scale Sets",
}
QuotaScope = tuple[str, str]
"""Subscription and location, both in lower case."""


def size_of(name: str, location: str) -> VmSize:
    """Return the VM size of a name in any case. Raises AzureError SkuNotAvailable for what is no name of a size."""
    found = vm_size(name)
    if found is None:
        message = (
            f"The requested size '{name}' is currently not available in location '{location}'. Please try another size or deploy to a "
            "different location or different zone. Names of sizes: https://learn.microsoft.com/azure/virtual-machines/vm-naming-conventions."
        )
        raise conflict("SkuNotAvailable", message, name)
    return found


def quota_names(size: VmSize, spot: bool) -> tuple[str, ...]:
    """Return the quota names that a size's vCPUs count under; spot machines have one separate quota.

    https://learn.microsoft.com/azure/virtual-machines/quotas
    """
    return (SPOT_CORES,) if spot else (CORES, size.family)


class QuotaUsage:
    """Used quota by subscription, location and name. A change that exceeds a bound changes nothing."""

    def __init__(self) -> None:
        self._used: dict[QuotaScope, Counter[str]] = {}

    def used(self, scope: QuotaScope, name: str) -> int:
        """Return the vCPUs or machines in use under a name."""
        return self._used.get(scope, Counter())[name.lower()]

    def change(self, cloud: Cloud, scope: QuotaScope, changes: Mapping[str, int]) -> None:
        """Change the usage of several names. Raises AzureError OperationNotAllowed if one exceeds its bound."""
        used = self._used.get(scope) or Counter()
        for name, more in changes.items():
            bound = self.bound(cloud, scope, name)
            if more > 0 and bound is not None and used[name.lower()] + more > bound:
                raise _exceeded(name, scope, bound, used[name.lower()], more)
            if used[name.lower()] + more < 0:
                raise ValueError(f"{-more} of {name} are given back in {scope[1]}, and {used[name.lower()]} are in use")
        for name, more in changes.items():
            used[name.lower()] += more
        self._used[scope] = used

    def bound(self, cloud: Cloud, scope: QuotaScope, name: str) -> int | None:
        """Return the granted quota of a name from the most specific row; None means unbounded."""
        if name == MACHINES:
            return MACHINES_BOUND
        rows = [row for row in scenario_of(cloud).quotas.granted if row.family.lower() == name.lower() and _meant(row, scope)]
        return max(rows, key=_exactness).vcpus if rows else None

    def usages(self, cloud: Cloud, scope: QuotaScope) -> list[Json]:
        """Return every name with its usage and limit, as `Microsoft.Compute/locations/<location>/usages` returns them.

        https://learn.microsoft.com/rest/api/compute/usage/list
        """
        here = cloud.list(f"/subscriptions/{scope[0]}", "Microsoft.Compute/virtualMachineScaleSets")
        sets = sum(1 for one in here if one.location == scope[1])
        names = _names(scenario_of(cloud).quotas.granted)
        rows = ((name, self.used(scope, name), self.bound(cloud, scope, name)) for name in names)
        return [_usage(*row) for row in ((SETS, sets, SETS_BOUND), *rows)]

    def dump(self) -> Json:
        """Return the usage as plain JSON."""
        return {"/".join(scope): dict(used) for scope, used in self._used.items()}

    def load(self, data: Mapping[str, Mapping[str, int]]) -> None:
        """Restore the state that dump returned."""
        self._used = {(key.split("/")[0], key.split("/")[1]): Counter(used) for key, used in data.items()}


def _usage(name: str, used: int, bound: int | None) -> Json:
    return {
        "unit": "Count",
        "currentValue": used,
        "limit": NO_BOUND if bound is None else bound,
        "name": {"value": name, "localizedValue": _LOCALIZED.get(name, f"{name} vCPUs")},
    }


def _names(granted: Iterable[Grant]) -> list[str]:
    """Return each name of `usages` once, those of the whole location first."""
    families = sorted({size.family for size in VM_SIZES.values()})
    named = {name.lower(): name for name in (*(row.family for row in granted), MACHINES, CORES, SPOT_CORES, *families)}
    first = [MACHINES, CORES, SPOT_CORES]
    return [*first, *sorted(name for key, name in named.items() if key not in {one.lower() for one in first})]


def _meant(row: Grant, scope: QuotaScope) -> bool:
    return (row.subscription or scope[0]).lower() == scope[0] and (row.location or scope[1]) == scope[1]


def _exactness(row: Grant) -> int:
    return (row.subscription is not None) + (row.location is not None)


def _exceeded(name: str, scope: QuotaScope, bound: int, used: int, more: int) -> AzureError:
    """Return the error with Azure's message:
    https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-resource-quota"""
    if name == MACHINES:
        return conflict(
            "OperationNotAllowed",
            f"Operation could not be completed as it results in exceeding quota limits of VirtualMachines in location {scope[1]}. Maximum "
            f"allowed: {bound}, Current in use: {used}, Additional requested: {more}.",
            MACHINES,
        )
    label = _QUOTA_LABELS.get(name, f"{name} Cores")
    return AzureError(
        409,
        "OperationNotAllowed",
        f"Operation could not be completed as it results in exceeding approved {label} quota. Additional details - Deployment Model: "
        f"Resource Manager, Location: {scope[1]}, Current Limit: {bound}, Current Usage: {used}, Additional Required: {more}, "
        f"(Minimum) New Limit Required: {used + more}. Submit a request for Quota increase by specifying parameters listed in the "
        "'Details' section for deployment to succeed. Please read more about quota limits at "
        "https://learn.microsoft.com/azure/quotas/per-vm-quota-requests",
        target=name,
        details=(AzureError(409, "QuotaExceeded", f"{label}: {used} of {bound} are in use, {more} more are asked for."),),
    )
