"""Comparison of two graphs: whether they register the same resources, apart from components and parents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rehearsal.program.dynamic_providers import DynamicProviders
from rehearsal.program.graph import Graph, Resource

Key = tuple[str, str]
"""Type and name, which identify a resource in its stack without its parents."""


def differences(ours: Graph, bare: Graph, *, dependencies: bool) -> list[str]:
    """Return a line for each resource that differs; with dependencies, its dependencies must be equal too."""
    left, right = _by_key(ours), _by_key(bare)
    lines = [f"{kind} {name}: only in one" for kind, name in sorted(left.keys() ^ right.keys())]
    for key in sorted(left.keys() & right.keys()):
        expected, found = dict(_facts(left[key], ours, dependencies)), dict(_facts(right[key], bare, dependencies))
        wrong = [fact for fact, value in expected.items() if found[fact] != value]
        lines += [f"{key[0]} {key[1]}: differs in {', '.join(wrong)}"] if wrong else []
    return lines


def _by_key(graph: Graph) -> dict[Key, Resource]:
    return {(item.type, item.name): item for item in graph if item.custom}


def _facts(resource: Resource, graph: Graph, dependencies: bool) -> Iterator[tuple[str, Any]]:
    yield "inputs", {key: value for key, value in resource.inputs.items() if key != DynamicProviders.KEY}
    yield "protect", resource.protect
    yield "ignore_changes", resource.ignore_changes
    yield "additional_secret_outputs", resource.additional_secret_outputs
    yield "provider", _keys(graph, (resource.provider,) if resource.provider else ())
    if dependencies:
        yield "dependencies", _keys(graph, resource.dependencies)
        yield "property_dependencies", {key: _keys(graph, urns) for key, urns in resource.property_dependencies.items()}


def _keys(graph: Graph, urns: tuple[str, ...]) -> set[Key]:
    return {(graph.by_urn[urn].type, graph.by_urn[urn].name) for urn in urns}
