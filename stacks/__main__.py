"""Makes one stack of a region: <region>-base the region's base, <region> its clusters."""

from __future__ import annotations

import pulumi

from components.boot.machine import CustomDataTooLargeError
from components.plan.limits import LimitsExceededError, raise_if_broken
from stacks.file_problems import InvalidFileError
from stacks.load import load_plan, load_siblings
from stacks.program import collect_rarely, make


def run(stack: str, region: str | None = None) -> None:
    """Make a stack by its name; region is the path of a region file that is not under stacks/regions, which gives it the same name.

    RunError, which Pulumi prints without a traceback, where region file, plan or boot files are refused.
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
