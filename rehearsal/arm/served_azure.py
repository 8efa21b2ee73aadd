"""Model that a server loads: from a state directory, or new for a region, with a scenario and a clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from components.plan.model import RegionPlan
from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.time_source import TimeSource
from rehearsal.azure.clock import current_second
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.outage import ApiOutage
from rehearsal.azure.persistence import open_cloud
from rehearsal.azure.persistence import save as write
from rehearsal.azure.region_cloud import advance_unattended, new_region_cloud, region_subscriptions
from rehearsal.azure.scenario import Scenario, begin_scenario, scenario_of
from rehearsal.azure.scenario_files import in_region, load_scenario
from rehearsal.azure.state_directory import StateDirectory
from rehearsal.azure.throttle import Throttle


@contextmanager
def open_live_model(plan: RegionPlan, folder: Path, scenario: str | None, factor: float, *, keep: bool) -> Iterator[LiveModel]:
    """Open the Azure of a region on a clock of a factor; with keep, its state is saved in the folder.

    A stored Azure continues at this machine's time if that is later; on a manual clock (factor 0), at its own.

    Raises an error for an invalid scenario or a state directory that is in use or broken, and OSError if it cannot be written.
    """
    loaded = None if scenario is None else load_scenario(scenario)
    if not keep:
        cloud = with_call_limits(new_region_cloud(plan, loaded or Scenario()))
        yield LiveModel(cloud, TimeSource(factor, cloud.now))
        return
    with StateDirectory(folder) as directory:
        cloud = with_call_limits(open_cloud(directory, lambda: new_region_cloud(plan, loaded or Scenario())))
        if factor:
            advance_unattended(cloud, current_second())
        cloud.subscriptions |= {one.lower() for one in region_subscriptions(plan)}
        if loaded is not None and in_region(loaded, plan) != scenario_of(cloud):
            begin_scenario(cloud, in_region(loaded, plan))
        write(directory, cloud)
        yield LiveModel(cloud, TimeSource(factor, cloud.now), directory)


def with_call_limits(cloud: Cloud) -> Cloud:
    """Return the Azure with call limits and outages, which apply to calls over the network."""
    if not any(isinstance(gate, Throttle) for gate in cloud.admission_checks):
        cloud.admission_checks[:0] = [Throttle(), ApiOutage()]
    return cloud
