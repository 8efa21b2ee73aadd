"""Resource types of machines in the embedded Azure."""

from __future__ import annotations

from rehearsal.azure.compute.disks import Disk
from rehearsal.azure.compute.instance_types import INSTANCE_PARTS, Instances, RollingUpgrades
from rehearsal.azure.compute.scale_set import ScaleSet
from rehearsal.azure.compute.virtual_machine import VirtualMachine
from rehearsal.azure.resource_type import ResourceType

RESOURCE_TYPES: tuple[ResourceType, ...] = (
    ScaleSet(),
    Instances(),
    *INSTANCE_PARTS,
    RollingUpgrades(),
    VirtualMachine(),
    Disk(),
)
