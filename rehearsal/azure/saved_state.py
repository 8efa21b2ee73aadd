"""Decides how a model is saved and read back: plain JSON from which the very same future follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from components.errors import GpufleetError
from rehearsal.azure.arm_id import parse
from rehearsal.azure.clock import Events
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.references import references
from rehearsal.azure.resource import Json, Operation, Resource

FORMAT = 1
"""Number of this way of saving; a state with another number is refused."""
REMEMBERED = 86_400.0
"""Seconds for which an ended operation can still be asked about."""


class StateFormatError(GpufleetError):
    """A saved state that this version cannot read."""


def dump(cloud: Cloud) -> Json:
    """Plain JSON of a whole model: resources, running and recent operations, events to come, and what services and gates keep."""
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
        "gates": _kept({type(gate).__name__: gate for gate in cloud.gates}),
    }


def load(data: Json, empty: Callable[[Json], Cloud]) -> Cloud:
    """The model that dump told of. empty makes, of the same data, a Cloud with its kinds, services and gates and nothing in it.

    StateRefused where the data was saved in another way.
    """
    if data.get("format") != FORMAT:
        raise StateFormatError(f"saved in format {data.get('format')!r}, this version reads {FORMAT}")
    cloud = empty(data)
    cloud.numbers = data["numbers"]
    cloud.events = Events.load(data["events"])
    cloud.operations = {item["id"]: Operation(**item) for item in data["operations"]}
    for item in data["resources"]:
        _restore(cloud, item)
    _take_up(cloud.services, data["services"])
    _take_up({type(gate).__name__: gate for gate in cloud.gates}, data["gates"])
    for resource in list(cloud.resources.values()):
        cloud.kinds[resource.id.type.lower()].restored(cloud, resource)
    return cloud


def _resource(cloud: Cloud, resource: Resource) -> Json:
    kind = cloud.kinds[resource.id.type.lower()]
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
    kind = cloud.kinds.get(arm_id.type.lower())
    if kind is None:
        raise StateFormatError(f"holds {item['id']}, of a type that this version does not model")
    resource = Resource(**{**item, "id": arm_id, "state": kind.load(item["state"])})
    cloud.resources[resource.key] = resource
    cloud.index.add(arm_id, references(resource.body, resource.key))


def _kept(holders: Mapping[str, Any]) -> Json:
    """What each service or gate that keeps anything tells of itself, by name."""
    return {name: holder.dump() for name, holder in holders.items() if hasattr(holder, "dump")}


def _take_up(holders: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
    """Give each service or gate back what it told of."""
    for name, data in saved.items():
        if name in holders:
            holders[name].load(data)
