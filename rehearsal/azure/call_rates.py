"""Tables of Azure's published call rates, and of the policy that each call counts under.

Microsoft.Compute: https://learn.microsoft.com/azure/virtual-machines/compute-throttling-limits

Microsoft.Network and Azure Resource Manager:
https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

SECOND, MINUTE, FIVE_MINUTES = 1.0, 60.0, 300.0


@dataclass(frozen=True, slots=True)
class Rate:
    """Calls that are added at the end of each period of so many seconds, and the maximum that accumulates."""

    refill: int
    capacity: int
    period: float = MINUTE

    def times(self, factor: float) -> Rate:
        """Return the rate multiplied by a factor, at least one call."""
        return self if factor == 1 else Rate(max(1, round(self.refill * factor)), max(1, round(self.capacity * factor)), self.period)


@dataclass(frozen=True, slots=True)
class Policy:
    """One throttling policy of Microsoft.Compute, with its rates per resource and per subscription and location.

    The names have the form in which responses carry them; which names a response carries is not documented.
    """

    name: str
    resource: Rate | None
    subscription: Rate


_PUT_SET = Policy("PutVMScaleSet", Rate(4, 12), Rate(125, 375))
_UPDATE_SET = Policy("UpdateVMScaleSet", Rate(4, 12), Rate(500, 1_500))
_DELETE_SET = Policy("DeleteVMScaleSet", Rate(4, 12), Rate(175, 525))
_GET_SET = Policy("LowCostGetVMScaleSet", Rate(12, 36), Rate(800, 2_400))
_VIEW_SET = Policy("HighCostGetVMScaleSet", Rate(10, 30), Rate(360, 1_080))
_UPDATE_INSTANCE = Policy("UpdateVMScaleSetVM", Rate(4, 12), Rate(500, 1_500))
_DELETE_INSTANCE = Policy("DeleteVMScaleSetVM", Rate(4, 12), Rate(500, 1_500))
_GET_INSTANCE = Policy("GetVMScaleSetVM", Rate(12, 36), Rate(2_000, 6_000))
_PUT_MACHINE = Policy("PutVM", Rate(4, 12), Rate(500, 1_500))
_UPDATE_MACHINE = Policy("UpdateVM", Rate(4, 12), Rate(500, 1_500))
_DELETE_MACHINE = Policy("DeleteVM", Rate(4, 12), Rate(500, 1_500))
_GET_MACHINE = Policy("LowCostGetVM", Rate(12, 36), Rate(8_000, 24_000))
_LIST_MACHINES = Policy("HighCostGetVM", None, Rate(300, 900))
GET_OPERATION = Policy("GetOperation", Rate(15, 45), Rate(5_000, 15_000))

SETS = "microsoft.compute/virtualmachinescalesets"
INSTANCES = f"{SETS}/virtualmachines"
MACHINES = "microsoft.compute/virtualmachines"

_TABLE: tuple[tuple[str, Policy, bool, str], ...] = (
    (SETS, _PUT_SET, True, "create"),
    # Azure's table does not name manualupgrade and the delete of listed instances; the tighter reading is taken, both levels.
    (SETS, _UPDATE_SET, True, "update manualupgrade setorchestrationservicestate converttosingleplacementgroup"),
    (SETS, _UPDATE_SET, False, "start restart redeploy performmaintenance reimage reimageall approverollingupgrade"),
    (f"{SETS}/extensions", _UPDATE_SET, True, "create update remove"),
    (f"{SETS}/rollingupgrades", _UPDATE_SET, True, "cancel"),
    (SETS, _DELETE_SET, True, "remove delete deallocate"),
    (SETS, _DELETE_SET, False, "poweroff"),
    (SETS, _GET_SET, True, "get skus rollingupgrades/latest osupgradehistory"),
    (f"{SETS}/extensions", _GET_SET, True, "get list"),
    (f"{SETS}/rollingupgrades", _GET_SET, True, "get"),
    (SETS, _VIEW_SET, True, "instanceview"),
    (SETS, _VIEW_SET, False, "list"),
    (INSTANCES, _UPDATE_INSTANCE, True, "create update start restart redeploy performmaintenance reimage reimageall simulateeviction"),
    (INSTANCES, _UPDATE_INSTANCE, True, "runcommand approverollingupgrade"),
    (f"{INSTANCES}/extensions", _UPDATE_INSTANCE, True, "create update"),
    (INSTANCES, _DELETE_INSTANCE, True, "remove poweroff deallocate"),
    (f"{INSTANCES}/extensions", _DELETE_INSTANCE, True, "remove"),
    (INSTANCES, _GET_INSTANCE, True, "get instanceview retrievebootdiagnosticsdata"),
    (f"{INSTANCES}/extensions", _GET_INSTANCE, True, "get list"),
    # The list of a set's instances is in no row of the table; it is taken for a read of instances, at the level of the subscription.
    (INSTANCES, _GET_INSTANCE, False, "list"),
    (MACHINES, _PUT_MACHINE, True, "create"),
    (MACHINES, _UPDATE_MACHINE, True, "update reapply restart poweroff start generalize redeploy performmaintenance capture reimage"),
    (MACHINES, _UPDATE_MACHINE, True, "runcommand converttomanageddisks"),
    (f"{MACHINES}/extensions", _UPDATE_MACHINE, True, "create update remove"),
    (MACHINES, _DELETE_MACHINE, True, "remove simulateeviction deallocate"),
    (MACHINES, _GET_MACHINE, True, "get instanceview vmsizes retrievebootdiagnosticsdata"),
    (f"{MACHINES}/extensions", _GET_MACHINE, True, "get list"),
    (MACHINES, _LIST_MACHINES, False, "list"),
)


def calls() -> Iterator[tuple[tuple[str, str], tuple[Policy, bool]]]:
    """Yield each type and verb of the table with its policy."""
    for resource_type, policy, per_resource, verbs in _TABLE:
        for verb in verbs.split():
            yield (resource_type, verb), (policy, per_resource)


COMPUTE: Mapping[tuple[str, str], tuple[Policy, bool]] = dict(calls())
"""Policy of a call by lower-case resource type and verb, and whether its rate per resource applies too. Verbs: create, update (PUT and
PATCH of an existing resource), remove (DELETE), get, list, and each action by its lower-case name."""

NETWORK_WRITES, NETWORK_READS = Rate(1_000, 1_000, FIVE_MINUTES), Rate(10_000, 10_000, FIVE_MINUTES)
PRIVATE_DNS_READS = Rate(500, 500, FIVE_MINUTES)

ARM: Mapping[str, Rate] = {"reads": Rate(25, 250, SECOND), "writes": Rate(10, 200, SECOND), "deletes": Rate(10, 200, SECOND)}
"""Calls to Azure Resource Manager in one region, of one principal in one subscription; and of one principal outside any subscription:
https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling

The region is that of the endpoint which a client reaches, and all clients of a model reach one. Public Azure counts this way since 2024.
The hourly counts on the same page are those of the other clouds.
"""
ALL_PRINCIPALS = 15.0
"""Factor on the rates of ARM for all principals of a subscription together (same source)."""
