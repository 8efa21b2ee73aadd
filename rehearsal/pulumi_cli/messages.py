"""Decides how a verb on Pulumi's own engine is told: how far it has come, what it came to, and what to do about what failed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from rehearsal.local_up.failure_text import NAMED, REMEDIES
from rehearsal.pulumi_cli import change_tree
from rehearsal.pulumi_cli.events import STACK, OperationTimeline
from rehearsal.pulumi_cli.region_commands import RegionResult

PROGRESS_WORDS: Mapping[str, Mapping[str, str]] = {
    "up": {"create": "created", "update": "updated", "replace": "replaced", "delete": "deleted", "same": "unchanged"},
    "preview": {"create": "to create", "update": "to update", "replace": "to replace", "delete": "to delete", "same": "unchanged"},
    "refresh": {"update": "changed", "delete": "gone", "create": "found", "same": "unchanged", "refresh": "unchanged"},
    "destroy": {"delete": "deleted"},
}
DEFAULT_REMEDY = "mend what is named above, then run the same command again"
REMEDY_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"already exist"),
        "it is there, and this state does not know it: delete it where it is, or let the state have it (pulumi import, docs/pulumi.md)",
    ),
    (
        re.compile(r"marked for protection|protected"),
        "put it back into the region file; or see to what it serves and allow it: --unprotect NAME",
    ),
    (
        re.compile(r"/readyz|does not answer|connection refused|no route to host|Unable to connect|deadline exceeded", re.IGNORECASE),
        "look after that cluster's control plane (docs/runbooks/README.md); what does not need it is done, and the next run does the rest",
    ),
    (re.compile(r"not in the hub's network"), "run it from inside the hub's network"),
)
"""What a failure says, and what to do, where Azure's own code does not tell it."""


def progress(course: OperationTimeline) -> str:
    """How far an operation has come, in one line."""
    counts, words = course.counts(), PROGRESS_WORDS[course.verb]
    told = [f"{counts[op]:,} {word}" for op, word in words.items() if counts[op] and op != "refresh"]
    failed = len(course.failed)
    told += [f"{failed:,} failed"] if failed else []
    under_way = course.under_way
    if under_way:
        first = under_way[0]
        more = f" and {len(under_way) - 1:,} more" if len(under_way) > 1 else ""
        told.append(f"under way {first.type.rpartition(':')[2]} {first.name}{more}")
    return f"{course.verb} {course.stack}: {', '.join(told) or 'starting'}"


def conclusion(outcome: RegionResult, command: str, *, everything: bool) -> list[str]:
    """All that a person reads at the end; command is what they typed, to be typed again."""
    told: list[str] = []
    for course in outcome.courses:
        told += change_tree.tree_of_changes(course, everything=everything)
        told.append(f"{course.stack}: {change_tree.count_line(course)} ({course.seconds:.0f} s)")
    if outcome.purged:
        told.append(f"{outcome.purged:,} deleted vault{'' if outcome.purged == 1 else 's'} purged, whose names are free now")
    if outcome.complete:
        return told
    cut_off = [urn for course in outcome.courses for urn in course.cut_off] if outcome.interrupted else []
    ending = [sentence for course in outcome.courses for sentence in _failures(course, set(cut_off))]
    if outcome.untried:
        ending.append(f"Stack {outcome.untried}.")
    if outcome.interrupted:
        ending.append(f"Interrupted{_interrupted_text(cut_off)}. What had ended is in the state. To go on from there: {command}")
    elif any(course.failures for course in outcome.courses):
        ending.append(f"What is done stays done. When it is mended: {command}")
    return [*told, *(line for sentence in ending for line in ("", sentence))]


def _interrupted_text(urns: Sequence[str]) -> str:
    """What did not come to its end, in a clause."""
    if not urns:
        return ""
    names = ", ".join(_resource_label(urn).rstrip(": ") for urn in urns[:NAMED])
    more = f" and {len(urns) - NAMED:,} more" if len(urns) > NAMED else ""
    return f": {len(urns):,} operation{'' if len(urns) == 1 else 's'} cut off ({names}{more}), which Azure may still finish"


def _failures(course: OperationTimeline, cut_off: Collection[str]) -> Iterator[str]:
    """A paragraph for each kind of failure: whom it met, what was said, what to do. What only says that something failed is left out."""
    groups: dict[tuple[str, str], list[str]] = {}
    for urn, messages in course.failures.items():
        if urn in cut_off:
            continue
        message = messages[0]
        groups.setdefault((_remedy(message), _failure_group(message)), []).append(f"{_resource_label(urn)}{message}")
    for (remedy, _), told in groups.items():
        more = f"\nand {len(told) - NAMED:,} more like it" if len(told) > NAMED else ""
        yield "{}{}\nWhat to do: {}.".format("\n".join(told[:NAMED]), more, remedy)


def _failure_group(message: str) -> str:
    """What makes two failures one kind: Azure's code, or the first words."""
    return next((code for code in REMEDIES if code in message), message[:40])


def _remedy(message: str) -> str:
    for code, remedy in REMEDIES.items():
        if code in message:
            return remedy
    return next((remedy for pattern, remedy in REMEDY_PATTERNS if pattern.search(message)), DEFAULT_REMEDY)


def _resource_label(urn: str) -> str:
    if not urn or STACK in urn.rpartition("::")[0].rpartition("$")[2]:
        return ""
    chain, _, name = urn.rpartition("::")
    return f"{chain.rpartition(':')[2]} {name}: "
