"""The list of resources of all types, in the generic form of Resource Manager.

https://learn.microsoft.com/rest/api/resources/resources/list
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rehearsal.azure.arm_id import GROUP_TYPE
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.resource import SUCCEEDED, Json, Resource

FIELDS = ("kind", "location", "managedBy", "sku", "tags", "identity", "plan", "zones", "extendedLocation")
"""Properties of a generic resource beside id, name and type."""


def located_resources(cloud: Cloud, scope: str) -> Iterator[Resource]:
    """Return the resources with a location below a scope, which are those that Resource Manager lists, in creation order."""
    below = f"{scope.lower()}/"
    return (one for key, one in cloud.resources.items() if key.startswith(below) and one.location and one.id.type != GROUP_TYPE)


def generic_body(item: Resource, query: Mapping[str, str]) -> Json:
    """Return a resource without its properties, and with those that $expand names."""
    known = {"id": item.id.text, "name": "/".join(item.id.names), "type": item.id.type}
    state = str((item.body.get("properties") or {}).get("provisioningState", SUCCEEDED))
    more = {"createdTime": stamp(item.created), "changedTime": stamp(item.changed), "provisioningState": state}
    wanted = {name.strip().lower() for name in query.get("$expand", "").split(",")}
    return {
        **known,
        **{name: item.body[name] for name in FIELDS if name in item.body},
        **{name: value for name, value in more.items() if name.lower() in wanted},
    }
