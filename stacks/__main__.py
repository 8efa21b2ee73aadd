"""Decides, by the stack's name, what a run of Pulumi makes: <region>-base the region's base, <region> its clusters."""

from __future__ import annotations

import pulumi

from components.aliases import drop_version_aliases
from components.base import RegionBase, RegionBaseArgs
from components.base_outputs import BaseOutputs
from components.plan.limits import LimitsBroken, refuse_broken
from components.region import RegionClusters, RegionClustersArgs
from stacks.faults import FileRefused
from stacks.load import load_plan

BASE = "-base"


def run(stack: str) -> None:
    """Make one stack; RunError, which Pulumi prints without a traceback, where its region file or plan is refused."""
    try:
        plan = load_plan(stack.removesuffix(BASE))
        refuse_broken(plan)
    except (FileRefused, LimitsBroken) as error:
        raise pulumi.RunError(str(error)) from None
    drop_version_aliases()
    if stack == plan.base_stack:
        exports = RegionBase(plan.name, RegionBaseArgs(plan)).exports
    else:
        reference = pulumi.StackReference(f"{pulumi.get_organization()}/{pulumi.get_project()}/{plan.base_stack}")
        exports = RegionClusters(plan.name, RegionClustersArgs(plan, BaseOutputs.from_stack(reference))).exports
    for key, value in exports.items():
        pulumi.export(key, value)


if __name__ == "__main__":
    run(pulumi.get_stack())
