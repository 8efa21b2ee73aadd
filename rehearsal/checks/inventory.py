"""Check that a program registered every planned resource once, no other resource, and each as planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from components.plan.model import RegionPlan
from rehearsal.checks.expected_resources import ExpectedResource, expected_resources
from rehearsal.checks.finding import Finding
from rehearsal.checks.network_model import key
from rehearsal.checks.registered_properties import properties_of
from rehearsal.program.graph import Graph, Resource

ALL_THERE = "every planned resource is registered exactly once"
NOTHING_ELSE = "no unplanned resource is registered"
AS_PLANNED = "every registered resource is as planned"

ROLE_ASSIGNMENT = "azure-native:authorization:RoleAssignment"
"""A type that rehearsal.checks.role_assignments checks."""
SHOWN = 240
"""Characters of a value that a finding shows."""


def check_inventory(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    """Compare the Azure resources of a region's two stacks with its plan, by Azure id."""
    registered: dict[str, list[Resource]] = {}
    for resource in (*base, *clusters):
        if resource.type != ROLE_ASSIGNMENT:
            registered.setdefault(key(resource.id), []).append(resource)
    planned = {key(expected.id): expected for expected in expected_resources(plan)}
    return (*_missing_or_different(planned, registered), *_unplanned(planned, registered))


def _missing_or_different(planned: dict[str, ExpectedResource], registered: dict[str, list[Resource]]) -> Iterator[Finding]:
    for name, expected in planned.items():
        found = registered.get(name, [])
        if not found:
            yield Finding(ALL_THERE, short_id(expected.id), "registered once", "nothing", "let the program register it")
        elif len(found) > 1:
            yield Finding(ALL_THERE, short_id(expected.id), "registered once", _urns(found), "let the program register it once")
        for resource in found:
            yield from _differences(expected, resource)


def _differences(expected: ExpectedResource, resource: Resource) -> Iterator[Finding]:
    found = properties_of(resource)
    for word, value in expected.properties.items():
        if word not in found or found[word] != value:
            planned, registered = _sides(value, found.get(word))
            yield Finding(
                AS_PLANNED, f"{short_id(expected.id)}: {word}", planned, registered, "let the program take the value from the plan"
            )


def _sides(planned: object, found: object) -> tuple[str, str]:
    """Return both sides of a difference as text: of two lists the items that the other lacks, or all where only the order differs."""
    if isinstance(planned, tuple) and isinstance(found, tuple):
        missing, surplus = (tuple(item for item in one if item not in other) for one, other in ((planned, found), (found, planned)))
        if missing or surplus:
            return _shown(missing), _shown(surplus)
    return _shown(planned), _shown(found)


def _unplanned(planned: dict[str, ExpectedResource], registered: dict[str, list[Resource]]) -> Iterator[Finding]:
    for name, found in registered.items():
        if name not in planned:
            yield Finding(NOTHING_ELSE, short_id(str(found[0].id)), "nothing", _urns(found), "plan it, or let the program leave it out")


def _urns(resources: Sequence[Resource]) -> str:
    return f"{resources[0].type} {', '.join(resource.name for resource in resources)}"


def short_id(resource_id: str) -> str:
    """Return a resource id without its subscription, for messages."""
    return resource_id.partition("/resourceGroups/")[2].replace("/providers/Microsoft.", "/") or resource_id


def _shown(value: object) -> str:
    text = (", ".join(map(str, value)) or "nothing") if isinstance(value, tuple) else "nothing" if value is None else str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
