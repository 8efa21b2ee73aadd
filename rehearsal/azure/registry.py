"""Decides which resource types the embedded Azure has."""

from __future__ import annotations

from collections.abc import Iterable

from rehearsal.azure import diagnostics, groups, identity, images, placement, storage, vaults
from rehearsal.azure.bodies import SdkBodies
from rehearsal.azure.capacity import Capacity
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import resource_types as compute
from rehearsal.azure.fault_injection import Happenings
from rehearsal.azure.network import resource_types as network
from rehearsal.azure.outage import ApiOutage
from rehearsal.azure.resource_type import Kind
from rehearsal.azure.scenario import NOTHING_WRONG, InForce, Scenario, begin
from rehearsal.azure.scheduled_events import ScheduledEvents
from rehearsal.azure.throttle import Throttle

KINDS: tuple[Kind, ...] = (
    *groups.KINDS,
    *placement.KINDS,
    *images.KINDS,
    *identity.KINDS,
    *vaults.KINDS,
    *storage.KINDS,
    *diagnostics.KINDS,
    *network.KINDS,
    *compute.KINDS,
)


def build(subscriptions: Iterable[str], tenant: str, *, seed: int = 0, scenario: Scenario | None = None) -> Cloud:
    """An empty Azure of some subscriptions of one tenant, in a scenario that begins now.

    Without a scenario nothing goes wrong, no call is counted, and no family of VM sizes is bounded.
    """
    gates = (identity.LockCheck(),) if scenario is None else (Throttle(), ApiOutage(), identity.LockCheck())
    cloud = Cloud(KINDS, subscriptions=subscriptions, tenant=tenant, seed=seed, bodies=SdkBodies(), gates=gates)
    cloud.services |= {
        "scenario": InForce(NOTHING_WRONG, cloud.now),
        "capacity": Capacity(),
        "scheduled_events": ScheduledEvents(),
        "happenings": Happenings(),
        "directory": identity.Directory(),
    }
    if scenario is not None:
        begin(cloud, scenario)
    return cloud
