"""Decides the course of each verb over a region's two stacks: in which order, after which checks, and when the second is not tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from components.plan.model import RegionPlan
from rehearsal.azure.stack_records import Record
from rehearsal.checks.machines_up import scale_set_id, scale_sets
from rehearsal.local_up.update import SCALE_SET, Allowed, Guarded, UpdateRefusedError, refuse_unknown
from rehearsal.pulumi_cli.events import OperationTimeline
from rehearsal.pulumi_cli.stack_operations import RegionEngine

WITHOUT_PROMPT = ("--yes", "--skip-preview")
CONTINUE_ON_ERROR = "--continue-on-error"
"""One cluster's dead API server does not stop the others."""
UNREACHABLE: Mapping[str, str] = {"PULUMI_K8S_DELETE_UNREACHABLE": "true"}
"""What a cluster held goes with its machines, whether or not its API servers still answer:
https://www.pulumi.com/registry/packages/kubernetes/installation-configuration/"""


@dataclass(frozen=True)
class RegionResult:
    """What a verb came to: the course of each stack that was tried, and why one was not; interrupted says that somebody stopped it.

    purged counts deleted vaults.
    """

    plan: RegionPlan
    verb: str
    courses: tuple[OperationTimeline, ...]
    untried: str = ""
    interrupted: bool = False
    purged: int = 0

    @property
    def complete(self) -> bool:
        """Whether all of it was done and nothing failed."""
        return not self.untried and not self.interrupted and all(course.complete for course in self.courses)


def bring_up(engine: RegionEngine, allowed: Allowed) -> RegionResult:
    """Make both stacks what the region file says, the base first.

    NothingProtected and UpRefused before anything is tried, where machines would go that nobody has given up.
    """
    plan = engine.plan
    records = _open_stacks(engine, (plan.base_stack, plan.stack))
    refuse_unknown(allowed, _flatten(records))
    _refuse_losses(plan, _flatten(records), allowed)
    for stack, found in records.items():
        engine.unprotect(stack, [one.urn for one in found if one.protect and allowed.opens(one)])
    return _run_in_order(engine, "up", (plan.base_stack, plan.stack), (*WITHOUT_PROMPT, CONTINUE_ON_ERROR, *_parallel(allowed)))


def preview(engine: RegionEngine, allowed: Allowed) -> RegionResult:
    """Show what bring_up would do; the clusters only where a base stack is there for them to read."""
    plan = engine.plan
    records = _open_stacks(engine, (plan.base_stack, plan.stack))
    flags = _parallel(allowed)
    if records[plan.base_stack]:
        return _run_in_order(engine, "preview", (plan.base_stack, plan.stack), flags)
    outcome = _run_in_order(engine, "preview", (plan.base_stack,), flags)
    told = f"{plan.stack} reads what {plan.base_stack} exports, and is previewed once that is up"
    return RegionResult(plan, "preview", outcome.courses, told if outcome.complete else outcome.untried, outcome.interrupted)


def refresh(engine: RegionEngine, allowed: Allowed, *, only_show: bool) -> RegionResult:
    """Ask Azure and the clusters how everything is, and take it up into the state, or with only_show just tell it."""
    plan = engine.plan
    _open_stacks(engine, (plan.base_stack, plan.stack))
    flags = ("--preview-only",) if only_show else WITHOUT_PROMPT
    return _run_in_order(engine, "refresh", (plan.base_stack, plan.stack), (*flags, *_parallel(allowed)))


def tear_down(engine: RegionEngine, allowed: Allowed, *, purge: bool) -> RegionResult:
    """Delete everything that both stacks have, the clusters first, with purge its vaults' names too.

    UpRefused where something protected is not allowed to go, NothingProtected where what is allowed is not there.
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
    """Purge the region's deleted vaults, and touch nothing that stands."""
    return RegionResult(engine.plan, "destroy", (), purged=engine.purge_vaults())


def protected_resource(record: Record, why: str, instead: str) -> Guarded:
    """A protected resource that would go, and why."""
    return Guarded(record.type.rpartition(":")[2], record.id.rpartition("/")[2] or record.name, _capacity(record), why, instead)


def _open_stacks(engine: RegionEngine, stacks: Sequence[str]) -> dict[str, list[Record]]:
    for stack in stacks:
        engine.take_up(stack)
    return {stack: engine.records(stack) for stack in stacks}


def _run_in_order(
    engine: RegionEngine, verb: str, stacks: Sequence[str], flags: Sequence[str], more: Mapping[str, str] | None = None
) -> RegionResult:
    """Operate on one stack after the other; where one fails or somebody stops it, those behind it are not tried."""
    courses: list[OperationTimeline] = []
    for stack in stacks:
        if engine.interrupted or (courses and not courses[-1].complete):
            break
        courses.append(engine.operate(verb, stack, flags, more))
    left = stacks[len(courses) :]
    why = "it was interrupted" if engine.interrupted else f"stack {courses[-1].stack} is not complete" if courses else ""
    told = f"{' and stack '.join(left)} was not tried, because {why}" if left else ""
    return RegionResult(engine.plan, verb, tuple(courses), told, engine.interrupted)


def _refuse_losses(plan: RegionPlan, records: Iterable[Record], allowed: Allowed) -> None:
    """UpRefused where a scale set would shrink or go: Azure would choose which machines, drained or not."""
    wanted = {scale_set_id(cluster, name).lower(): capacity for cluster in plan.clusters for name, capacity, _ in scale_sets(cluster)}
    guarded, losses = [], {}
    for record in records:
        if record.type.rpartition(":")[2] != SCALE_SET or not record.id:
            continue
        going = _capacity(record) - wanted.get(record.id.lower(), 0)
        if going > 0:
            losses[record.id.rpartition("/")[2]] = going
        if record.id.lower() not in wanted and record.protect and not allowed.opens(record):
            guarded.append(
                protected_resource(record, "no longer declared, so that it would be deleted", "put it back into the region file")
            )
    if sum(losses.values()) in (0, allowed.machines):
        losses = {}
    if guarded or losses:
        raise UpdateRefusedError(guarded, losses, allowed)


def _capacity(record: Record) -> int:
    """Machines of a scale set, as the program asked for them last; one for a machine by itself."""
    inputs = (record.kept or {}).get("inputs", {})
    if record.type.rpartition(":")[2] == "VirtualMachine":
        return 1
    return int((inputs.get("sku") or {}).get("capacity") or 0) if record.type.rpartition(":")[2] == SCALE_SET else 0


def _flatten(records: Mapping[str, Sequence[Record]]) -> Iterator[Record]:
    return (record for found in records.values() for record in found)


def _parallel(allowed: Allowed) -> tuple[str, str]:
    return "--parallel", str(allowed.parallel)
