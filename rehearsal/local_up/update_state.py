"""State of one update of one stack, and the approvals of the operator."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from components.errors import GpufleetError
from rehearsal.azure.stack_records import StackRecord, StackState
from rehearsal.local_up.request_scheduler import PARALLEL, Failure, RequestScheduler
from rehearsal.local_up.retained_values import RetainedValue
from rehearsal.program.registration import Registration

EVERYTHING = "all"
SCALE_SET = "VirtualMachineScaleSet"
SCALE_SETS_NAMED = 12
"""Scale sets that a message about lost machines names."""


@dataclass(frozen=True)
class Approvals:
    """Approvals of an operator: names of protected resources that may be deleted (or "all"), and the exact number of machines to lose."""

    unprotected: frozenset[str] = frozenset()
    machines: int | None = None
    parallel: int = PARALLEL

    def opens(self, record: StackRecord) -> bool:
        """Return whether a protected resource may be deleted, by its Pulumi name, its Azure name or "all"."""
        return bool(self.unprotected & {EVERYTHING, *_names(record)})


class UnknownProtectedNameError(GpufleetError):
    """An approval for a resource that does not exist or is not protected."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
        remedy = f"did you mean {' or '.join(near)}?" if near else "give a name from the refusal, or leave --unprotect away"
        super().__init__(f"no protected resource is called {name}; {remedy}")


def refuse_unknown(allowed: Approvals, records: Iterable[StackRecord]) -> None:
    """Raise UnknownProtectedNameError for an approved name that no protected resource has."""
    known = {name for record in records if record.protect for name in _names(record)}
    for name in sorted(allowed.unprotected - known - {EVERYTHING}):
        raise UnknownProtectedNameError(name, known)


def _names(record: StackRecord) -> tuple[str, str]:
    """Return Pulumi's name and Azure's."""
    return record.name, record.id.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class BlockedDeletion:
    """A protected resource that an update would delete: its type, name and machines, the reason, and the alternative."""

    word: str
    name: str
    machines: int
    why: str
    instead: str


class UpdateRefusedError(GpufleetError):
    """An update that was refused because it has effects without approval: one paragraph per reason.

    guarded are the protected resources that it would delete, losses the machines by scale set, refused the reasons of the program's hooks,
    a line each.
    """

    exit_status = 1

    def __init__(
        self, guarded: Iterable[BlockedDeletion], losses: Mapping[str, int], allowed: Approvals, refused: Iterable[str] = ()
    ) -> None:
        self.guarded, self.losses = tuple(guarded), dict(losses)
        by_reason: dict[str, list[BlockedDeletion]] = {}
        for one in self.guarded:
            by_reason.setdefault(one.why, []).append(one)
        texts = [_guarded(group) for group in by_reason.values()]
        texts += [_lost(self.losses, allowed)] if self.losses else []
        super().__init__("\n".join([*texts, *refused]))


def _guarded(group: Sequence[BlockedDeletion]) -> str:
    """Return the text on protected resources: their names, the reason, and the remedy."""
    group = sorted(group, key=lambda item: (item.word != SCALE_SET, item.word, item.name))
    lost, first = sum(item.machines for item in group), group[0]
    machines = f", with {_machines(lost)}" if lost else ""
    if len(group) == 1:
        subject, serve, flag = f"{first.word} {first.name}{machines}", "it serves", f"--unprotect {first.name}"
    else:
        lines = [f"  {one.word} {one.name}{f', {_machines(one.machines)}' if one.machines else ''}" for one in group]
        subject, serve = "\n".join([*lines, f"these {len(group):,} resources{machines}"]), "they serve"
        flag = f"--unprotect NAME for each, or --unprotect {EVERYTHING} for all {len(group):,}"
    return f"{subject}: protected, and {first.why}; {first.instead}, or see to what {serve} and allow it: {flag}"


def _lost(losses: Mapping[str, int], allowed: Approvals) -> str:
    """Return the text on machines that would be lost: by scale set, with the remedy."""
    total = sum(losses.values())
    names = sorted(losses, key=lambda name: -losses[name])
    counts = ", ".join(f"{losses[name]:,} of {name}" for name in names[:SCALE_SETS_NAMED])
    counts += f", and more of {len(names) - SCALE_SETS_NAMED} others" if len(names) > SCALE_SETS_NAMED else ""
    given = f" (--accept-loss-of {allowed.machines} is not that number)" if allowed.machines is not None else ""
    return (
        f"{_machines(total)} would be lost ({counts}){given}: they go with their scale set, drained or not; put it back into the "
        f"region file, or drain machines and delete them by instance, or accept the loss of exactly this number: --accept-loss-of {total}"
    )


def _machines(count: int) -> str:
    return f"{count:,} machine{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class WorkSpan:
    """Start and end of the work on a resource, in seconds since 1970 of Azure's time."""

    began: float
    ended: float


@dataclass
class Update:
    """One update of one stack: its state, and by URN the declared, failed and skipped resources and their working times.

    retained has the values that ignore_changes retains and that differ from the declared ones.
    """

    name: str
    stack: StackState
    scheduler: RequestScheduler
    allowed: Approvals
    declared: set[str] = field(default_factory=set)
    failures: dict[str, Failure] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    spans: dict[str, WorkSpan] = field(default_factory=dict)
    retained: dict[str, tuple[RetainedValue, ...]] = field(default_factory=dict)
    guarded: list[BlockedDeletion] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Reasons of the program's hooks that refused an update of a resource."""
    losses: dict[str, int] = field(default_factory=dict)
    """Machines that would be lost without a deletion by instance, by the name of their scale set."""

    @property
    def principal(self) -> str:
        """Return the principal of the update's requests."""
        return f"gpufleet:{self.name}"

    def record(self, registration: Registration, resource_id: str, kept: dict[str, object] | None = None) -> None:
        """Record a resource of the stack."""
        self.stack.records[registration.urn] = StackRecord(
            urn=registration.urn,
            type=registration.type,
            parent=registration.parent,
            id=resource_id,
            dependencies=tuple(sorted(urn for urn in registration.waits_for if "pulumi:providers:" not in urn)),
            protect=registration.protect,
            retain=registration.retain_on_delete,
            kept=kept,
        )
