"""Commands over both stacks of a region on Pulumi's engine: order, checks before the first change, and stop conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from components.plan.model import RegionPlan
from rehearsal.azure.stack_records import StackRecord
from rehearsal.local_up.machine_counts import scale_set_id, scale_sets
from rehearsal.local_up.update_state import SCALE_SET, Approvals, BlockedDeletion, UpdateRefusedError, refuse_unknown
from rehearsal.pulumi_cli.events import OperationTimeline
from rehearsal.pulumi_cli.stack_operations import RegionEngine

WITHOUT_PROMPT = ("--yes", "--skip-preview")
CONTINUE_ON_ERROR = "--continue-on-error"
"""A dead API server of one cluster does not stop the other clusters."""
UNREACHABLE: Mapping[str, str] = {"PULUMI_K8S_DELETE_UNREACHABLE": "true"}
"""The objects of a cluster are deleted with its machines, even if its API servers do not answer:
https://www.pulumi.com/registry/packages/kubernetes/installation-configuration/"""


@dataclass(frozen=True)
class RegionResult:
    """Result of a command: a timeline per stack that was tried, the reason why one was not, whether the user interrupted it, and the number
    of purged vaults."""

    plan: RegionPlan
    verb: str
    timelines: tuple[OperationTimeline, ...]
    untried: str = ""
    interrupted: bool = False
    purged: int = 0

    @property
    def complete(self) -> bool:
        """Return whether everything was done without a failure."""
        return not self.untried and not self.interrupted and all(timeline.complete for timeline in self.timelines)


def bring_up(engine: RegionEngine, allowed: Approvals) -> RegionResult:
    """Deploy both stacks as the region file says, the base first.

    Raise UnknownProtectedNameError or UpdateRefusedError, before any change, where machines would be deleted without permission.
    """
    plan = engine.plan
    records = _open_stacks(engine, (plan.base_stack, plan.stack))
    refuse_unknown(allowed, _flatten(records))
    _refuse_losses(plan, _flatten(records), allowed)
    for stack, found in records.items():
        engine.unprotect(stack, [one.urn for one in found if one.protect and allowed.opens(one)])
    return _run_in_order(engine, "up", (plan.base_stack, plan.stack), (*WITHOUT_PROMPT, CONTINUE_ON_ERROR, *_parallel(allowed)))


def preview(engine: RegionEngine, allowed: Approvals) -> RegionResult:
    """Preview bring_up; the clusters only where a base stack exists for them to read."""
    plan = engine.plan
    records = _open_stacks(engine, (plan.base_stack, plan.stack))
    flags = _parallel(allowed)
    if records[plan.base_stack]:
        return _run_in_order(engine, "preview", (plan.base_stack, plan.stack), flags)
    outcome = _run_in_order(engine, "preview", (plan.base_stack,), flags)
    reason = f"{plan.stack} reads what {plan.base_stack} exports, and is previewed once that is up"
    return RegionResult(plan, "preview", outcome.timelines, reason if outcome.complete else outcome.untried, outcome.interrupted)


def refresh(engine: RegionEngine, allowed: Approvals, *, only_show: bool) -> RegionResult:
    """Read the state of all resources from Azure and the clusters; update Pulumi's state, or with only_show print the differences."""
    plan = engine.plan
    _open_stacks(engine, (plan.base_stack, plan.stack))
    flags = ("--preview-only",) if only_show else WITHOUT_PROMPT
    return _run_in_order(engine, "refresh", (plan.base_stack, plan.stack), (*flags, *_parallel(allowed)))


def tear_down(engine: RegionEngine, allowed: Approvals, *, purge: bool) -> RegionResult:
    """Delete everything in both stacks, the clusters first; with purge also the names of the vaults.

    Raise UpdateRefusedError where a protected resource may not be deleted, UnknownProtectedNameError for an unknown allowed name.
    """
    plan = engine.plan
    records = _open_stacks(engine, (plan.stack, plan.base_stack))
    found = list(_flatten(records))
    if found:
        refuse_unknown(allowed, found)
    guarded = [protected_resource(one, "would be destroyed", "leave it") for one in found if one.protect and not allowed.opens(one)]
    if guarded:
        raise UpdateRefusedError(guarded, {}, allowed)
    for stack, items in records.items():
        engine.unprotect(stack, [one.urn for one in items if one.protect])
    outcome = _run_in_order(engine, "destroy", tuple(records), (*WITHOUT_PROMPT, CONTINUE_ON_ERROR, *_parallel(allowed)), UNREACHABLE)
    return replace(outcome, purged=engine.purge_vaults()) if purge and outcome.complete else outcome


def purge_only(engine: RegionEngine) -> RegionResult:
    """Purge the region's deleted vaults, and nothing else."""
    return RegionResult(engine.plan, "destroy", (), purged=engine.purge_vaults())


def protected_resource(record: StackRecord, why: str, instead: str) -> BlockedDeletion:
    """Return a protected resource that would be deleted, with the reason."""
    return BlockedDeletion(record.type.rpartition(":")[2], record.id.rpartition("/")[2] or record.name, _capacity(record), why, instead)


def _open_stacks(engine: RegionEngine, stacks: Sequence[str]) -> dict[str, list[StackRecord]]:
    for stack in stacks:
        engine.open_stack(stack)
    return {stack: engine.records(stack) for stack in stacks}


def _run_in_order(
    engine: RegionEngine, verb: str, stacks: Sequence[str], flags: Sequence[str], more: Mapping[str, str] | None = None
) -> RegionResult:
    """Run a command on one stack after the other; stop after a failure or an interrupt."""
    timelines: list[OperationTimeline] = []
    for stack in stacks:
        if engine.interrupted or (timelines and not timelines[-1].complete):
            break
        timelines.append(engine.operate(verb, stack, flags, more))
    left = stacks[len(timelines) :]
    why = "it was interrupted" if engine.interrupted else f"stack {timelines[-1].stack} is not complete" if timelines else ""
    reason = f"{' and stack '.join(left)} was not tried, because {why}" if left else ""
    return RegionResult(engine.plan, verb, tuple(timelines), reason, engine.interrupted)


def _refuse_losses(plan: RegionPlan, records: Iterable[StackRecord], allowed: Approvals) -> None:
    """Raise UpdateRefusedError where a scale set would be deleted with its machines; the program itself refuses to shrink one."""
    declared = {scale_set_id(cluster, name).lower() for cluster in plan.clusters for name, _, _ in scale_sets(cluster)}
    guarded, losses = [], {}
    for record in records:
        if record.type.rpartition(":")[2] != SCALE_SET or not record.id or record.id.lower() in declared:
            continue
        if machines := _capacity(record):
            losses[record.id.rpartition("/")[2]] = machines
        if record.protect and not allowed.opens(record):
            guarded.append(
                protected_resource(record, "no longer declared, so that it would be deleted", "put it back into the region file")
            )
    if sum(losses.values()) in (0, allowed.machines):
        losses = {}
    if guarded or losses:
        raise UpdateRefusedError(guarded, losses, allowed)


def _capacity(record: StackRecord) -> int:
    """Return the machines of a scale set, as the program last declared it; 1 for a single machine."""
    inputs = (record.kept or {}).get("inputs", {})
    if record.type.rpartition(":")[2] == "VirtualMachine":
        return 1
    return int((inputs.get("sku") or {}).get("capacity") or 0) if record.type.rpartition(":")[2] == SCALE_SET else 0


def _flatten(records: Mapping[str, Sequence[StackRecord]]) -> Iterator[StackRecord]:
    return (record for found in records.values() for record in found)


def _parallel(allowed: Approvals) -> tuple[str, str]:
    return "--parallel", str(allowed.parallel)
