"""Embedded Azure of a region: subscriptions, granted quota and scenario."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from components.errors import GpufleetError
from components.plan.model import RegionPlan
from rehearsal.azure.arm_id import parse
from rehearsal.azure.clock import current_second
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.fault_injection import SERVICE as FAULTS
from rehearsal.azure.persistence import open_cloud
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.scenario import ActiveScenario, Scenario, begin_scenario
from rehearsal.azure.scenario_files import in_region
from rehearsal.azure.stack_records import stacks_of
from rehearsal.azure.state_directory import StateDirectory

PAUSE_SECONDS = 3_600.0
"""Least seconds that pass in a stored Azure between two commands, so that call rates recover. The last command can have ended in the
future, because hours of Azure's time pass in seconds."""
BASE = "-base"
"""Suffix of a base stack's name."""


class OtherRegionError(GpufleetError):
    """A state directory contains another region. A command would count its resources and never change them."""

    def __init__(self, folder: Path, found: str, region: str) -> None:
        super().__init__(f"{folder} contains the region {found}, not {region}; give another --state")


def new_region_cloud(plan: RegionPlan, scenario: Scenario, now: float | None = None) -> Cloud:
    """Return an empty Azure for a region, in a scenario that starts now. Raises InvalidFileError.

    now is in whole seconds since 1970; without it, this machine's time.
    """
    return new_cloud(
        region_subscriptions(plan),
        plan.spec.access.tenant,
        seed=scenario.seed,
        scenario=in_region(scenario, plan),
        now=current_second() if now is None else now,
    )


def open_region_cloud(directory: StateDirectory, plan: RegionPlan, scenario: Scenario, now: float | None = None) -> Cloud:
    """Return the Azure of a state directory now, and at least an hour after its last use, or a new one; a scenario starts now.

    now is in whole seconds since 1970; without it, this machine's time. Raises StateCorruptError, OtherRegionError, or InvalidFileError
    for a scenario that does not apply to the region.
    """
    now = current_second() if now is None else now
    cloud = open_cloud(directory, lambda: new_region_cloud(plan, scenario, now))
    _refuse_other(directory.folder, plan, cloud)
    if cloud.resources:
        cloud.advance(cloud.now + PAUSE_SECONDS)
    advance_unattended(cloud, now)
    cloud.subscriptions |= {one.lower() for one in region_subscriptions(plan)}
    begin_scenario(cloud, in_region(scenario, plan))
    return cloud


def advance_unattended(cloud: Cloud, now: float) -> None:
    """Advance a stored Azure to a later time, during which no program used it.

    Operations end, and the retention of deleted vaults and secrets passes. The scenario pauses: a month of faults that no program
    observes would take minutes to draw.
    """
    away = now - cloud.now
    if away <= 0:
        return
    scenario: ActiveScenario = cloud.services["scenario"]
    scenario.began += away
    cloud.events.postpone(FAULTS, away)
    cloud.advance(now)


def _refuse_other(folder: Path, plan: RegionPlan, cloud: Cloud) -> None:
    """Raise OtherRegionError if stacks of another region have resources."""
    others = {name for name, stack in stacks_of(cloud).by_name.items() if stack.records} - {plan.base_stack, plan.stack}
    if others:
        # A region's base stack has the longer name, and alone where the clusters were never tried.
        raise OtherRegionError(folder, min(others, key=len).removesuffix(BASE), plan.name)


def region_subscriptions(plan: RegionPlan) -> set[str]:
    """Return all subscriptions in which the region has or uses resources."""
    return {plan.spec.subscription, *(cluster.subscription for cluster in plan.clusters), *_of_others(plan)}


def _of_others(plan: RegionPlan) -> Iterator[str]:
    """Yield the subscriptions of external resources: captured images and capacity reservations."""
    captured = (image.capture for image in plan.gallery.images)
    machine_images = (pool.image.capture for cluster in plan.clusters for pool in cluster.pools)
    reserved = (pool.spec.reservation_group for cluster in plan.clusters for pool in cluster.pools)
    return (parse(one).subscription for one in (*captured, *machine_images, *reserved) if one)
