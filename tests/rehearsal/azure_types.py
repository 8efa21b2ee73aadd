"""Check of request and response bodies against Azure's published types; azure-native's flat inputs are first converted to request bodies.

The types are those of https://github.com/Azure/bicep-types-az: a file is a list, `{"$ref": "#/N"}` its N-th entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rehearsal.azure.azure_native_ids import GROUP_PATHS, SCOPE_PATHS
from rehearsal.program.graph import Resource, reveal

REQUIRED, READ_ONLY, WRITE_ONLY = 1, 2, 4
GROUP_TYPE = "Microsoft.Resources/resourceGroups"
AZURE = "azure-native:"
PLACEHOLDER = re.compile(r"\{(\w+)\}")

API_VERSIONS = {
    "Microsoft.Authorization": "2022-04-01",
    "Microsoft.Compute": "2024-11-01",
    "Microsoft.Compute/galleries": "2024-03-03",
    "Microsoft.KeyVault": "2024-11-01",
    "Microsoft.ManagedIdentity": "2024-11-30",
    "Microsoft.Network": "2024-05-01",
    "Microsoft.Network/privateDnsZones": "2024-06-01",
    "Microsoft.Resources": "2024-11-01",
    "Microsoft.Storage": "2024-01-01",
    "Microsoft.VirtualMachineImages": "2024-02-01",
}
"""API version that azure-native 3.29 uses by default, by provider or resource type: https://github.com/pulumi/pulumi-azure-native"""

RENAMED = {"enableHttpsTrafficOnly": "supportsHttpsTrafficOnly", "networkRuleSet": "networkAcls"}
"""Inputs that azure-native calls by another name than Azure: the x-ms-client-name of https://github.com/Azure/azure-rest-api-specs."""

OPEN = {("HardwareProfile", "vmSize")}
"""Properties whose published list of values is known to be incomplete, where any string fits."""


@dataclass(frozen=True)
class TypeFile:
    """One file of types, by number, and its resource types by lower-case name."""

    entries: tuple[dict[str, Any], ...]

    @cached_property
    def resources(self) -> dict[str, dict[str, Any]]:
        """Body of each resource type, by lower-case name with its API version."""
        return {entry["name"].lower(): self.at(entry["body"]) for entry in self.entries if entry["$type"] == "ResourceType"}

    def at(self, reference: Mapping[str, str]) -> dict[str, Any]:
        """The entry that a reference points at."""
        return self.entries[int(reference["$ref"].removeprefix("#/"))]


@lru_cache
def read_types(path: Path) -> TypeFile:
    """One file of types; OSError where it is missing."""
    return TypeFile(tuple(json.loads(path.read_text())))


class UnknownResourceTypeError(LookupError):
    """No file has the type."""


class AzureTypes:
    """Azure's published types in a folder of files, at the versions that azure-native sends."""

    def __init__(self, folder: Path) -> None:
        self._files = tuple(read_types(path) for path in sorted(folder.glob("*.json")))

    def body_of(self, arm_type: str, version: str = "") -> tuple[TypeFile, dict[str, Any]]:
        """The file and body type of a resource type such as Microsoft.Network/virtualNetworks/subnets; UnknownResourceTypeError.

        Without a version it is the one that azure-native uses.
        """
        provider, _, path = arm_type.partition("/")
        version = version or API_VERSIONS.get(f"{provider}/{path.partition('/')[0]}") or API_VERSIONS.get(provider, "")
        key = f"{arm_type}@{version}".lower()
        for file in self._files:
            if key in file.resources:
                return file, file.resources[key]
        raise UnknownResourceTypeError(f"{arm_type} at API version {version or 'unknown'}")

    def faults(self, resource: Resource) -> list[str]:
        """List the differences of one resource from its published type, one line each; raise UnknownResourceTypeError."""
        arm_type, name = arm_type_and_name(str(resource.id))
        file, body = self.body_of(arm_type)
        inputs = {key: value for key, value in reveal(resource.inputs).items() if key not in path_inputs(resource.type)}
        return list(_faults(file, body, _nested(file, body, {**inputs, "name": name}), arm_type, READ_ONLY))

    def sent_faults(self, arm_type: str, version: str, body: Mapping[str, Any]) -> list[str]:
        """List the differences of a PUT body from the published type, one line each; raise UnknownResourceTypeError."""
        file, kind = self.body_of(arm_type, version)
        return list(_faults(file, kind, body, arm_type, READ_ONLY))

    def answer_faults(self, arm_type: str, version: str, body: Mapping[str, Any]) -> list[str]:
        """List the differences of a response body from the published type, one line each; raise UnknownResourceTypeError."""
        file, kind = self.body_of(arm_type, version)
        return list(_faults(file, kind, body, arm_type, WRITE_ONLY))


def arm_type_and_name(resource_id: str) -> tuple[str, str]:
    """Resource type and name out of an Azure resource id."""
    if "/providers/" not in resource_id:
        return GROUP_TYPE, resource_id.rpartition("/")[2]
    provider, *path = resource_id.rpartition("/providers/")[2].split("/")
    return "/".join((provider, *path[0::2])), path[-1]


def path_inputs(resource_type: str) -> frozenset[str]:
    """Inputs of an azure-native type that stand in the request's path and not in its body."""
    key = resource_type.removeprefix(AZURE)
    scope, path = SCOPE_PATHS[key] if key in SCOPE_PATHS else ("resourceGroupName", GROUP_PATHS.get(key, ""))
    return frozenset({scope, *PLACEHOLDER.findall(path)})


def _nested(file: TypeFile, kind: dict[str, Any], value: Any) -> Any:
    """The body that azure-native makes of flat inputs: what only an inner `properties` knows goes there, string sets become objects."""
    match kind["$type"], value:
        case "ObjectType" | "DiscriminatedObjectType", Mapping():
            return _nested_object(file, _resolved(file, kind, value), value)
        case "ObjectType", list() if "additionalProperties" in kind:
            return {item: {} for item in value}
        case "ArrayType", list():
            item = file.at(kind["itemType"])
            return [_nested(file, item, entry) for entry in value]
        case _:
            return value


def _nested_object(file: TypeFile, kind: dict[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    for given, item in value.items():
        key = given if _takes(file, kind, given) else RENAMED.get(given, given)
        if key in kind["properties"]:
            body[key] = _nested(file, file.at(kind["properties"][key]["type"]), item)
        elif _takes(file, kind, key):
            inner[key] = item
        elif "additionalProperties" in kind:
            body[key] = _nested(file, file.at(kind["additionalProperties"]), item)
        else:
            body[key] = item
    if inner:
        body["properties"] = _nested(file, file.at(kind["properties"]["properties"]["type"]), inner) | body.get("properties", {})
    return body


def _takes(file: TypeFile, kind: dict[str, Any], key: str) -> bool:
    """Return whether an object type has a property, directly or in the `properties` that azure-native flattens."""
    properties = kind.get("properties") or {}
    if key in properties:
        return True
    return "properties" in properties and _takes(file, file.at(properties["properties"]["type"]), key)


def _resolved(file: TypeFile, kind: dict[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """An object type as it is; of a discriminated one the variant that the value names, or what all variants share."""
    if kind["$type"] == "ObjectType":
        return kind
    chosen = kind["elements"].get(value.get(kind["discriminator"]))
    variant = file.at(chosen)["properties"] if chosen else {}
    return {"$type": "ObjectType", "name": kind["name"], "properties": {**kind["baseProperties"], **variant}}


def _faults(file: TypeFile, kind: dict[str, Any], value: Any, where: str, barred: int) -> Iterator[str]:
    """Yield the differences of a value from a type; barred flags forbidden properties: READ_ONLY in requests, WRITE_ONLY in responses."""
    match kind["$type"], value:
        case "ObjectType", Mapping():
            yield from _object_faults(file, kind, value, where, barred)
        case "DiscriminatedObjectType", Mapping():
            chosen = value.get(kind["discriminator"])
            if chosen in kind["elements"]:
                yield from _object_faults(file, _resolved(file, kind, value), value, where, barred)
            else:
                yield f"{where}.{kind['discriminator']}: {chosen!r} is none of {', '.join(kind['elements'])}"
        case "ArrayType", list():
            yield from _size_faults(kind, len(value), "items", where)
            for position, entry in enumerate(value):
                yield from _faults(file, file.at(kind["itemType"]), entry, f"{where}[{position}]", barred)
        case "UnionType", _:
            yield from _union_faults(file, kind, value, where)
        case _:
            yield from _scalar_faults(kind, value, where)


def _scalar_faults(kind: dict[str, Any], value: Any, where: str) -> Iterator[str]:
    match kind["$type"], value:
        case ("AnyType", _) | ("BooleanType", bool()):
            return
        case "StringLiteralType", str():
            if value != kind["value"]:
                yield f"{where}: {value!r} must be {kind['value']!r}"
        case "StringType", str():
            yield from _size_faults(kind, len(value), "characters", where)
            if "pattern" in kind and not _pattern(kind["pattern"]).search(value):
                yield f"{where}: {value!r} does not match {kind['pattern']}"
        case "IntegerType", int() if not isinstance(value, bool):
            if not kind.get("minValue", value) <= value <= kind.get("maxValue", value):
                yield f"{where}: {value} is outside {kind.get('minValue', '')} to {kind.get('maxValue', '')}"
        case expected, _:
            yield f"{where}: {type(value).__name__} where {expected.removesuffix('Type').lower()} is wanted"


def _object_faults(file: TypeFile, kind: dict[str, Any], value: Mapping[str, Any], where: str, barred: int) -> Iterator[str]:
    properties = kind["properties"]
    for key, known in properties.items():
        if known["flags"] & REQUIRED and not known["flags"] & barred and key not in value:
            yield f"{where}.{key}: missing, but required"
    for key, item in value.items():
        if key not in properties:
            if "additionalProperties" in kind:
                yield from _faults(file, file.at(kind["additionalProperties"]), item, f"{where}.{key}", barred)
            else:
                yield f"{where}.{key}: unknown to {kind['name']}"
        elif properties[key]["flags"] & barred:
            yield f"{where}.{key}: set, but read-only" if barred == READ_ONLY else f"{where}.{key}: answered, but write-only"
        elif not ((kind["name"], key) in OPEN and isinstance(item, str)):
            yield from _faults(file, file.at(properties[key]["type"]), item, f"{where}.{key}", barred)


def _union_faults(file: TypeFile, kind: dict[str, Any], value: Any, where: str) -> Iterator[str]:
    """A union lists literals and, where Azure may add some, a plain string: a body of ours must use one that is listed."""
    literals = [entry["value"] for entry in map(file.at, kind["elements"]) if entry["$type"] == "StringLiteralType"]
    if value not in literals:
        yield f"{where}: {value!r} is none of {', '.join(literals)}"


def _size_faults(kind: dict[str, Any], size: int, unit: str, where: str) -> Iterator[str]:
    if not kind.get("minLength", 0) <= size <= kind.get("maxLength", size):
        yield f"{where}: {size} {unit}, outside {kind.get('minLength', 0)} to {kind.get('maxLength', '')}"


@lru_cache
def _pattern(text: str) -> re.Pattern[str]:
    """A published pattern, which is JavaScript's: there a hyphen after a class such as \\w is a plain hyphen."""
    return re.compile(re.sub(r"(\\[wds])-(?!\])", r"\1\\-", text))
