"""Text of failures: one paragraph per error code, with the resources, the reason and the remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rehearsal.azure.azure_native_requests import RETRIES
from rehearsal.azure.stack_records import stacks_of
from rehearsal.local_up.machine_counts import provisioned_count, requested_count, scale_set_id, scale_sets
from rehearsal.local_up.request_scheduler import Failure
from rehearsal.local_up.up import UpOutcome
from rehearsal.local_up.update_state import Update

RESOURCES_NAMED = 3
QUOTA = "Azure grants too few vCPUs: request the limit above (Azure portal, Quotas), or lower nodes in the region file"
HARDWARE = (
    "Azure has no free hardware there now: run gpufleet up again later, which requests only the missing machines; or plan the pool in "
    "another zone, or reserve capacity"
)
THROTTLED = "Azure limits the call rate: run gpufleet up again after the time in the message, with a lower --parallel if it happens again"
REMEDIES: Mapping[str, str] = {
    "QuotaExceeded": QUOTA,
    "AllocationFailed": HARDWARE,
    "ZonalAllocationFailed": HARDWARE,
    "OverconstrainedAllocationRequest": HARDWARE,
    "OverconstrainedZonalAllocationRequest": HARDWARE,
    "SkuNotAvailable": "the size is not available there: plan the pool with another vm_size or in another zone",
    "TooManyRequests": THROTTLED,
    "SubscriptionRequestsThrottled": THROTTLED,
    "ConflictError": "if a deleted vault reserves the name, purge it (gpufleet destroy with this REGION and --state, and --only-purge), "
    "then run gpufleet up again",
    "OperationNotAllowed": "change what Azure does not allow, then run gpufleet up again",
    "RetryableError": "another operation is in progress: run gpufleet up again",
    "AnotherOperationInProgress": "another operation is in progress: run gpufleet up again",
    "ServiceUnavailable": "Azure's API is failing: run gpufleet up again when it has recovered",
    "InternalServerError": "Azure's API is failing: run gpufleet up again when it has recovered",
}
DEFAULT_REMEDY = "fix the cause in the message, then run gpufleet up again"


def paragraphs(outcome: UpOutcome) -> list[str]:
    """Return a summary and one paragraph per error code with its remedy; for a complete update only the retried calls."""
    if outcome.complete:
        return _retries(outcome)
    lines = [_summary(outcome), *_retries(outcome)]
    for update in outcome.updates:
        lines += _by_code(outcome, update)
    if outcome.unread:
        lines.append(f"The clusters were skipped, because stack {outcome.plan.base_stack} is not complete.")
    if outcome.left:
        lines.append(f"{outcome.left:,} resources that are no longer declared remain until an update succeeds.")
    return lines


def _summary(outcome: UpOutcome) -> str:
    """Return the running resources and machines in one sentence."""
    running = planned = up = sets = 0
    for cluster in outcome.plan.clusters:
        for name, capacity, _ in scale_sets(cluster):
            found = outcome.cloud.find(scale_set_id(cluster, name))
            here = provisioned_count(found) if found is not None else 0
            running, planned, sets, up = running + min(here, capacity), planned + capacity, sets + 1, up + (here >= capacity)
    made = sum(bool(record.id) for _, record in stacks_of(outcome.cloud))
    failed = sum(len(one.failures) for one in outcome.updates)
    skipped = sum(len(one.skipped) for one in outcome.updates)
    return (
        f"{made:,} resources exist, among them {running:,} of {planned:,} machines; {up:,} of {sets:,} scale sets are complete; "
        f"{failed:,} failed" + (f", and {skipped:,} that depend on them were skipped" if skipped else "") + ". Existing resources remain."
    )


def _retries(outcome: UpOutcome) -> list[str]:
    """Return one paragraph on the calls that Azure accepted only after retries; empty without retries."""
    retried = outcome.updates[0].scheduler.retried
    if not retried:
        return []
    codes = ", ".join(f"{count:,} of them {code}" if len(retried) > 1 else code for code, count in retried.most_common())
    again = f"each was retried after the time that Azure requested, at most {RETRIES} times"
    calls = f"{retried.total():,} call{'' if retried.total() == 1 else 's'}"
    advice = "No action is needed; a lower --parallel, or another time, causes fewer delays."
    return [f"Azure delayed {calls} ({codes}): {again}. {advice}"]


def _by_code(outcome: UpOutcome, update: Update) -> list[str]:
    groups: dict[str, list[tuple[str, Failure]]] = {}
    for urn, failure in update.failures.items():
        groups.setdefault(_root(failure).code, []).append((urn, failure))
    return [_paragraph(outcome, update, code, group) for code, group in groups.items()]


def _missing_machines(outcome: UpOutcome, update: Update, group: Sequence[tuple[str, Failure]]) -> str:
    """Return a sentence on the missing machines of each pool's failed scale sets, after a space; empty where none is missing."""
    failed = {record.id.lower() for urn, _ in group if (record := update.stack.records.get(urn)) is not None}
    missing = []
    for cluster in outcome.plan.clusters:
        for pool in cluster.pools:
            ids = (scale_set_id(cluster, one.name) for one in pool.scale_sets)
            sets = [found for one in ids if one.lower() in failed and (found := outcome.cloud.find(one)) is not None]
            requested = sum(map(requested_count, sets))
            lacking = requested - sum(map(provisioned_count, sets))
            if lacking:
                zones = sorted({zone for found in sets for zone in found.body.get("zones", ())})
                place = f" in zone {', '.join(zones)}" if zones else ", in no zone"
                whole = f"{lacking:,} of {requested:,} machines"
                missing.append(f"pool {cluster.name}/{pool.name} lacks {whole} of {pool.spec.vm_size}{place}")
    return f" Missing: {'; '.join(missing)}." if missing else ""


def _paragraph(outcome: UpOutcome, update: Update, code: str, group: Sequence[tuple[str, Failure]]) -> str:
    names = [_name(update, urn) for urn, _ in group]
    more = f" and {len(names) - RESOURCES_NAMED:,} more" if len(names) > RESOURCES_NAMED else ""
    waiting = sum(cause in {urn for urn, _ in group} for cause in update.skipped.values())
    waits = f" {waiting:,} resources depend on {'it' if len(group) == 1 else 'them'}." if waiting else ""
    sentence = re.sub(r"\s+", " ", group[0][1].message).strip().rstrip(".")
    remedy = REMEDIES.get(code, DEFAULT_REMEDY)
    missing = _missing_machines(outcome, update, group) if remedy == HARDWARE else ""
    return f"{code}: {', '.join(names[:RESOURCES_NAMED])}{more}: {sentence}.{missing}{waits} What to do: {remedy}."


def _root(failure: Failure) -> Failure:
    """Return the innermost detail whose code has a remedy, or the failure itself."""
    for detail in failure.details:
        if _root(detail).code in REMEDIES:
            return _root(detail)
    return failure


def _name(update: Update, urn: str) -> str:
    """Return the type and the Azure name, or Pulumi's name where the Azure name is not known."""
    chain, _, name = urn.rpartition("::")
    record = update.stack.records.get(urn)
    return f"{chain.rpartition(':')[2]} {record.id.rpartition('/')[2] if record is not None and record.azure else name}"
