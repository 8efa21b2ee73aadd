"""Decides what Azure tells of a scale set beside its body: its instance view, the sizes that it may have, and its rolling upgrade."""

from __future__ import annotations

from collections import Counter

from rehearsal.azure.clock import stamp
from rehearsal.azure.compute.instances import PLACEMENT_GROUP_MACHINES, state_of
from rehearsal.azure.compute.repairs import enabled, service_state
from rehearsal.azure.compute.scale_set_rules import GALLERY_MACHINES
from rehearsal.azure.resource import Json, Resource


def provisioning_status(state: str, moment: float) -> Json:
    """A provisioning state as instance views tell it."""
    level = "Error" if state == "Failed" else "Info"
    words = {"Succeeded": "Provisioning succeeded", "Failed": "Provisioning failed"}.get(state, state)
    return {"code": f"ProvisioningState/{state.lower()}", "level": level, "displayStatus": words, "time": stamp(moment)}


def instance_view(resource: Resource) -> Json:
    """https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/get-instance-view"""
    living = state_of(resource).instances.values()
    counts = Counter(f"ProvisioningState/{one.state.lower()}" for one in living)
    view: Json = {
        "virtualMachine": {"statusesSummary": [{"code": code, "count": count} for code, count in sorted(counts.items())]},
        "statuses": [provisioning_status(str(resource.properties["provisioningState"]), resource.changed)],
    }
    if enabled(resource):
        view["orchestrationServices"] = [{"serviceName": "AutomaticRepairs", "serviceState": service_state(resource)}]
    return view


def skus(resource: Resource) -> Json:
    """The present size with the bounds of its capacity: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/list-skus"""
    most = PLACEMENT_GROUP_MACHINES if resource.properties["singlePlacementGroup"] else GALLERY_MACHINES
    sku = resource.body["sku"]
    row = {
        "resourceType": resource.id.type,
        "sku": {"name": sku["name"], "tier": sku["tier"]},
        "capacity": {"minimum": 0, "maximum": most, "defaultCapacity": 1, "scaleType": "Automatic"},
    }
    return {"value": [row]}
