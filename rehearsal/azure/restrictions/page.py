"""Page of the restrictions, docs/azure-restrictions.md, rendered from the table: `gpufleet schema` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rehearsal.azure.restrictions.restriction import Restriction
from rehearsal.azure.restrictions.table import RESTRICTIONS

INTRODUCTION = """\
# Restrictions of Azure

The [embedded Azure](embedded-azure.md) refuses a PUT or a PATCH with a value that Azure documents as invalid. Each row below is one
restriction. `gpufleet schema` writes this page from `rehearsal/azure/restrictions/`. Do not edit this page.

- *Place* is `name`, or the path in the body without its parts `properties`. `[]` means each item of a list.
- *Code* is marked with an asterisk if the rule is documented and its code or message is not public.
- A row *at creation* does not apply to an existing resource.
- A placeholder of Microsoft's published examples, such as `{your-password}`, counts as a valid value, also without its braces.

References to other resources, changes of fixed properties, and values that depend on other resources are checked by the types
themselves. Their codes are in [embedded Azure](embedded-azure.md).
"""
HEADINGS = ("place", "must be", "status and code", "source")


def page(rows: Iterable[Restriction] = RESTRICTIONS) -> str:
    """Return the page as Markdown: one section per resource type, in the order of the table."""
    by_type: dict[str, list[tuple[str, Restriction]]] = {}
    for row in rows:
        for kind, place in row.places.items():
            by_type.setdefault(kind, []).append((place, row))
    sections = (_section("All types" if kind == "*" else kind, found) for kind, found in by_type.items())
    return "\n\n".join((INTRODUCTION.strip(), *sections)) + "\n"


def _section(title: str, rows: Iterable[tuple[str, Restriction]]) -> str:
    lines = (f"| {' | '.join(HEADINGS)} |", f"|{'---|' * len(HEADINGS)}", *(_line(_cells(place, row)) for place, row in rows))
    return "\n".join((f"## {title}", "", *lines))


def _cells(place: str, row: Restriction) -> Iterator[str]:
    yield f"`{place.replace('properties.', '').removesuffix('.properties')}`"
    yield row.rule.bound + (" (at creation)" if row.creation_only else "")
    yield f"{row.status} {row.code}" + ("\\*" if row.code_assumed else "")
    yield f"[source]({row.source})"


def _line(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("<", "&lt;").replace("*,", "\\*,") for cell in cells)
    return f"| {' | '.join(escaped)} |"
