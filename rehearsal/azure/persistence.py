"""Saving of a model as plain JSON, and loading of a saved one with the changes since."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from components.errors import GpufleetError
from rehearsal.azure.arm_id import parse
from rehearsal.azure.change_log import apply_change
from rehearsal.azure.clock import Events
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.references import references
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.resource import Json, Operation, Resource
from rehearsal.azure.scenario import NOTHING_WRONG
from rehearsal.azure.stack_records import stacks_of
from rehearsal.azure.state_directory import StateCorruptError, StateDirectory

FORMAT = 1
"""Version of the format; a state with another version is rejected."""
REMEMBERED = 86_400.0
"""Seconds for which an ended operation can still be queried."""


class StateFormatError(GpufleetError):
    """A saved state that this version cannot read."""


def dump(cloud: Cloud) -> Json:
    """Return a whole model as plain JSON: resources, running and recent operations, planned events, services and admission checks."""
    recent = [one for one in cloud.operations.values() if one.running or one.ended is None or cloud.now - one.ended < REMEMBERED]
    return {
        "format": FORMAT,
        "seed": cloud.seed,
        "tenant": cloud.tenant,
        "subscriptions": sorted(cloud.subscriptions),
        "numbers": cloud.numbers,
        "events": cloud.events.dump(),
        "resources": [_resource(cloud, one) for one in cloud.resources.values()],
        "operations": [asdict(one) for one in recent],
        "services": _kept(cloud.services),
        "gates": _kept({type(check).__name__: check for check in cloud.admission_checks}),
    }


def load(data: Json, empty_cloud: Callable[[Json], Cloud]) -> Cloud:
    """Return the model that dump described. `empty` creates, from the same data, a Cloud without resources.

    Raises StateFormatError for another format.
    """
    if data.get("format") != FORMAT:
        raise StateFormatError(f"saved in format {data.get('format')!r}, this version reads {FORMAT}")
    cloud = empty_cloud(data)
    cloud.numbers = data["numbers"]
    cloud.events = Events.load(data["events"])
    cloud.operations = {item["id"]: Operation(**item) for item in data["operations"]}
    for item in data["resources"]:
        _restore(cloud, item)
    _take_up(cloud.services, data["services"])
    _take_up({type(check).__name__: check for check in cloud.admission_checks}, data["gates"])
    for resource in list(cloud.resources.values()):
        cloud.resource_types[resource.id.type.lower()].restored(cloud, resource)
    return cloud


def _resource(cloud: Cloud, resource: Resource) -> Json:
    kind = cloud.resource_types[resource.id.type.lower()]
    return {
        "id": resource.id.text,
        "body": resource.body,
        "sent": resource.sent,
        "owner": resource.owner,
        "created": resource.created,
        "changed": resource.changed,
        "version": resource.version,
        "operation": resource.operation,
        "state": kind.dump(resource.state),
    }


def _restore(cloud: Cloud, item: Json) -> None:
    arm_id = parse(item["id"])
    kind = cloud.resource_types.get(arm_id.type.lower())
    if kind is None:
        raise StateFormatError(f"contains {item['id']}, of a type that is not in this version's model")
    resource = Resource(**{**item, "id": arm_id, "state": kind.load(item["state"])})
    cloud.resources[resource.key] = resource
    cloud.index.add(arm_id, references(resource.body, resource.key))


def _kept(holders: Mapping[str, Any]) -> Json:
    """Return the state of each service or admission check that has any, by name."""
    return {name: holder.dump() for name, holder in holders.items() if hasattr(holder, "dump")}


def _take_up(holders: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
    """Restore the state of each service or admission check."""
    for name, data in saved.items():
        if name in holders:
            holders[name].load(data)


def open_cloud(directory: StateDirectory, fresh: Callable[[], Cloud]) -> Cloud:
    """Return the model of a directory, or a fresh one for a new directory. Raises StateCorruptError."""
    saved = directory.saved()
    try:
        cloud = fresh() if saved is None else load(saved, empty_cloud)
    except (StateFormatError, KeyError, TypeError, ValueError) as error:
        reason = (
            error if isinstance(error, StateFormatError) else f"does not contain a state of this version ({type(error).__name__}: {error})"
        )
        raise StateCorruptError(f"{directory.snapshot} {reason}; {directory.begin_anew}") from error
    replay_changes(directory, cloud)
    return cloud


def replay_changes(directory: StateDirectory, cloud: Cloud) -> None:
    """Apply every change since the snapshot again, without admission checks, which have already passed."""
    checks, cloud.admission_checks = cloud.admission_checks, []
    for number, change in enumerate(directory.since(), start=1):
        try:
            apply_change(cloud, change)
        except (AzureError, KeyError, TypeError, ValueError) as error:
            raise StateCorruptError(
                f"{directory.journal}, line {number}: a replayed change was rejected ({error}); another version wrote it, or it "
                f"was changed: go back to that version, or {directory.begin_anew}"
            ) from error
    cloud.admission_checks = checks


def save(directory: StateDirectory, cloud: Cloud) -> None:
    """Write the model as one snapshot. Raises OSError if the disk is full."""
    directory.replace(dump(cloud))


def empty_cloud(saved: Json) -> Cloud:
    """Return a model without resources for saved data: its subscriptions, tenant, seed, services and admission checks."""
    cloud = new_cloud(
        saved["subscriptions"], saved["tenant"], seed=saved["seed"], scenario=NOTHING_WRONG if "Throttle" in saved["gates"] else None
    )
    stacks_of(cloud)
    return cloud
