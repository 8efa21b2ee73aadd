"""Pulumi program of one stack: <region>-base is the base of a region, <region> its clusters."""

from __future__ import annotations

import pulumi

from components.boot.machine import CustomDataTooLargeError
from components.plan.limits import LimitsExceededError, raise_if_broken
from stacks.file_problems import InvalidFileError
from stacks.load import load_plan, load_siblings
from stacks.notes import missing_captures
from stacks.program import collect_rarely, make, serves_azure_here


def run(stack: str, region: str | None = None, *, rehearsed: bool = False) -> None:
    """Create a stack by its name; region is the path of a region file outside stacks/regions, rehearsed is True in the embedded Azure.

    Raise RunError, which Pulumi prints without a traceback, if the region file, the plan or the boot files are invalid, or if images are
    not captured in the region's location. A preview and a rehearsed update need no captures: they print a warning.
    """
    try:
        region = region or stack.removesuffix("-base")
        plan = load_plan(region)
        raise_if_broken(plan, load_siblings(region).plans)
        for missing in missing_captures(plan):
            if not (rehearsed or pulumi.runtime.is_dry_run()):
                raise pulumi.RunError(missing)
            pulumi.log.warn(missing)
        make(plan, stack)
    except (InvalidFileError, LimitsExceededError, CustomDataTooLargeError) as error:
        raise pulumi.RunError(str(error)) from None


if __name__ == "__main__":
    collect_rarely()
    config = pulumi.Config()
    # A rehearsal writes the setting into its own project only. Left in another project or shell, neither of the two is enough.
    rehearsed = config.get_bool("embedded-azure") is True and serves_azure_here()
    run(pulumi.get_stack(), config.get("region-file"), rehearsed=rehearsed)
