"""Captures of images in the program: refusal of an update without them, and their resource ids."""

from __future__ import annotations

import pulumi
from pulumi.runtime.rpc import UNKNOWN

from components.errors import GpufleetError
from components.plan.missing_captures import missing_capture_text, missing_captures_text
from components.plan.model import ImagePlan, RegionPlan


class MissingCapturesError(GpufleetError):
    """Images that have no capture in the region's location; its text is one line."""


def require_captures(plan: RegionPlan) -> None:
    """Raise MissingCapturesError if an image has no capture in the region's location; in a preview, log it as a warning."""
    if not (pins := plan.pins_without_capture):
        return
    text = missing_captures_text(plan, pins)
    if not pulumi.runtime.is_dry_run():
        raise MissingCapturesError(text)
    pulumi.log.warn(f"{text}. pulumi up refuses the stack until then")


def known_id(image: ImagePlan, resource_id: str | None) -> pulumi.Input[str]:
    """Return the resource id of a capture; in a preview without a capture, an unknown value, so that no id is made up.

    Raise MissingCapturesError outside a preview.
    """
    if resource_id is not None:
        return resource_id
    if not pulumi.runtime.is_dry_run():
        raise MissingCapturesError(missing_capture_text(image.pin))
    return pulumi.Output.from_input(UNKNOWN)
