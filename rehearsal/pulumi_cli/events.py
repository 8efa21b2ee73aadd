"""Decides what an engine's events come to: which resource is at which step, what failed and why, and what the whole came to."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
STACK, PROVIDER = "pulumi:pulumi:Stack", "pulumi:providers:"
UNCHANGED = ("same", "read", "refresh")
"""Steps after which nothing is different."""
REPLACEMENT_STEPS = {
    "create-replacement": "replace",
    "delete-replaced": "replace",
    "read-replacement": "replace",
    "discard-replaced": "replace",
}
"""The steps that together are the replacement of one resource."""
COLOR = re.compile(r"<\{%[^%]*%\}>|\x1b\[[0-9;]*m")

URN = re.compile(r"urn:pulumi:[^\s'\"]*::([^\s'\":]+)")
CANCELLED = re.compile(r"\bcancell?ed\b", re.IGNORECASE)
AZURE_ID = re.compile(r"/subscriptions/[^\s'\"]*/providers/[^/\s'\"]+/(?=[^/\s'\"]+/)")
ADVICE = (" To unprotect the resource,", "; to let the stack have it, import it", "; Azure may go on with it, and `pulumi refresh`")
UNINFORMATIVE = re.compile(r"(update|preview|refresh|destroy) (failed|canceled)$")


@dataclass(frozen=True, slots=True)
class ResourceStep:
    """One step of one resource: op as the engine names it, paths what differs by kind, diffs and keys the
    properties that do, and those that force a replacement."""

    op: str
    urn: str
    type: str
    old: Json
    new: Json
    keys: tuple[str, ...]
    paths: Mapping[str, str]
    diffs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The logical name."""
        return self.urn.rpartition("::")[2]

    @property
    def state(self) -> Json:
        """The resource as it is after the step, or was before a deletion."""
        return self.new or self.old


@dataclass
class OperationTimeline:
    """The course of one operation of the engine on one stack, as its events tell it.

    begun and ended hold one step per URN: the engine tells some more than once. failures have what the engine and the providers said, by
    URN, and under the empty URN what concerns no resource.
    """

    stack: str
    verb: str
    begun: dict[str, ResourceStep] = field(default_factory=dict)
    ended: dict[str, ResourceStep] = field(default_factory=dict)
    failures: dict[str, list[str]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    changes: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    code: int | None = None
    """The CLI's exit status, None while it runs."""

    def take(self, line: str) -> str | None:
        """Take up one event; a sentence where a person should hear of it at once."""
        try:
            event = json.loads(line)
        except ValueError:
            # What a killed CLI wrote last.
            return None
        for kind, body in event.items():
            match kind:
                case "resourcePreEvent":
                    self._step(self.begun, body)
                case "resOutputsEvent":
                    self._step(self.ended, body)
                case "resOpFailedEvent":
                    self.failed.add(body["metadata"]["urn"])
                case "diagnosticEvent":
                    return self._said(body)
                case "summaryEvent":
                    self.changes = body.get("resourceChanges") or {}
                    self.seconds = body.get("durationSeconds", 0)
        return None

    def concluded(self, code: int, said: str) -> None:
        """Take up how the CLI ended; what it said counts where no event tells why it failed."""
        self.code = code
        if code and not self.failures:
            self.failures[""] = [_one_line(said) or f"the CLI ended with status {code}"]

    @property
    def complete(self) -> bool:
        """Whether it came to its end and nothing failed."""
        return self.code == 0 and not self.failures

    @property
    def under_way(self) -> list[ResourceStep]:
        """What has begun and not ended, the oldest first; components last as long as what is in them, and are none of it."""
        going = (step for urn, step in self.begun.items() if urn not in self.ended and urn not in self.failed)
        return [step for step in going if step.state.get("custom")]

    @property
    def cut_off(self) -> list[str]:
        """URNs of what a request to stop has kept from its end."""
        return [urn for urn, told in self.failures.items() if urn and all(CANCELLED.search(one) for one in told)]

    def counts(self) -> Counter[str]:
        """Resources that have ended by what became of them, a replacement as one."""
        return Counter(REPLACEMENT_STEPS.get(step.op, step.op) for step in self.resources())

    def resources(self) -> Iterator[ResourceStep]:
        """What has ended, less the stack itself and the default providers, which Pulumi does not count either."""
        return (step for step in self.ended.values() if step.type != STACK and not _default_provider(step))

    def changed(self) -> list[ResourceStep]:
        """What has ended and is different, in the order in which it ended."""
        return [step for step in self.resources() if step.op not in UNCHANGED]

    def _step(self, into: dict[str, ResourceStep], body: Json) -> None:
        told = body["metadata"]
        step = ResourceStep(
            op=told.get("op", ""),
            urn=told["urn"],
            type=told.get("type", ""),
            old=told.get("old") or {},
            new=told.get("new") or {},
            keys=tuple(told.get("keys") or ()),
            paths={path: diff.get("diffKind", "") for path, diff in (told.get("detailedDiff") or {}).items()},
            diffs=tuple(told.get("diffs") or ()),
        )
        before = into.get(step.urn)
        if before is None or _precedence(step) >= _precedence(before):
            into[step.urn] = step

    def _said(self, body: Json) -> str | None:
        severity, urn = body.get("severity"), body.get("urn") or ""
        text = _one_line(body.get("message", ""))
        if severity == "error" and text and not UNINFORMATIVE.match(text):
            told = self.failures.setdefault(urn, [])
            if text not in told:
                told.append(text)
                return f"failed: {_resource_label(urn)}{text}" if urn else f"failed: {text}"
        elif severity == "warning" and text and text not in self.warnings:
            self.warnings.append(text)
        return None


def _one_line(message: str) -> str:
    """A message in one line, without colours, names in place of URNs and of Azure's ids, and no advice that is for another command."""
    text = AZURE_ID.sub("", URN.sub(r"\1", COLOR.sub("", message)))
    for advice in ADVICE:
        text = text.partition(advice)[0]
    return " ".join(text.split())


def _precedence(step: ResourceStep) -> int:
    """Which of several steps of one resource says most: its replacement as a whole, then that anything changes at all."""
    return 2 if step.op in ("replace", *REPLACEMENT_STEPS) else 1 if step.op not in UNCHANGED else 0


def _default_provider(step: ResourceStep) -> bool:
    return step.type.startswith(PROVIDER) and step.name.startswith("default")


def _resource_label(urn: str) -> str:
    chain, _, name = urn.rpartition("::")
    return f"{chain.rpartition(':')[2]} {name}: "
