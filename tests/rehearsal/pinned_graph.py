"""The text of a rehearsed graph that goldens pin and tests compare, without values that differ from run to run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from rehearsal.program.graph import Graph, Resource, mask

KEYS = re.compile(r"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----\n?", re.DOTALL)
"""Certificates and keys are real, so they differ from run to run, as join tokens do."""
TOKEN_NAME = re.compile(r"^bootstrap-token-[a-z0-9]{6}$")
ABSENT = "[absent]"


def pinned(graph: Graph) -> str:
    """Every resource's type, name, parent, dependencies, options and inputs as YAML, in the order of names."""
    return _text(_resources(graph))


def pinned_azure(graph: Graph) -> str:
    """The same without the inputs of Kubernetes objects, which have goldens of their own below tests/golden/manifests."""
    return _text(_without_objects(graph))


@dataclass(frozen=True)
class Part:
    """The resources of a graph whose logical names have a prefix, and their counterparts in a reference graph.

    `patterns` are regular expressions of names and addresses, with their replacements in the reference.
    """

    prefix: str
    reference_prefix: str
    patterns: Mapping[str, str]


def pinned_differences(graph: Graph, reference: Graph, parts: Mapping[str, Part]) -> str:
    """Return the differences between the parts of a graph, such as its clusters, and their counterparts in a reference graph.

    The text lists, for each part, the resources that only one side has (those of the graph whole), and the paths at which the others differ
    with the graph's value. A resource belongs to the part with the longest matching prefix.
    """
    ours_by_part = _by_prefix(_without_objects(graph), {part.prefix for part in parts.values()})
    theirs_by_part = _by_prefix(_without_objects(reference), {part.reference_prefix for part in parts.values()})
    document: dict[str, Any] = {}
    for name, part in parts.items():
        ours, theirs = _translated(ours_by_part[part.prefix], part.patterns), theirs_by_part[part.reference_prefix]
        differences = {resource: _differing(item, theirs[resource]) for resource, item in ours.items() if resource in theirs}
        document[name] = {
            "added": {resource: item for resource, item in ours.items() if resource not in theirs},
            "missing": sorted(set(theirs) - set(ours)),
            "changed": {resource: paths for resource, paths in differences.items() if paths},
        }
    return _text(document)


def _by_prefix(resources: Mapping[str, Any], prefixes: set[str]) -> dict[str, dict[str, Any]]:
    """The resources by the longest prefix of their logical name; KeyError for one that has none."""
    groups: dict[str, dict[str, Any]] = {prefix: {} for prefix in prefixes}
    for key, item in resources.items():
        logical = key.partition(" ")[2]
        longest = max((prefix for prefix in prefixes if f"{logical}-".startswith(prefix)), key=len)
        groups[longest][key] = item
    return groups


def _resources(graph: Graph) -> dict[str, dict[str, Any]]:
    return {
        f"{item.type.rpartition(':')[2]} {item.name}": {
            "type": item.type,
            "parent": item.parent and item.parent.rpartition("::")[2],
            "dependencies": [urn.rpartition("::")[2] for urn in item.dependencies],
            "protect": item.protect,
            "ignoreChanges": list(item.ignore_changes),
            "inputs": _lasting(mask(item.inputs)),
        }
        for item in graph
    }


def _without_objects(graph: Graph) -> dict[str, dict[str, Any]]:
    """The resources; of an object of the manifests the inputs are left out, and of its dependencies the kinds are counted."""
    resources = _resources(graph)
    for item in resources.values():
        if item["type"].startswith("kubernetes:"):
            item["dependencies"] = _counted(item["dependencies"])
    for item in graph:
        if is_manifest(item):
            del resources[f"{item.type.rpartition(':')[2]} {item.name}"]["inputs"]
    return resources


def is_manifest(resource: Resource) -> bool:
    """Return whether a resource is a Kubernetes object of `components/manifests`, whose logical name has its kind and name."""
    return resource.type.startswith("kubernetes:") and "/" in resource.name


def _counted(names: list[str]) -> list[str]:
    """The kinds of objects among logical names, each with its number; other names stay."""
    kinds = Counter(name.partition("/")[0] for name in names if "/" in name)
    return [*(name for name in names if "/" not in name), *(f"{kind}/* ({number})" for kind, number in sorted(kinds.items()))]


def _lasting(value: Any, key: str = "") -> Any:
    """A value without what differs from run to run; boot files have goldens of their own."""
    if isinstance(value, dict):
        return {name: _lasting(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_lasting(item, key) for item in value]
    if key in ("customData", "custom_data_sha256"):
        return "[boot files]"
    if key == "token-id":
        return "[token]"
    if isinstance(value, str):
        return TOKEN_NAME.sub("bootstrap-token-[token]", KEYS.sub("[PEM]", value))
    return value


def _translated(value: Any, patterns: Mapping[str, str]) -> Any:
    """A value in which every text, keys included, has each pattern replaced."""
    if isinstance(value, dict):
        return {_translated(name, patterns): _translated(item, patterns) for name, item in value.items()}
    if isinstance(value, list):
        return [_translated(item, patterns) for item in value]
    if isinstance(value, str):
        for pattern, replacement in patterns.items():
            value = re.sub(pattern, replacement, value)
    return value


def _differing(ours: Any, theirs: Any) -> dict[str, Any]:
    """The values of `ours` by path where they differ from `theirs`; ABSENT where only `theirs` has the path."""
    left, right = dict(_leaves(ours)), dict(_leaves(theirs))
    return {path: left.get(path, ABSENT) for path in sorted({*left, *right}) if left.get(path, ABSENT) != right.get(path, ABSENT)}


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar and empty container with its path; a list of texts counts as one value, because an inserted text moves the others."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{item['name'] if isinstance(item, dict) and 'name' in item else index}]")
    else:
        yield path, value


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _text(document: Any) -> str:
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=True, width=140, allow_unicode=True, default_flow_style=False)
    return text
