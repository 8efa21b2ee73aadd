"""Tables of Azure Resource Graph: rows of resources, of scale sets' machines, and of subscriptions and resource groups.

https://learn.microsoft.com/azure/governance/resource-graph/reference/supported-tables-resources
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rehearsal.azure.arm_id import GROUP_TYPE
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.disks import MACHINE
from rehearsal.azure.compute.instance_disks import DISK
from rehearsal.azure.compute.instance_network import INSTANCE
from rehearsal.azure.resource import Json, Resource

_COLUMNS = ("kind", "managedBy", "sku", "plan", "identity", "zones", "extendedLocation")


def table_rows(cloud: Cloud, table: str, subscriptions: Iterable[str]) -> Iterator[Json]:
    """Yield the rows of a table in some subscriptions, by subscription and in creation order."""
    for subscription in subscriptions:
        scope = f"/subscriptions/{subscription.lower()}"
        match table:
            case "ComputeResources":
                yield from (_row(cloud, one) for one in cloud.list(scope, INSTANCE))
            case "ResourceContainers":
                yield _subscription(cloud, subscription)
                yield from (_row(cloud, one) for one in cloud.list(scope, GROUP_TYPE))
            case _:
                yield from (_row(cloud, one) for one in _top_level(cloud, scope))


def _top_level(cloud: Cloud, scope: str) -> Iterator[Resource]:
    """Yield the resources that are no part of another one, and that have a location; disks of instances are among them."""
    for one in cloud.resources.values():
        if one.key.startswith(f"{scope}/") and len(one.id.names) == 1 and one.id.type != GROUP_TYPE and one.location:
            yield one
    yield from cloud.resource_types[DISK.lower()].list_virtual(cloud, scope)


def _row(cloud: Cloud, resource: Resource) -> Json:
    view = cloud.resource_type_of(resource.id).view
    machine = resource.id.type in (MACHINE, INSTANCE)
    body = view(cloud, resource, {"$expand": "instanceView"} if machine else {})
    properties = dict(body.get("properties") or {})
    if machine:
        properties["extended"] = {"instanceView": _extended(properties.pop("instanceView"))}
    kind = "microsoft.resources/subscriptions/resourcegroups" if resource.id.type == GROUP_TYPE else resource.id.type.lower()
    return {
        "id": resource.id.text,
        "name": resource.id.name if resource.id.type != INSTANCE else str(body["name"]),
        "type": kind,
        "tenantId": cloud.tenant,
        "location": resource.location,
        "resourceGroup": resource.id.group.lower(),
        "subscriptionId": resource.id.subscription,
        **{name: body.get(name) for name in _COLUMNS},
        "properties": properties,
        "tags": body.get("tags"),
    }


def _extended(view: Json) -> Json:
    """Return the part of an instance view that is in the table:
    https://learn.microsoft.com/azure/governance/resource-graph/concepts/query-language#extended-properties
    """
    power = next((one for one in view["statuses"] if one["code"].startswith("PowerState/")), None)
    names = ("computerName", "hyperVGeneration", "osName", "osVersion")
    return {**{name: view[name] for name in names if name in view}, **({"powerState": power} if power else {})}


def _subscription(cloud: Cloud, subscription: str) -> Json:
    return {
        "id": f"/subscriptions/{subscription}",
        "name": f"embedded {subscription[:8]}",
        "type": "microsoft.resources/subscriptions",
        "tenantId": cloud.tenant,
        "location": "",
        "resourceGroup": "",
        "subscriptionId": subscription,
        **dict.fromkeys(_COLUMNS),
        "properties": {"state": "Enabled"},
        "tags": None,
    }
