"""Decides how an embedded Azure is taken up from its directory and put back: both faces go on where the other one ended."""

from __future__ import annotations

from collections.abc import Callable

from rehearsal.azure.change_log import make
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.registry import build
from rehearsal.azure.resource import Json
from rehearsal.azure.saved_state import StateFormatError, dump, load
from rehearsal.azure.scenario import NOTHING_WRONG
from rehearsal.azure.stack_records import stacks_of
from rehearsal.azure.state_directory import StateCorruptError, StateDirectory


def open_cloud(directory: StateDirectory, fresh: Callable[[], Cloud]) -> Cloud:
    """The Azure that a directory holds, or a fresh one in a new directory; StateBroken where it cannot be taken up."""
    saved = directory.saved()
    try:
        cloud = fresh() if saved is None else load(saved, empty)
    except (StateFormatError, KeyError, TypeError, ValueError) as error:
        told = error if isinstance(error, StateFormatError) else f"does not hold what this version saves ({type(error).__name__}: {error})"
        raise StateCorruptError(f"{directory.snapshot} {told}; {directory.begin_anew}") from error
    make_again(directory, cloud)
    return cloud


def make_again(directory: StateDirectory, cloud: Cloud) -> None:
    """Make every change since the snapshot again. What stands before the model has let them pass, and is not asked twice."""
    gates, cloud.gates = cloud.gates, []
    for number, change in enumerate(directory.since(), start=1):
        try:
            make(cloud, change)
        except (AzureError, KeyError, TypeError, ValueError) as error:
            raise StateCorruptError(
                f"{directory.journal}, line {number}: what was accepted is not accepted again ({error}); another version wrote it, or it "
                f"was changed: go back to that version, or {directory.begin_anew}"
            ) from error
    cloud.gates = gates


def keep(directory: StateDirectory, cloud: Cloud) -> None:
    """Write all of it as one snapshot; OSError where the disk takes no more."""
    directory.replace(dump(cloud))


def empty(saved: Json) -> Cloud:
    """An Azure as a saved one began: its subscriptions, tenant and seed, and everything that keeps something beside the resources."""
    cloud = build(
        saved["subscriptions"], saved["tenant"], seed=saved["seed"], scenario=NOTHING_WRONG if "Throttle" in saved["gates"] else None
    )
    stacks_of(cloud)
    return cloud
