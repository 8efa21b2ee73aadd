"""Decides what Azure takes for the health of an instance: what its application reports, by the source that its model names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.azure.compute.health_source import RICH, source_of
from rehearsal.azure.compute.instances import Instance, state_of
from rehearsal.azure.compute.machine import RUNNING
from rehearsal.azure.resource import Resource

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

HEALTHY, UNHEALTHY, INITIALIZING, UNKNOWN = "Healthy", "Unhealthy", "Initializing", "Unknown"


def health_of(cloud: Cloud, resource: Resource, one: Instance) -> str | None:
    """Healthy, Unhealthy, Initializing or Unknown; None where the instance's model names no source of health.

    An application that nothing is known of is healthy once the guest is up. Initializing and Unknown are states of the extension's
    version 2 alone: https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-health-extension
    """
    source = source_of(state_of(resource).models[one.model].profile)
    if source is None:
        return None
    if one.power != RUNNING:
        return UNKNOWN if source == RICH else UNHEALTHY
    if one.health:
        return one.health
    if one.ready > cloud.now:
        return INITIALIZING if source == RICH else UNHEALTHY
    return HEALTHY
