"""Events of Pulumi's engine during one operation on a stack: steps of resources, failures, totals."""

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
"""Operations that change nothing."""
REPLACEMENT_STEPS = {
    "create-replacement": "replace",
    "delete-replaced": "replace",
    "read-replacement": "replace",
    "discard-replaced": "replace",
}
"""Operations that together replace one resource."""
COLOR = re.compile(r"<\{%[^%]*%\}>|\x1b\[[0-9;]*m")

URN = re.compile(r"urn:pulumi:[^\s'\"]*::([^\s'\":]+)")
CANCELLED = re.compile(r"\bcancell?ed\b", re.IGNORECASE)
AZURE_ID = re.compile(r"/subscriptions/[^\s'\"]*/providers/[^/\s'\"]+/(?=[^/\s'\"]+/)")
ADVICE = (" To unprotect the resource,", "; to add it to the stack, import it", "; Azure may still finish it, and `pulumi refresh`")
UNINFORMATIVE = re.compile(r"(update|preview|refresh|destroy) (failed|canceled)$")


@dataclass(frozen=True, slots=True)
class ResourceStep:
    """One step of one resource.

    op is the engine's name of the operation, paths the changed properties with the kind of their change, diffs the changed top-level
    properties, keys those that force a replacement.
    """

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
        """Return the logical name of the resource."""
        return self.urn.rpartition("::")[2]

    @property
    def state(self) -> Json:
        """Return the state of the resource after the step, or before its deletion."""
        return self.new or self.old


@dataclass
class OperationTimeline:
    """Timeline of one operation on one stack, from the engine's events.

    begun and ended contain one step per URN, because the engine reports some steps twice. failures contains the messages of the engine and
    the providers by URN; the empty URN is for messages without a resource.
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

    def add_event(self, line: str) -> str | None:
        """Add one event; return a sentence that should be printed at once, or None."""
        try:
            event = json.loads(line)
        except ValueError:
            # A killed CLI leaves an incomplete last line.
            return None
        for event_type, body in event.items():
            match event_type:
                case "resourcePreEvent":
                    self._add_step(self.begun, body)
                case "resOutputsEvent":
                    self._add_step(self.ended, body)
                case "resOpFailedEvent":
                    self.failed.add(body["metadata"]["urn"])
                case "diagnosticEvent":
                    return self._add_message(body)
                case "summaryEvent":
                    self.changes = body.get("resourceChanges") or {}
                    self.seconds = body.get("durationSeconds", 0)
        return None

    def finish(self, code: int, output: str) -> None:
        """Add the CLI's exit status; its output is the failure where no event gives a reason."""
        self.code = code
        if code and not self.failures:
            self.failures[""] = [_one_line(output) or f"the CLI ended with status {code}"]

    @property
    def complete(self) -> bool:
        """Return whether the operation ended without a failure."""
        return self.code == 0 and not self.failures

    @property
    def under_way(self) -> list[ResourceStep]:
        """Return the steps under way, oldest first; without components, which last as long as their children."""
        started = (step for urn, step in self.begun.items() if urn not in self.ended and urn not in self.failed)
        return [step for step in started if step.state.get("custom")]

    @property
    def cut_off(self) -> list[str]:
        """Return the URNs of operations that an interrupt cut off."""
        return [urn for urn, messages in self.failures.items() if urn and all(map(CANCELLED.search, messages))]

    def counts(self) -> Counter[str]:
        """Count the ended resources by operation, a replacement as one."""
        return Counter(REPLACEMENT_STEPS.get(step.op, step.op) for step in self.resources())

    def resources(self) -> Iterator[ResourceStep]:
        """Return the ended steps, without the stack itself and the default providers, which Pulumi does not count either."""
        return (step for step in self.ended.values() if step.type != STACK and not _default_provider(step))

    def changed(self) -> list[ResourceStep]:
        """Return the ended steps that changed something, in the order of their ends."""
        return [step for step in self.resources() if step.op not in UNCHANGED]

    def _add_step(self, into: dict[str, ResourceStep], body: Json) -> None:
        metadata = body["metadata"]
        step = ResourceStep(
            op=metadata.get("op", ""),
            urn=metadata["urn"],
            type=metadata.get("type", ""),
            old=metadata.get("old") or {},
            new=metadata.get("new") or {},
            keys=tuple(metadata.get("keys") or ()),
            paths={path: diff.get("diffKind", "") for path, diff in (metadata.get("detailedDiff") or {}).items()},
            diffs=tuple(metadata.get("diffs") or ()),
        )
        before = into.get(step.urn)
        if before is None or _precedence(step) >= _precedence(before):
            into[step.urn] = step

    def _add_message(self, body: Json) -> str | None:
        severity, urn = body.get("severity"), body.get("urn") or ""
        text = _one_line(body.get("message", ""))
        if severity == "error" and text and not UNINFORMATIVE.match(text):
            messages = self.failures.setdefault(urn, [])
            if text not in messages:
                messages.append(text)
                return f"failed: {_resource_label(urn)}{text}" if urn else f"failed: {text}"
        elif severity == "warning" and text and text not in self.warnings:
            self.warnings.append(text)
        return None


def _one_line(message: str) -> str:
    """Return a message as one line, with names in place of URNs and Azure ids, and without colours and advice for other commands."""
    text = AZURE_ID.sub("", URN.sub(r"\1", COLOR.sub("", message)))
    for advice in ADVICE:
        text = text.partition(advice)[0]
    return " ".join(text.split())


def _precedence(step: ResourceStep) -> int:
    """Return the precedence of a step among those of one resource: a replacement first, then any change."""
    return 2 if step.op in ("replace", *REPLACEMENT_STEPS) else 1 if step.op not in UNCHANGED else 0


def _default_provider(step: ResourceStep) -> bool:
    return step.type.startswith(PROVIDER) and step.name.startswith("default")


def _resource_label(urn: str) -> str:
    chain, _, name = urn.rpartition("::")
    return f"{chain.rpartition(':')[2]} {name}: "
