"""Notes on a region before `pulumi up`: missing captures, example identities, rotation, missing stack files, differing quotas."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence

from components.plan.missing_captures import missing_captures_text
from components.plan.model import RegionPlan
from components.plan.rotation_bounds import rotation_notes
from components.plan.subscription_limits import quotas
from stacks.file_problems import path_text
from stacks.load import REGIONS, ROOT, place, region_path

EXAMPLE_IDS = frozenset(
    {
        "7b0c9a44-2f0e-4f57-9c39-6a1f0f0f5a10",
        "5c1e8e5b-9d7a-4a53-8a3c-20f6b1f6d9b2",
        "9e3f7c61-50ab-4b7e-8d83-3c1e4c0d2a77",
        "a3c5e1f0-1b2d-4e6f-8a90-b1c2d3e4f501",
        "c4d6f2a1-1b2d-4e6f-8a90-b1c2d3e4f502",
        "e5f7a3b2-1b2d-4e6f-8a90-b1c2d3e4f503",
        "0f8c1f0e-6a54-4b58-9e0a-1d8b8e2f4a01",
        "0f8c1f0e-6a54-4b58-9e0a-1d8b8e2f4a02",
        "0f8c1f0e-6a54-4b58-9e0a-1d8b8e2f4a03",
        "0f8c1f0e-6a54-4b58-9e0a-1d8b8e2f4a04",
        "3f1d2c5a-6b7e-4c8d-9e0f-1a2b3c4d5e6f",
    }
)
"""Tenant, application, groups and subscriptions of the shipped region files, and the subscription of the captured images."""
EXAMPLE_SSH_KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIH4b0qbE0gXw2l9D4dP0v9zJ8mXyY1q5r7o0WmB3cVtN"
"""The public key of the shipped region files, without its type and comment."""


def placeholders(plan: RegionPlan) -> tuple[str, ...]:
    """Return the paths of a region's identities that are an example's or all zeros; images by the file of their catalog."""
    access = plan.spec.access
    found = ["access.ssh_public_key"] if access.ssh_public_key.split()[1] == EXAMPLE_SSH_KEY else []
    found += [path for path, value in _ids(plan) if value in EXAMPLE_IDS or not value.strip("0-")]
    if any(image.capture is not None and image.capture.split("/")[2] in EXAMPLE_IDS for image in plan.gallery.images):
        found.append("captures in node-images/versions.yaml")
    return tuple(dict.fromkeys(found))


def _ids(plan: RegionPlan) -> Iterator[tuple[str, str]]:
    """Yield every identity in a region file with its path, lists without their indices."""
    spec = plan.spec
    yield from (("access.tenant", spec.access.tenant), ("access.client_id", spec.access.client_id))
    yield from (("access.operators_group", spec.access.operators_group), ("subscription", spec.subscription))
    for cluster in spec.clusters:
        if cluster.subscription:
            yield "clusters[].subscription", cluster.subscription
        yield from (("clusters[].tenancy.teams[].group", team.group) for team in cluster.tenancy.teams)


STACKS = ROOT / "stacks"
GUIDE = "docs/add-a-region.md"


def notes(region: str, plan: RegionPlan, siblings: Sequence[RegionPlan] = ()) -> tuple[str, ...]:
    """Return one line per note: captures, identities of the examples, rotation, missing stack files under stacks/regions, differing quotas.

    region is the name or path that the plan was loaded from; siblings are the plans of other regions, whose quotas are compared.
    """
    path = region_path(region)
    return (
        *missing_captures(plan),
        *_placeholders(path, plan),
        *(f"{place(region, plan.name, note.path)}: {path_text(note.path)}: {note.text}" for note in rotation_notes(plan)),
        *(missing_stack_files(plan, STACKS) if path.resolve().parent == REGIONS else ()),
        *_differing_quotas(region, plan, siblings),
    )


def missing_captures(plan: RegionPlan) -> Iterator[str]:
    """Yield one line with all images that have no capture in the region's location."""
    if pins := plan.pins_without_capture:
        yield f"{missing_captures_text(plan, pins)}. pulumi up refuses this; check and the embedded Azure assume the captures"


def _placeholders(path: pathlib.Path, plan: RegionPlan) -> Iterator[str]:
    """Yield one line with all placeholders and their consequences."""
    found = placeholders(plan)
    if found:
        are = "is still the example's" if len(found) == 1 else "are still the examples'"
        danger = ", or the owner of the examples' key administers your machines" if "access.ssh_public_key" in found else ""
        yield f"{path.name}: {', '.join(found)} {are}, or all zeros: replace {'it' if len(found) == 1 else 'them'} before pulumi up{danger}"


def missing_stack_files(plan: RegionPlan, folder: pathlib.Path) -> Iterator[str]:
    """Yield one line with the stack files of the region that a folder lacks."""
    names = [f"Pulumi.{stack}.yaml" for stack in (plan.base_stack, plan.stack)]
    lacking = [name for name in names if not (folder / name).is_file()]
    if lacking:
        what = f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} missing in stacks/"
        yield f"{what}: copy another region's before pulumi stack init, which would make a file without the settings in it ({GUIDE})"


def _differing_quotas(region: str, plan: RegionPlan, siblings: Sequence[RegionPlan]) -> Iterator[str]:
    """Yield one line per quota that several region files declare with different values: files, lines and values, and the remedy."""
    own = {plan.spec.subscription, *(cluster.subscription for cluster in plan.clusters)}
    for (subscription, family), declared in quotas(plan, siblings).items():
        if subscription in own and len({one.vcpus for one in declared}) > 1:
            found = [(place(region, one.region, ("quotas", one.index, "vcpus")), one.vcpus) for one in declared]
            values = ", ".join(f"{where} declares {vcpus:,}" for where, vcpus in found)
            lowest = min(vcpus for _, vcpus in found)
            yield (
                f"quotas of {family} in subscription {subscription} differ, and the lowest, {lowest:,}, counts: {values}; write in all of "
                f"them what Azure has granted: az vm list-usage --location {plan.spec.location}"
            )
