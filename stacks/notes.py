"""Decides what a person should know of a region before `pulumi up` that stops neither a check nor a rehearsal."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

from components.plan.model import RegionPlan
from stacks.load import REGIONS, ROOT, region_path
from stacks.placeholders import placeholders

STACKS = ROOT / "stacks"
GUIDE = "docs/add-a-region.md"


def notes(region: str, plan: RegionPlan) -> tuple[str, ...]:
    """One line for each thing: identities of the shipped examples; stack files that are missing, of a region under stacks/regions.

    region is the name or path that the plan was loaded from.
    """
    path = region_path(region)
    return (*_placeholders(path, plan), *(missing_stack_files(plan, STACKS) if path.resolve().parent == REGIONS else ()))


def _placeholders(path: pathlib.Path, plan: RegionPlan) -> Iterator[str]:
    """All placeholders in one line, with what comes of them."""
    found = placeholders(plan)
    if found:
        are = "is still the examples'" if len(found) == 1 else "are still the examples'"
        danger = ", or the owner of the examples' key administers your machines" if "access.ssh_public_key" in found else ""
        yield f"{path.name}: {', '.join(found)} {are}, or all zeros: replace {'it' if len(found) == 1 else 'them'} before pulumi up{danger}"


def missing_stack_files(plan: RegionPlan, folder: pathlib.Path) -> Iterator[str]:
    """One line that names the settings of the region's two stacks that a folder lacks."""
    names = [f"Pulumi.{stack}.yaml" for stack in (plan.base_stack, plan.stack)]
    lacking = [name for name in names if not (folder / name).is_file()]
    if lacking:
        what = f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} missing in stacks/"
        yield f"{what}: copy another region's before pulumi stack init, which would make a file without the settings in it ({GUIDE})"
