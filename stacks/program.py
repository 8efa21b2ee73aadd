"""Components of a stack (the base of a region, or its clusters), and garbage collection of its program."""

from __future__ import annotations

import gc

import pulumi

from components.aliases import drop_version_aliases
from components.base import RegionBase, RegionBaseArgs
from components.base_outputs import BaseOutputs
from components.captures import require_captures
from components.live_instances import InstanceReader
from components.plan.model import RegionPlan
from components.region import RegionClusters, RegionClustersArgs


def make(plan: RegionPlan, stack: str, read_instances: InstanceReader | None = None) -> None:
    """Register one stack of a planned region and its outputs; stack is the plan's base_stack or stack.

    read_instances replaces the reader of live instances in Azure.

    Raise MissingCapturesError before the first resource if an image has no capture in the region's location; a preview warns instead.
    """
    require_captures(plan)
    drop_version_aliases()
    if stack == plan.base_stack:
        exports = RegionBase(plan.name, RegionBaseArgs(plan)).exports
    else:
        reference = pulumi.StackReference(f"{pulumi.get_organization()}/{pulumi.get_project()}/{plan.base_stack}")
        exports = RegionClusters(plan.name, RegionClustersArgs(plan, BaseOutputs.from_stack(reference), read_instances)).exports
    for key, value in exports.items():
        pulumi.export(key, value)


THRESHOLDS = (50_000, 1_000, 1_000)
"""New objects before a collection, and collections before one of older generations: almost none in a run, since nearly all objects live to
its end. The defaults (700, 10, 10) use half of a program's CPU, growing faster than linearly; peak memory differs by a few MB."""


def collect_rarely() -> None:
    """Set the thresholds for the rest of this process."""
    gc.set_threshold(*THRESHOLDS)
