"""Resource types of the embedded Azure, and the construction of an empty one."""

from __future__ import annotations

from collections.abc import Iterable

from rehearsal.azure import diagnostics, groups, identity, images, placement, storage, vaults
from rehearsal.azure.body_validation import SdkBodyReader
from rehearsal.azure.capacity import Capacity
from rehearsal.azure.clock import REFERENCE_START
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import resource_types as compute
from rehearsal.azure.fault_injection import FaultInjection
from rehearsal.azure.network import resource_types as network
from rehearsal.azure.outage import ApiOutage
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.restrictions.table import RestrictionCheck
from rehearsal.azure.scenario import NOTHING_WRONG, ActiveScenario, Scenario, begin_scenario
from rehearsal.azure.scheduled_events import ScheduledEvents
from rehearsal.azure.throttle import Throttle

RESOURCE_TYPES: tuple[ResourceType, ...] = (
    *groups.RESOURCE_TYPES,
    *placement.RESOURCE_TYPES,
    *images.RESOURCE_TYPES,
    *identity.RESOURCE_TYPES,
    *vaults.RESOURCE_TYPES,
    *storage.RESOURCE_TYPES,
    *diagnostics.RESOURCE_TYPES,
    *network.RESOURCE_TYPES,
    *compute.RESOURCE_TYPES,
)


def new_cloud(
    subscriptions: Iterable[str], tenant: str, *, seed: int = 0, scenario: Scenario | None = None, now: float = REFERENCE_START
) -> Cloud:
    """Return an empty Azure with subscriptions of one tenant, in a scenario that starts now, in whole seconds since 1970.

    Without a scenario no fault occurs, calls are not counted, and quotas are unbounded.
    """
    admission_checks = (identity.LockCheck(),) if scenario is None else (Throttle(), ApiOutage(), identity.LockCheck())
    cloud = Cloud(
        RESOURCE_TYPES,
        subscriptions=subscriptions,
        tenant=tenant,
        seed=seed,
        body_reader=SdkBodyReader(),
        restrictions=RestrictionCheck(),
        admission_checks=admission_checks,
        now=now,
    )
    cloud.services |= {
        "scenario": ActiveScenario(NOTHING_WRONG, cloud.now),
        "capacity": Capacity(),
        "scheduled_events": ScheduledEvents(),
        "happenings": FaultInjection(),
        "directory": identity.Directory(),
    }
    if scenario is not None:
        begin_scenario(cloud, scenario)
    return cloud
