"""Pulumi program of one stack: <region>-base is the base of a region, <region> its clusters."""

from __future__ import annotations

from collections.abc import Callable

import pulumi

from components.boot.machine import CustomDataTooLargeError
from components.captures import MissingCapturesError
from components.plan.limits import LimitsExceededError, raise_if_broken
from components.plan.model import RegionPlan
from stacks.file_problems import InvalidFileError
from stacks.load import load_plan, load_siblings
from stacks.program import collect_rarely, make


def run(stack: str, region: str | None = None, *, adapt: Callable[[RegionPlan], RegionPlan] = lambda plan: plan) -> None:
    """Create a stack by its name; region is the path of a region file outside stacks/regions, adapt a rehearsal's change of the plan.

    Raise RunError, which Pulumi prints without a traceback, if the region file, the plan, the captures or the boot files are invalid.
    """
    try:
        region = region or stack.removesuffix("-base")
        plan = load_plan(region)
        raise_if_broken(plan, load_siblings(region).plans)
        make(adapt(plan), stack)
    except (InvalidFileError, LimitsExceededError, MissingCapturesError, CustomDataTooLargeError) as error:
        raise pulumi.RunError(str(error)) from None


if __name__ == "__main__":
    collect_rarely()
    run(pulumi.get_stack(), pulumi.Config().get("region-file"))
