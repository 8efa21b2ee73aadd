"""Says what one update of one stack knows while it runs, and what a person has allowed it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from components.errors import GpufleetError
from rehearsal.azure.stack_records import StackRecord, StackState
from rehearsal.local_up.request_scheduler import PARALLEL, Failure, RequestScheduler
from rehearsal.program.registration import Registration

EVERYTHING = "all"
SCALE_SET = "VirtualMachineScaleSet"
SCALE_SETS_NAMED = 12
"""Scale sets told of a loss of machines."""


@dataclass(frozen=True)
class Approvals:
    """What a person has allowed: names of protected resources that may go (or "all"), and how many machines exactly may be lost."""

    unprotected: frozenset[str] = frozenset()
    machines: int | None = None
    parallel: int = PARALLEL

    def opens(self, record: StackRecord) -> bool:
        """Whether a protected resource may go: named by Pulumi's name, by Azure's, or with all."""
        return bool(self.unprotected & {EVERYTHING, *_names(record)})


class UnknownProtectedNameError(GpufleetError):
    """A person has allowed what is not there, or is not protected."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
        remedy = f"did you mean {' or '.join(near)}?" if near else "give a name from the refusal, or leave --unprotect away"
        super().__init__(f"no protected resource is called {name}; {remedy}")


def refuse_unknown(allowed: Approvals, records: Iterable[StackRecord]) -> None:
    """NothingProtected where a name that was allowed is none of the protected resources'."""
    known = {name for record in records if record.protect for name in _names(record)}
    for name in sorted(allowed.unprotected - known - {EVERYTHING}):
        raise UnknownProtectedNameError(name, known)


def _names(record: StackRecord) -> tuple[str, str]:
    """Pulumi's name and Azure's."""
    return record.name, record.id.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class BlockedDeletion:
    """A protected resource that would go: the word for its type, its name and its machines, why it would go, and what to do instead."""

    word: str
    name: str
    machines: int
    why: str
    instead: str


class UpdateRefusedError(GpufleetError):
    """An update that would do what nobody has allowed, and therefore did nothing: a paragraph for each reason.

    guarded are the protected resources that would go, losses the machines by scale set; allowed is what was allowed.
    """

    exit_status = 1

    def __init__(self, guarded: Iterable[BlockedDeletion], losses: Mapping[str, int], allowed: Approvals) -> None:
        self.guarded, self.losses = tuple(guarded), dict(losses)
        by_reason: dict[str, list[BlockedDeletion]] = {}
        for one in self.guarded:
            by_reason.setdefault(one.why, []).append(one)
        told = [_guarded(group) for group in by_reason.values()]
        super().__init__("\n".join([*told, _lost(self.losses, allowed)] if self.losses else told))


def _guarded(group: Sequence[BlockedDeletion]) -> str:
    """Why protected resources stay, by name, and what a person can do."""
    group = sorted(group, key=lambda item: (item.word != SCALE_SET, item.word, item.name))
    lost, first = sum(item.machines for item in group), group[0]
    machines = f", with {_machines(lost)}" if lost else ""
    if len(group) == 1:
        told, serve, flag = f"{first.word} {first.name}{machines}", "it serves", f"--unprotect {first.name}"
    else:
        lines = [f"  {one.word} {one.name}{f', {_machines(one.machines)}' if one.machines else ''}" for one in group]
        told, serve = "\n".join([*lines, f"these {len(group):,} resources{machines}"]), "they serve"
        flag = f"--unprotect NAME for each, or --unprotect {EVERYTHING} for all {len(group):,}"
    return f"{told}: protected, and {first.why}; {first.instead}, or see to what {serve} and allow it: {flag}"


def _lost(losses: Mapping[str, int], allowed: Approvals) -> str:
    """Why machines stay, by scale set, and what a person can do."""
    total = sum(losses.values())
    names = sorted(losses, key=lambda name: -losses[name])
    told = ", ".join(f"{losses[name]:,} of {name}" for name in names[:SCALE_SETS_NAMED])
    told += f", and more of {len(names) - SCALE_SETS_NAMED} others" if len(names) > SCALE_SETS_NAMED else ""
    given = f" (--accept-loss-of {allowed.machines} is not that number)" if allowed.machines is not None else ""
    return (
        f"{_machines(total)} would go ({told}){given}: Azure would choose which, drained or not; put the number back, or drain those "
        f"that shall go and delete them by instance, or give up exactly so many: --accept-loss-of {total}"
    )


def _machines(count: int) -> str:
    return f"{count:,} machine{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class WorkSpan:
    """When a resource was worked on, in seconds since 1970 of Azure's time."""

    began: float
    ended: float


@dataclass
class Update:
    """One update of one stack: name, what it has, and by URN what it has declared, what failed and why, what was not tried, and when."""

    name: str
    stack: StackState
    caller: RequestScheduler
    allowed: Approvals
    declared: set[str] = field(default_factory=set)
    failures: dict[str, Failure] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    spans: dict[str, WorkSpan] = field(default_factory=dict)
    guarded: list[BlockedDeletion] = field(default_factory=list)
    losses: dict[str, int] = field(default_factory=dict)
    """Machines that go without having been taken out one by one, by the name of their scale set."""

    @property
    def principal(self) -> str:
        """Who asks, as Azure hears it."""
        return f"gpufleet:{self.name}"

    def record(self, asked: Registration, resource_id: str, kept: dict[str, object] | None = None) -> None:
        """Keep what the stack has now."""
        self.stack.records[asked.urn] = StackRecord(
            urn=asked.urn,
            type=asked.type,
            parent=asked.parent,
            id=resource_id,
            dependencies=tuple(sorted(urn for urn in asked.waits_for if "pulumi:providers:" not in urn)),
            protect=asked.protect,
            retain=asked.retain_on_delete,
            kept=kept,
        )
