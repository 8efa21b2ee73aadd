"""Progress and final report of a command on Pulumi's engine: counts, changes, failures and remedies."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from rehearsal.local_up.failure_text import REMEDIES, RESOURCES_NAMED
from rehearsal.pulumi_cli import change_tree
from rehearsal.pulumi_cli.events import STACK, OperationTimeline
from rehearsal.pulumi_cli.region_commands import RegionResult

PROGRESS_WORDS: Mapping[str, Mapping[str, str]] = {
    "up": {"create": "created", "update": "updated", "replace": "replaced", "delete": "deleted", "same": "unchanged"},
    "preview": {"create": "to create", "update": "to update", "replace": "to replace", "delete": "to delete", "same": "unchanged"},
    "refresh": {"update": "changed", "delete": "gone", "create": "found", "same": "unchanged", "refresh": "unchanged"},
    "destroy": {"delete": "deleted"},
}
DEFAULT_REMEDY = "correct what is named above, then run the same command again"
REMEDY_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"already exist"),
        "it exists, but not in this state: delete it, or add it to the state (pulumi import, docs/pulumi.md)",
    ),
    (
        re.compile(r"marked for protection|protected"),
        "put it back into the region file; or allow its deletion with --unprotect NAME",
    ),
    (
        re.compile(r"/readyz|does not answer|connection refused|no route to host|Unable to connect|deadline exceeded", re.IGNORECASE),
        "repair that cluster's control plane (docs/runbooks/README.md), then run the same command again for the rest",
    ),
    (re.compile(r"not in the hub's network"), "run it from inside the hub's network"),
)
"""Remedies by pattern, for failures without an error code of Azure."""


def progress(timeline: OperationTimeline) -> str:
    """Return the progress of an operation as one line."""
    counts, words = timeline.counts(), PROGRESS_WORDS[timeline.verb]
    parts = [f"{counts[op]:,} {word}" for op, word in words.items() if counts[op] and op != "refresh"]
    failed = len(timeline.failed)
    parts += [f"{failed:,} failed"] if failed else []
    under_way = timeline.under_way
    if under_way:
        first = under_way[0]
        more = f" and {len(under_way) - 1:,} more" if len(under_way) > 1 else ""
        parts.append(f"under way {first.type.rpartition(':')[2]} {first.name}{more}")
    return f"{timeline.verb} {timeline.stack}: {', '.join(parts) or 'starting'}"


COUNTED = "with components and providers, as Pulumi counts"
"""What the totals of Pulumi's engine include, and those of the local up and of a rehearsal do not."""


def conclusion(outcome: RegionResult, command: str, *, everything: bool) -> list[str]:
    """Return the final report; command is the user's command line, to be run again."""
    report: list[str] = []
    for timeline in outcome.timelines:
        report += change_tree.tree_of_changes(timeline, everything=everything)
        report.append(f"{timeline.stack}: {change_tree.count_line(timeline)} ({timeline.seconds:.0f} s; {COUNTED})")
    if outcome.purged:
        report.append(f"{outcome.purged:,} deleted vault{'' if outcome.purged == 1 else 's'} purged, so that their names are free")
    if outcome.complete:
        return report
    cut_off = [urn for timeline in outcome.timelines for urn in timeline.cut_off] if outcome.interrupted else []
    ending = [sentence for timeline in outcome.timelines for sentence in _failures(timeline, set(cut_off))]
    if outcome.untried:
        ending.append(f"Stack {outcome.untried}.")
    if outcome.interrupted:
        ending.append(f"Interrupted{_interrupted_text(cut_off)}. Completed operations are in the state. To continue: {command}")
    elif any(timeline.failures for timeline in outcome.timelines):
        ending.append(f"Completed changes remain. After the correction, run: {command}")
    return [*report, *(line for sentence in ending for line in ("", sentence))]


def _interrupted_text(urns: Sequence[str]) -> str:
    """Return a clause on the operations that were cut off."""
    if not urns:
        return ""
    names = ", ".join(_resource_label(urn).rstrip(": ") for urn in urns[:RESOURCES_NAMED])
    more = f" and {len(urns) - RESOURCES_NAMED:,} more" if len(urns) > RESOURCES_NAMED else ""
    return f": {len(urns):,} operation{'' if len(urns) == 1 else 's'} cut off ({names}{more}), which Azure may still finish"


def _failures(timeline: OperationTimeline, cut_off: Collection[str]) -> Iterator[str]:
    """Yield a paragraph for each kind of failure: resources, messages, remedy. Resources that were only cut off are left out."""
    groups: dict[tuple[str, str], list[str]] = {}
    for urn, messages in timeline.failures.items():
        if urn in cut_off:
            continue
        message = messages[0]
        groups.setdefault((_remedy(message), _failure_group(message)), []).append(f"{_resource_label(urn)}{message}")
    for (remedy, _), parts in groups.items():
        more = f"\nand {len(parts) - RESOURCES_NAMED:,} more of the same kind" if len(parts) > RESOURCES_NAMED else ""
        yield "{}{}\nWhat to do: {}.".format("\n".join(parts[:RESOURCES_NAMED]), more, remedy)


def _failure_group(message: str) -> str:
    """Return the group of a failure: Azure's error code, or the first characters of the message."""
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
