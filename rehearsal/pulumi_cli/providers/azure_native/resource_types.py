"""Says what azure-native's types are to Azure: their path, API version and body, and how an id becomes inputs again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

from rehearsal.azure.api_versions import api_versions
from rehearsal.azure.azure_native import arm_type, is_inner, part, path_inputs, renamed
from rehearsal.azure.azure_native_calls import MAINTAINED, SINGLETONS
from rehearsal.azure.azure_native_ids import AZURE, PLACEHOLDER, RESOURCE_GROUP
from rehearsal.azure.azure_native_paths import GROUP_PATHS, SCOPE_PATHS
from rehearsal.azure.sdk_shapes import shape_of
from rehearsal.azure.shapes import MapOf, ObjectOf, Property, Shape
from rehearsal.pulumi_cli.providers.azure_native.shape_cache import take_known_shapes
from rehearsal.pulumi_cli.providers.provider_interface import ProviderError
from rehearsal.pulumi_cli.providers.pulumi_values import Json

_FLAT_PROPERTIES: WeakKeyDictionary[ObjectOf, Mapping[str, Property]] = WeakKeyDictionary()


def flat_properties(shape: ObjectOf) -> Mapping[str, Property]:
    """The properties of an object by azure-native's names."""
    found = _FLAT_PROPERTIES.get(shape)
    if found is None:
        found = _FLAT_PROPERTIES[shape] = _flatten(shape)
    return found


def writable_properties(shape: ObjectOf) -> Mapping[str, Property]:
    """Those that a program may give."""
    return {name: held for name, held in flat_properties(shape).items() if not held.read_only}


def is_name_set(shape: Shape) -> bool:
    """Whether Azure has names as the keys of an object where azure-native has a list of them: what they stand for is Azure's to say."""
    return isinstance(shape, MapOf) and isinstance(shape.item, ObjectOf) and all(held.read_only for held in shape.item.properties.values())


def _flatten(shape: ObjectOf) -> Mapping[str, Property]:
    inner = shape.inner
    found = {name: held for name, held in shape.properties.items() if not (inner is not None and name == "properties")}
    if inner is not None:
        found |= {name: held for name, held in inner.properties.items() if is_inner(shape, name) or name not in found}
    for name, path in renamed(shape).items():
        *outer, last = path.split(".")
        place: Shape | None = shape
        for step in outer:
            place = part(place, step)
        if isinstance(place, ObjectOf) and last in place.properties:
            if len(outer) == (1 if outer == ["properties"] else 0):
                found.pop(last, None)
            found[name] = place.properties[last]
    return found


RESOURCE_GROUP_PATH = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"
OTHER_VERSIONS: Mapping[str, str] = {"authorization:RoleDefinition": "2022-05-01-preview"}
"""Types whose version in azure-native 3.29 is not the oldest that the embedded Azure answers."""
UUID_NAMES = frozenset({"roleAssignmentName", "roleDefinitionId"})
"""Names that Azure wants to be UUIDs."""
WITHOUT_LOCATION = frozenset({"privatedns:PrivateZone", "privatedns:VirtualNetworkLink"})
"""Types that are in no region, so that the provider's location would be wrong:
https://github.com/pulumi/pulumi-azure-native/blob/master/provider/pkg/resources/resources.go"""


@dataclass(frozen=True)
class ResourceType:
    """One type: token as network:Subnet; path as /subscriptions/{subscriptionId}/… with the inputs that hold names in braces."""

    token: str
    path: str

    @property
    def type(self) -> str:
        """Pulumi's token."""
        return f"{AZURE}{self.token}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Inputs in the path, outermost first; the last is the resource's own name."""
        return tuple(name for name in PLACEHOLDER.findall(self.path) if name != "subscriptionId")

    @cached_property
    def apart(self) -> frozenset[str]:
        """Inputs that are not in the body: those of the path and of the query."""
        return path_inputs(self.type)

    @cached_property
    def api_version(self) -> str:
        """The version in which azure-native 3.29 asks."""
        return OTHER_VERSIONS.get(self.token) or api_versions(arm_type(self.type))[0]

    @cached_property
    def shape(self) -> ObjectOf:
        """The body."""
        return shape_of(arm_type(self.type))

    @property
    def maintained(self) -> tuple[str, ...]:
        """Properties that other resources may write."""
        return MAINTAINED.get(self.token, ())

    @property
    def singleton(self) -> bool:
        """Whether it comes and goes with its parent."""
        return self.token in SINGLETONS

    @cached_property
    def located(self) -> bool:
        """Whether it takes a location that may be left to the provider."""
        held = flat_properties(self.shape).get("location")
        return held is not None and not held.read_only and self.token not in WITHOUT_LOCATION

    @cached_property
    def auto_name(self) -> str:
        """How a name is made where none is given: uuid, random, or copy of the logical name for what is part of something."""
        if self.names[-1] in UUID_NAMES:
            return "uuid"
        inner = [name for name in self.names if name not in ("resourceGroupName", "scope", "resourceUri")]
        return "random" if len(inner) <= 1 else "copy"

    def id_of(self, inputs: Mapping[str, Any], subscription: str) -> str:
        """The id that plain inputs give it; Failed where a name is missing or no name."""
        values = {"subscriptionId": subscription}
        for name in self.names:
            value = inputs.get(name)
            if not isinstance(value, str) or not value:
                raise ProviderError(f"{name} is missing, so that {self.token} has no id; give it a value")
            values[name] = value.strip("/") if name in ("scope", "resourceUri") else quote(value, safe="@$()*+,;=:!~")
        return self.path.format_map(values)

    def inputs_of(self, resource_id: str) -> Json:
        """The inputs that an id tells of; Failed where it is none of this type's."""
        found = self._pattern.fullmatch(resource_id)
        if found is None:
            raise ProviderError(f"{resource_id[:300]!r} is no id of {self.type}; one looks like {self.path}")
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
    """The kind of a type token; Failed for a type that there is not."""
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
        f"{resource_type[:200]} is not a type of the rehearsal's azure-native; rehearsal/azure/azure_native_paths.py lists its types"
    )
