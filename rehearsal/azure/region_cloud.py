"""Decides in which Azure a region is brought up: which subscriptions there are, what is granted, and what goes wrong meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from components.errors import GpufleetError
from components.plan.model import RegionPlan
from rehearsal.azure.arm_id import parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.persistence import open_cloud
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.scenario import Scenario, begin_scenario
from rehearsal.azure.scenario_files import in_region
from rehearsal.azure.stack_records import stacks_of
from rehearsal.azure.state_directory import StateDirectory

PAUSE_SECONDS = 3_600.0
"""What passes in a kept Azure between two commands: whoever reads what the first one says takes time too, and what Azure counts per hour
is free again. Commands alone would never let it pass."""
BASE = "-base"
"""End of a base stack's name, as the plan names it."""


class OtherRegionError(GpufleetError):
    """A state directory holds another region, which a command on this one would count in and never touch."""

    def __init__(self, folder: Path, held: str, wanted: str) -> None:
        super().__init__(f"{folder} holds the region {held}, not {wanted}; give another --state")


def new_region_cloud(plan: RegionPlan, scenario: Scenario) -> Cloud:
    """An empty Azure for a region, in a scenario that begins now; FileRefused where the scenario does not fit the region."""
    return new_cloud(region_subscriptions(plan), plan.spec.access.tenant, seed=scenario.seed, scenario=in_region(scenario, plan))


def open_region_cloud(directory: StateDirectory, plan: RegionPlan, scenario: Scenario) -> Cloud:
    """The Azure that a state directory holds, an hour after it was left, or a new one; in a scenario that begins now.

    StateBroken; OtherRegion; FileRefused where the scenario does not fit the region.
    """
    cloud = open_cloud(directory, lambda: new_region_cloud(plan, scenario))
    _refuse_other(directory.folder, plan, cloud)
    if cloud.resources:
        cloud.advance(cloud.now + PAUSE_SECONDS)
    cloud.subscriptions |= {one.lower() for one in region_subscriptions(plan)}
    begin_scenario(cloud, in_region(scenario, plan))
    return cloud


def _refuse_other(folder: Path, plan: RegionPlan, cloud: Cloud) -> None:
    """OtherRegion where stacks of another region have something."""
    others = {name for name, stack in stacks_of(cloud).by_name.items() if stack.records} - {plan.base_stack, plan.stack}
    if others:
        # A region's base stack has the longer name, and alone where the clusters were never tried.
        raise OtherRegionError(folder, min(others, key=len).removesuffix(BASE), plan.name)


def region_subscriptions(plan: RegionPlan) -> set[str]:
    """Every subscription in which the region has something, or takes something from."""
    return {plan.spec.subscription, *(cluster.subscription for cluster in plan.clusters), *_of_others(plan)}


def _of_others(plan: RegionPlan) -> Iterator[str]:
    """Subscriptions of what the region did not make: images as they were captured, capacity reservations."""
    captured = (image.capture for image in plan.gallery.images)
    machine_images = (pool.image.capture for cluster in plan.clusters for pool in cluster.pools)
    reserved = (pool.spec.reservation_group for cluster in plan.clusters for pool in cluster.pools)
    return (parse(one).subscription for one in (*captured, *machine_images, *reserved) if one)
