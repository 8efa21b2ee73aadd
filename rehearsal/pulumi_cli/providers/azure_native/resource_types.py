"""Resource types of azure-native: path, API version, body, flattened properties, and the inputs in an id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

from rehearsal.azure.api_versions import api_versions
from rehearsal.azure.azure_native_bodies import arm_type, is_inner, path_inputs, property_shape, renamed_properties
from rehearsal.azure.azure_native_ids import AZURE, GROUP_PATHS, PLACEHOLDER, RESOURCE_GROUP, SCOPE_PATHS
from rehearsal.azure.azure_native_requests import MAINTAINED, SINGLETONS
from rehearsal.azure.sdk_shapes import shape_of
from rehearsal.azure.shapes import MapOf, ObjectOf, Property, Shape
from rehearsal.program.pulumi_values import Json
from rehearsal.pulumi_cli.providers.azure_native.shape_cache import take_known_shapes
from rehearsal.pulumi_cli.providers.provider_interface import ProviderError

_FLAT_PROPERTIES: WeakKeyDictionary[ObjectOf, Mapping[str, Property]] = WeakKeyDictionary()


def flat_properties(shape: ObjectOf) -> Mapping[str, Property]:
    """Return the properties of an object by azure-native's names: those of `properties` are its own, some have other names."""
    found = _FLAT_PROPERTIES.get(shape)
    if found is None:
        found = _FLAT_PROPERTIES[shape] = _flatten(shape)
    return found


def writable_properties(shape: ObjectOf) -> Mapping[str, Property]:
    """Return the properties that a program may set."""
    return {name: property_ for name, property_ in flat_properties(shape).items() if not property_.read_only}


def is_name_set(shape: Shape) -> bool:
    """Return whether Azure uses names as keys of an object where azure-native has a list of them."""
    return (
        isinstance(shape, MapOf)
        and isinstance(shape.item, ObjectOf)
        and all(property_.read_only for property_ in shape.item.properties.values())
    )


def _flatten(shape: ObjectOf) -> Mapping[str, Property]:
    inner = shape.inner
    found = {name: property_ for name, property_ in shape.properties.items() if not (inner is not None and name == "properties")}
    if inner is not None:
        found |= {name: property_ for name, property_ in inner.properties.items() if is_inner(shape, name) or name not in found}
    for name, path in renamed_properties(shape).items():
        *outer, last = path.split(".")
        target: Shape | None = shape
        for step in outer:
            target = property_shape(target, step)
        if isinstance(target, ObjectOf) and last in target.properties:
            if len(outer) == (1 if outer == ["properties"] else 0):
                found.pop(last, None)
            found[name] = target.properties[last]
    return found


RESOURCE_GROUP_PATH = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"
OTHER_VERSIONS: Mapping[str, str] = {"authorization:RoleDefinition": "2022-05-01-preview"}
"""Types whose version in azure-native 3.29 is not the oldest version of the embedded Azure."""
UUID_NAMES = frozenset({"roleAssignmentName", "roleDefinitionId"})
"""Names that must be UUIDs."""
WITHOUT_LOCATION = frozenset({"privatedns:PrivateZone", "privatedns:VirtualNetworkLink"})
"""Types without a region, for which the provider's location would be wrong:
https://github.com/pulumi/pulumi-azure-native/blob/master/provider/pkg/resources/resources.go"""


@dataclass(frozen=True)
class ResourceType:
    """One resource type: token such as network:Subnet; path such as /subscriptions/{subscriptionId}/… with the inputs that contain names in
    braces."""

    token: str
    path: str

    @property
    def type(self) -> str:
        """Return Pulumi's token."""
        return f"{AZURE}{self.token}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the inputs in the path, outermost first; the last is the resource's own name."""
        return tuple(name for name in PLACEHOLDER.findall(self.path) if name != "subscriptionId")

    @cached_property
    def outside_body(self) -> frozenset[str]:
        """Return the inputs that are not in the body: those of the path and of the query."""
        return path_inputs(self.type)

    @cached_property
    def api_version(self) -> str:
        """Return the API version that azure-native 3.29 uses."""
        return OTHER_VERSIONS.get(self.token) or api_versions(arm_type(self.type))[0]

    @cached_property
    def shape(self) -> ObjectOf:
        """Return the shape of the body."""
        return shape_of(arm_type(self.type))

    @property
    def foreign_properties(self) -> tuple[str, ...]:
        """Return the properties that other resources may write."""
        return MAINTAINED.get(self.token, ())

    @property
    def singleton(self) -> bool:
        """Return whether the resource is created and deleted with its parent."""
        return self.token in SINGLETONS

    @cached_property
    def takes_location(self) -> bool:
        """Return whether the location may be left to the provider."""
        property_ = flat_properties(self.shape).get("location")
        return property_ is not None and not property_.read_only and self.token not in WITHOUT_LOCATION

    @cached_property
    def name_form(self) -> str:
        """Return the form of a generated name: uuid, random, or a copy of the logical name for a child resource."""
        if self.names[-1] in UUID_NAMES:
            return "uuid"
        inner = [name for name in self.names if name not in ("resourceGroupName", "scope", "resourceUri")]
        return "random" if len(inner) <= 1 else "copy"

    def id_of(self, inputs: Mapping[str, Any], subscription: str) -> str:
        """Return the id for plain inputs; ProviderError where a name is missing or not a text."""
        values = {"subscriptionId": subscription}
        for name in self.names:
            value = inputs.get(name)
            if not isinstance(value, str) or not value:
                raise ProviderError(f"{name} is missing, so {self.token} has no id; give it a value")
            values[name] = value.strip("/") if name in ("scope", "resourceUri") else quote(value, safe="@$()*+,;=:!~")
        return self.path.format_map(values)

    def inputs_of(self, resource_id: str) -> Json:
        """Return the inputs in an id; ProviderError where it is not an id of this type."""
        found = self._pattern.fullmatch(resource_id)
        if found is None:
            raise ProviderError(f"{resource_id[:300]!r} is not an id of {self.type}; the format is {self.path}")
        return {name: value for name, value in found.groupdict().items() if name != "subscriptionId"}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = re.split(r"(\{\w+\})", self.path)
        wide = {"{scope}": "(?P<scope>.+)", "{resourceUri}": "(?P<resourceUri>.+)"}
        return re.compile(
            "".join(wide.get(part) or (f"(?P<{part[1:-1]}>[^/]+)" if part.startswith("{") else re.escape(part)) for part in parts),
            re.IGNORECASE,
        )


@cache
def resource_type_of(resource_type: str) -> ResourceType:
    """Return the resource type of a token; ProviderError for an unknown type."""
    take_known_shapes()
    key = resource_type.removeprefix(AZURE)
    if key == RESOURCE_GROUP:
        return ResourceType(key, RESOURCE_GROUP_PATH)
    if key in GROUP_PATHS:
        return ResourceType(key, f"{RESOURCE_GROUP_PATH}/providers/{GROUP_PATHS[key]}")
    if key in SCOPE_PATHS:
        scope, path = SCOPE_PATHS[key]
        return ResourceType(key, f"/{{{scope}}}/providers/{path}")
    raise ProviderError(
        f"{resource_type[:200]} is not a type of the rehearsal's azure-native; rehearsal/azure/azure_native_ids.py lists its types"
    )
