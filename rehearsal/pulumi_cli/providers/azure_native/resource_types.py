"""Says what azure-native's types are to Azure: their path, API version and body, and how an id becomes inputs again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from urllib.parse import quote

from rehearsal.azure.api_versions import api_versions
from rehearsal.azure.azure_native import arm_type, path_inputs
from rehearsal.azure.azure_native_calls import MAINTAINED, SINGLETONS
from rehearsal.azure.azure_native_ids import AZURE, PLACEHOLDER, RESOURCE_GROUP
from rehearsal.azure.azure_native_paths import GROUP_PATHS, SCOPE_PATHS
from rehearsal.azure.sdk_shapes import shape_of
from rehearsal.azure.shapes import ObjectOf
from rehearsal.pulumi_cli.providers.azure_native.flattening import flat
from rehearsal.pulumi_cli.providers.azure_native.shape_cache import take_known_shapes
from rehearsal.pulumi_cli.providers.errors import ProviderError
from rehearsal.pulumi_cli.providers.pulumi_values import Json

GROUP = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}"
OTHER_VERSIONS: Mapping[str, str] = {"authorization:RoleDefinition": "2022-05-01-preview"}
"""Types whose version in azure-native 3.29 is not the oldest that the embedded Azure answers."""
UUID_NAMES = frozenset({"roleAssignmentName", "roleDefinitionId"})
"""Names that Azure wants to be UUIDs."""
GLOBAL = frozenset({"privatedns:PrivateZone", "privatedns:VirtualNetworkLink"})
"""Types that are in no region, so that the provider's location would be wrong:
https://github.com/pulumi/pulumi-azure-native/blob/master/provider/pkg/resources/resources.go"""


@dataclass(frozen=True)
class Kind:
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
        held = flat(self.shape).get("location")
        return held is not None and not held.read_only and self.token not in GLOBAL

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
def kind_of(resource_type: str) -> Kind:
    """The kind of a type token; Failed for a type that there is not."""
    take_known_shapes()
    key = resource_type.removeprefix(AZURE)
    if key == RESOURCE_GROUP:
        return Kind(key, GROUP)
    if key in GROUP_PATHS:
        return Kind(key, f"{GROUP}/providers/{GROUP_PATHS[key]}")
    if key in SCOPE_PATHS:
        scope, path = SCOPE_PATHS[key]
        return Kind(key, f"/{{{scope}}}/providers/{path}")
    raise ProviderError(
        f"{resource_type[:200]} is not a type of the rehearsal's azure-native; rehearsal/azure/azure_native_paths.py lists its types"
    )
