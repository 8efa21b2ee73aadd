"""Creation and deletion of a region in the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from components.plan.model import RegionPlan
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.region_cloud import new_region_cloud
from rehearsal.azure.resource import Request
from rehearsal.azure.scenario import NOTHING_WRONG
from rehearsal.azure.stack_records import StackRecord, stacks_of
from rehearsal.local_up.assumed_captures import with_assumed_captures
from rehearsal.local_up.backend import ModelBackend
from rehearsal.local_up.deleted_vaults import deleted_vaults_of, refuse_reserved_names
from rehearsal.local_up.deletion import StackDeletion, record_losses
from rehearsal.local_up.model_instances import ModelInstances
from rehearsal.local_up.request_scheduler import Failure, RequestScheduler
from rehearsal.local_up.snapshot import Snapshot, take_snapshot
from rehearsal.local_up.update_state import Approvals, Update, UpdateRefusedError, refuse_unknown
from rehearsal.program.graph import Graph
from rehearsal.program.pulumi_values import decode_json, encode_json, has_unknown
from rehearsal.program.run import rare_collections, run_program
from stacks.program import make

PROJECT = "gpufleet"

Progress = Callable[[str, int, float], None]
"""Callback with the current stack, the number of its resources, and the elapsed seconds of Azure's time."""


@dataclass(frozen=True)
class UpOutcome:
    """Result of an update: the model, and snapshots of it before and after.

    Times are in seconds since 1970 of Azure's time; updates and graphs have one item per stack that was run. left counts the undeclared
    resources that remain because of a failure; unread is set where the clusters were skipped; purged counts deleted vaults.
    """

    plan: RegionPlan
    cloud: Cloud
    began: float
    ended: float
    before: Snapshot
    after: Snapshot
    updates: tuple[Update, ...]
    graphs: tuple[Graph, ...]
    left: int = 0
    unread: bool = False
    purged: int = 0

    @property
    def seconds(self) -> float:
        """Return the duration in Azure's time."""
        return self.ended - self.began

    @property
    def complete(self) -> bool:
        """Return whether all resources are as in the region file."""
        return not self.unread and not any(update.failures or update.skipped for update in self.updates)


@rare_collections()
def bring_up(plan: RegionPlan, cloud: Cloud, allowed: Approvals, progress: Progress) -> UpOutcome:
    """Bring a model to the state of a plan: the base stack, then the clusters, then the deletions.

    A missing capture of an image is assumed: the outcome has the plan with the assumed ids.
    Raises ReservedVaultNameError and UnknownProtectedNameError before any request. Raises UpdateRefusedError for an effect without
    approval, and ProgramError where the program fails: the model is then incomplete, and the caller loads it again from its file.
    """
    refuse_unknown(allowed, (record for _, record in stacks_of(cloud)))
    refuse_reserved_names(plan, cloud)
    plan = with_assumed_captures(plan)
    before, began = take_snapshot(cloud), cloud.now
    scheduler = RequestScheduler(cloud, allowed.parallel)
    updates, graphs = [], []
    for name in (plan.base_stack, plan.stack):
        update = Update(name, stacks_of(cloud).of(name), scheduler, allowed)
        updates.append(update)
        graphs.append(_run(plan, update, began, progress))
        if update.failures:
            break
    going = [_undeclared(update) for update in updates]
    for update, records in zip(updates, going, strict=True):
        record_losses(update, records, "no longer declared, so that it would be deleted", "put it back into the region file")
    _refuse(updates, allowed)
    left = 0
    # A cluster that goes still uses what the base stack no longer declares.
    for update, records in reversed(list(zip(updates, going, strict=True))):
        if any(one.failures for one in updates):
            left += len(records)
        else:
            StackDeletion(update, records).run()
    unread = len(updates) < 2
    return UpOutcome(plan, cloud, began, cloud.now, before, take_snapshot(cloud), tuple(updates), tuple(graphs), left, unread)


def bring_up_anew(plan: RegionPlan, progress: Progress = lambda *_: None) -> UpOutcome:
    """Bring a region up, as bring_up does, in an empty model without failures."""
    return bring_up(plan, new_region_cloud(plan, NOTHING_WRONG), Approvals(), progress)


@rare_collections()
def tear_down(plan: RegionPlan, cloud: Cloud, allowed: Approvals, progress: Progress, *, purge: bool = False) -> UpOutcome:
    """Delete all resources of both stacks, the clusters first; with purge also the deleted vaults, which frees their names.

    Raises UpdateRefusedError for a protected resource without approval, and UnknownProtectedNameError.
    """
    refuse_unknown(allowed, (record for _, record in stacks_of(cloud)))
    before, began = take_snapshot(cloud), cloud.now
    scheduler = RequestScheduler(cloud, allowed.parallel)
    updates = [Update(name, stacks_of(cloud).of(name), scheduler, allowed) for name in (plan.stack, plan.base_stack)]
    for update in updates:
        record_losses(update, update.stack.records.values(), "would be destroyed", "leave it")
    if guarded := [one for update in updates for one in update.guarded]:
        # A destroy of a region implies the loss of its machines, except the protected ones.
        raise UpdateRefusedError(guarded, {}, allowed)
    for update in updates:
        progress(update.name, 0, cloud.now - began)
        StackDeletion(update, list(update.stack.records.values())).run()
        if update.failures:
            break
    else:
        if purge:
            return _purge(plan, before, began, updates)
    return UpOutcome(plan, cloud, began, cloud.now, before, take_snapshot(cloud), tuple(updates), ())


def has_nothing(plan: RegionPlan, cloud: Cloud) -> bool:
    """Return whether both stacks are empty."""
    return not any(stacks_of(cloud).of(name).records for name in (plan.base_stack, plan.stack))


def purge_only(plan: RegionPlan, cloud: Cloud, allowed: Approvals) -> UpOutcome:
    """Purge the region's deleted vaults, and leave existing resources as they are."""
    update = Update(plan.base_stack, stacks_of(cloud).of(plan.base_stack), RequestScheduler(cloud, allowed.parallel), allowed)
    return _purge(plan, take_snapshot(cloud), cloud.now, [update])


def _purge(plan: RegionPlan, before: Snapshot, began: float, updates: list[Update]) -> UpOutcome:
    """Purge the deleted vaults of the base stack's resource group; its update is the last of updates."""
    update = updates[-1]
    cloud, going = update.scheduler.cloud, deleted_vaults_of(plan, update.scheduler.cloud)
    for vault in going:
        urn = f"urn:pulumi:{update.name}::{PROJECT}::azure-native:keyvault:DeletedVault::{vault.id.name}"
        update.scheduler.send(Request("POST", vault.id, "purge", principal=update.principal), partial(_note, update, urn))
    update.scheduler.finish()
    purged = len(going) - len(deleted_vaults_of(plan, cloud))
    return UpOutcome(plan, cloud, began, cloud.now, before, take_snapshot(cloud), tuple(updates), (), purged=purged)


def _note(update: Update, urn: str, failure: Failure | None) -> None:
    if failure is not None:
        update.failures[urn] = failure


def _run(plan: RegionPlan, update: Update, began: float, progress: Progress) -> Graph:
    """Run one stack's program, and store its exports."""
    cloud, stacks = update.scheduler.cloud, stacks_of(update.scheduler.cloud)
    progress(update.name, 0, cloud.now - began)
    graph = run_program(
        lambda: make(plan, update.name, ModelInstances(update)),
        PROJECT,
        update.name,
        backend=ModelBackend(update, tenant=plan.spec.access.tenant),
        stack_outputs={name: decode_json(stack.exports) for name, stack in stacks.by_name.items() if name != update.name},
        progress=lambda count: progress(update.name, count, cloud.now - began),
    )
    exports = {key: encode_json(value) for key, value in graph.stack_outputs.items() if not has_unknown(value)}
    update.stack.exports = {**update.stack.exports, **exports} if update.failures else exports
    return graph


def _refuse(updates: Iterable[Update], allowed: Approvals) -> None:
    """Raise UpdateRefusedError for a protected resource, a hook's refusal, or another number of lost machines than the approved one."""
    guarded = [one for update in updates for one in update.guarded]
    losses = {name: count for update in updates for name, count in update.losses.items()}
    if sum(losses.values()) in (0, allowed.machines):
        losses = {}
    refused = [reason for update in updates for reason in update.refused]
    if guarded or losses or refused:
        raise UpdateRefusedError(guarded, losses, allowed, refused)


def _undeclared(update: Update) -> list[StackRecord]:
    """Return the records that the stack's program no longer declares."""
    return [record for urn, record in update.stack.records.items() if urn not in update.declared]
