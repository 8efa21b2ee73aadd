"""Makes one stack of a region: <region>-base the region's base, <region> its clusters."""

from __future__ import annotations

import pulumi

from components.plan.limits import LimitsBroken, refuse_broken
from stacks.faults import FileRefused
from stacks.load import load_plan
from stacks.program import make


def run(stack: str) -> None:
    """Make a stack by its name; RunError, which Pulumi prints without a traceback, where its region file or plan is refused."""
    try:
        plan = load_plan(stack.removesuffix("-base"))
        refuse_broken(plan)
    except (FileRefused, LimitsBroken) as error:
        raise pulumi.RunError(str(error)) from None
    make(plan, stack)


if __name__ == "__main__":
    run(pulumi.get_stack())
