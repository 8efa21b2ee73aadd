"""Pulumi program of one stack: <region>-base is the base of a region, <region> its clusters."""

from __future__ import annotations

import pulumi

from components.boot.machine import CustomDataTooLargeError
from components.plan.limits import LimitsExceededError, raise_if_broken
from stacks.file_problems import InvalidFileError
from stacks.load import load_plan, load_siblings
from stacks.program import collect_rarely, make


def run(stack: str, region: str | None = None) -> None:
    """Create a stack by its name; region is the path of a region file outside stacks/regions.

    Raise RunError, which Pulumi prints without a traceback, if the region file, the plan or the boot files are invalid.
    """
    try:
        region = region or stack.removesuffix("-base")
        plan = load_plan(region)
        raise_if_broken(plan, load_siblings(region).plans)
        make(plan, stack)
    except (InvalidFileError, LimitsExceededError, CustomDataTooLargeError) as error:
        raise pulumi.RunError(str(error)) from None


if __name__ == "__main__":
    collect_rarely()
    run(pulumi.get_stack(), pulumi.Config().get("region-file"))
