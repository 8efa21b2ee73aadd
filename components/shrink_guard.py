"""Refusal of updates that would delete machines of a scale set: a hook that Pulumi runs before each update of one."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from components.errors import GpufleetError
from components.live_instances import InstanceReader, UnreadableInstancesError

DELETING = "deleting"
"""Provisioning state of an instance during its deletion, in lower case."""
PROCEDURE = 'docs/everyday-commands.md, "Remove machines from a pool"'


class ShrinkRefusedError(GpufleetError):
    """An update of a scale set that would delete machines, or for which the machines are not known."""


def shrink_guard(name: str, read: InstanceReader) -> pulumi.ResourceHookBinding:
    """Return the hook that refuses an update to a capacity below the number of live instances.

    It runs in previews, too. The old capacity in Pulumi's state does not count: it is out of date after machines were deleted by instance.
    Register it once per stack: names of hooks are unique.
    """

    async def refuse_loss(args: pulumi.ResourceHookArgs) -> None:
        scale_set = args.id.rpartition("/")[2]
        wanted = int((args.new_inputs or {})["sku"]["capacity"])
        try:
            states = await read(args.id)
        except UnreadableInstancesError as error:
            raise ShrinkRefusedError(
                f"scale set {scale_set}: its live machines could not be read, so that capacity {wanted:,} could delete some: {error}"
            ) from error
        if reason := refusal(scale_set, wanted, states):
            raise ShrinkRefusedError(reason)

    hook = pulumi.ResourceHook(name, refuse_loss, pulumi.ResourceHookOptions(on_dry_run=True))
    return pulumi.ResourceHookBinding(before_update=[hook])


def refusal(scale_set: str, wanted: int, states: Sequence[str]) -> str | None:
    """Return why a scale set may not get a capacity, from the provisioning states of its instances; None if it may.

    Instances that are being deleted count until they are gone: Azure does not publish whether a lower capacity would delete others.
    """
    live = sum(state.lower() != DELETING for state in states)
    if live > wanted:
        lost = live - wanted
        return (
            f"scale set {scale_set}: has {_machines(live)}, but capacity {wanted:,} is wanted, which would delete {_machines(lost)} that "
            f"{'was' if lost == 1 else 'were'} not drained; drain and delete {'it' if lost == 1 else 'them'} by instance first "
            f"({PROCEDURE}), or restore the number in the region file"
        )
    if len(states) > wanted:
        going = len(states) - live
        return (
            f"scale set {scale_set}: Azure is still deleting {going:,} of its {_machines(len(states))}, and capacity {wanted:,} could "
            "delete others; run the command again when they are gone"
        )
    return None


def _machines(count: int) -> str:
    return f"{count:,} machine{'' if count == 1 else 's'}"
