"""Compares what a program registered in process with what Pulumi's own engine has of it: its state, or its plan of a first update."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rehearsal.program.dispatch import STACK_REFERENCE
from rehearsal.program.graph import Graph, Resource, Secret

SIGNATURE, SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
"""The key of what is no plain value in a state, and a secret's: https://github.com/pulumi/pulumi/blob/008a315303507297fd13aea17efd6516379cd4ec/sdk/go/common/resource/sig/sig.go"""
UNKNOWN = re.compile(r"^04da6b54-80e4-46f7-96ec-b56ff0331ba9$")
"""Placeholder in a plan for an unknown output."""
PROVIDERS_OWN = (".__provider", ".version", ".__internal")
"""Inputs that the SDK and the engine add: a pickled dynamic provider, and of a provider the version of its plugin."""
ENCRYPTED = "(encrypted)"
OF_THIS_RUN = re.compile(
    r"BEGIN (CERTIFICATE|PRIVATE KEY|PUBLIC KEY|RSA)|certificate-authority-data|^[A-Za-z0-9+/]{43}=$|^[a-z0-9]{6}\.[a-z0-9]{16}$"
    r"|^\d{4}-\d\d-\d\dT|^bootstrap-token-"
)
"""Keys, certificates, tokens and times differ in each run, and so does everything derived from them."""


def differences(graph: Graph, found: Mapping[str, Mapping[str, Any]], *, planned: bool) -> list[str]:
    """A line for each thing that is not the same; found has the engine's resources by URN, and with planned its goals."""
    # A plan has nothing of what is only read.
    ours = {
        urn: item for urn, item in graph.by_urn.items() if not _default_provider(urn) and not (planned and item.type == STACK_REFERENCE)
    }
    theirs = {urn: item for urn, item in found.items() if not _default_provider(urn)}
    lines = [f"only in process: {urn}" for urn in sorted(ours.keys() - theirs.keys())]
    lines += [f"only in the engine: {urn}" for urn in sorted(theirs.keys() - ours.keys())]
    for urn in sorted(ours.keys() & theirs.keys()):
        lines += [f"{urn.rpartition('::')[2]}: {line}" for line in _unlike(ours[urn], theirs[urn], planned=planned)]
    return lines


def from_state(exported: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The resources of `pulumi stack export --show-secrets`."""
    return {item["urn"]: item for item in exported["deployment"]["resources"]}


def from_plan(plan: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The goals of `pulumi preview --save-plan` of an empty stack, as resources."""
    goals = {urn: item["goal"] for urn, item in plan["resourcePlans"].items() if item.get("goal")}
    return {urn: {**goal, "inputs": (goal.get("inputDiff") or {}).get("adds") or {}} for urn, goal in goals.items()}


def _unlike(ours: Resource, theirs: Mapping[str, Any], *, planned: bool) -> Iterator[str]:
    pairs = {
        "type": (ours.type, theirs["type"]),
        "custom": (ours.custom, theirs.get("custom", False)),
        "parent": (ours.parent, theirs.get("parent") or None),
        "protect": (ours.protect, theirs.get("protect") or False),
        "dependencies": (set(ours.dependencies), set(theirs.get("dependencies") or ())),
        "dependencies of properties": (_by_property(ours.property_dependencies), _by_property(theirs.get("propertyDependencies") or {})),
        "secret outputs": (set(ours.additional_secret_outputs), set(theirs.get("additionalSecretOutputs") or ())),
    }
    if not _default_provider((theirs.get("provider") or "").rpartition("::")[0]):
        pairs["provider"] = (ours.provider, (theirs.get("provider") or "").rpartition("::")[0] or None)
    for what, (one, other) in pairs.items():
        if one != other:
            yield f"{what}: {one} in process, {other} in the engine"
    for path, one, other in _leaves(_inputs(ours.type, ours.inputs), _inputs(ours.type, theirs.get("inputs") or {}), ""):
        if not (planned and isinstance(other, str) and (other == ENCRYPTED or UNKNOWN.match(other))) and path not in (
            ".__provider",
            ".version",
            ".__internal",
        ):
            yield f"inputs{path}: {str(one)[:80]!r} in process, {str(other)[:80]!r} in the engine"


def _inputs(resource_type: str, inputs: Mapping[str, Any]) -> Any:
    """Inputs; of a Kubernetes Secret the names of its data, which Check encodes and puts with the rest."""
    plain = _plain(dict(inputs))
    if resource_type == "kubernetes:core/v1:Secret":
        plain["data"] = dict.fromkeys([*plain.get("data", {}), *plain.pop("stringData", {})], "(text)")
    return plain


def _by_property(found: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    return {key: set(urns) for key, urns in found.items() if urns}


def _default_provider(urn: str) -> bool:
    """One that the engine makes for what names no provider: no program registers it."""
    return "::pulumi:providers:" in urn and "::default" in urn


def _plain(value: Any) -> Any:
    """A value with secrets opened, the names of what differs from run to run in its place, and nothing that is null."""
    match value:
        case Secret():
            return _plain(value.value)
        case Mapping() if value.get(SIGNATURE) == SECRET:
            return _plain(json.loads(value["plaintext"])) if "plaintext" in value else ENCRYPTED
        case Mapping():
            return {key: _plain(item) for key, item in value.items() if item is not None}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case str() if OF_THIS_RUN.search(value):
            return "(of this run)"
        case _:
            return value


def _leaves(one: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _leaves(one.get(key), other.get(key), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _leaves(left, right, f"{path}[{number}]")
    elif one != other:
        yield path, one, other
