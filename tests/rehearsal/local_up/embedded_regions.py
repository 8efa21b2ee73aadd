"""The dev region in its embedded Azure, as it stands after a first update, and copies of it for tests to change."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from components.plan.model import RegionPlan
from components.plan.region import plan_region
from components.spec.region import Region
from rehearsal.azure.arm_id import parse
from rehearsal.azure.clock import REFERENCE_START
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import instances_of
from rehearsal.azure.persistence import dump, empty_cloud, load
from rehearsal.azure.region_cloud import new_region_cloud
from rehearsal.azure.resource import Request, Resource
from rehearsal.azure.scenario import Scenario
from rehearsal.local_up.snapshot import ResourceChange, compare_snapshots
from rehearsal.local_up.up import UpOutcome, bring_up
from rehearsal.local_up.update_state import Approvals
from stacks.load import load_catalog, load_region

CPU, GPU = 0, 1
"""Places of dev's pools."""


def planned(change: Callable[[dict[str, Any]], None] = lambda _cluster: None) -> RegionPlan:
    """The plan of dev with its one cluster changed."""
    catalog = load_catalog()
    document = load_region("dev", catalog).model_dump(mode="json")
    change(document["clusters"][0])
    return plan_region(Region.model_validate_json(json.dumps(document)), catalog)


def pool(place: int, **values: Any) -> Callable[[dict[str, Any]], None]:
    """A change of one pool."""
    return lambda cluster: cluster["pools"][place].update(values)


def updated(plan: RegionPlan, cloud: Cloud, allowed: Approvals | None = None) -> UpOutcome:
    """Bring a plan up without telling anybody."""
    return bring_up(plan, cloud, allowed or Approvals(), lambda _stack, _count, _seconds: None)


@cache
def first_state() -> str:
    """Return the saved state of dev's Azure after a successful first update."""
    outcome = updated(planned(), new_region_cloud(planned(), Scenario(seed=1), REFERENCE_START))
    assert outcome.complete
    return json.dumps(dump(outcome.cloud))


def standing() -> Cloud:
    """A copy of dev's Azure after a first update."""
    return load(json.loads(first_state()), empty_cloud)


def found_changes(outcome: UpOutcome) -> list[ResourceChange]:
    """Return the differences between the models before and after."""
    return compare_snapshots(outcome.before, outcome.after)


def named(outcome: UpOutcome) -> dict[str, str]:
    """The sign of each change of what is no component, by its name."""
    return {change.item.record.name: change.op.value for change in found_changes(outcome) if change.item.record.id}


def scale_set(cloud: Cloud, name: str) -> Resource:
    """A scale set of dev's cluster."""
    (found,) = (one for one in cloud.resources.values() if one.id.type.endswith("/virtualMachineScaleSets") and one.id.name == name)
    return found


def delete_by_hand(cloud: Cloud, name: str, count: int) -> list[str]:
    """Delete the first instances of a scale set, as an operator does, and wait: their ids."""
    found = scale_set(cloud, name)
    going = list(instances_of(found))[:count]
    answer = cloud.handle(Request("POST", parse(found.id.text), "delete", body={"instanceIds": going}, principal="an operator"))
    assert answer.operation is not None
    while answer.operation.running:
        due = cloud.events.next_at()
        assert due is not None
        cloud.step(due)
    assert answer.operation.error is None
    return going
