"""Resources that an example presupposes: its groups, the parents of its target, what its body refers to, and the target itself.

Each is created with the smallest body that Azure accepts. The target of a GET, PATCH, DELETE or POST has the properties that the example's
answer shows, as far as a client can send them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from bench.azure_examples.example import LOCATION, walk
from bench.azure_examples.smallest_bodies import ITEMS, SMALLEST, SUBNETS
from rehearsal.azure.arm_id import GROUP_TYPE, ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Request
from rehearsal.azure.sdk_shapes import UnknownShapeError, shape_of
from rehearsal.azure.shapes import ListOf, MapOf, ObjectOf, OneOf, Shape

_ACCOUNT = re.compile("(?<=/storageaccounts/)[^/]+", re.IGNORECASE)
_DEFINITION = re.compile("/galleries/[^/]+/images/[^/]+$", re.IGNORECASE)


@dataclass
class Presupposed:
    """Creates resources in an Azure at a location, each at most once; those being created are not created again."""

    cloud: Cloud
    location: str = LOCATION
    interface: str = "nic"
    configuration: str = "ipconfig"
    rolling: bool = False
    spot: bool = False
    zones: tuple[str, ...] = ()
    delegated: bool = False
    peered: bool = False
    network: str = ""
    """Network of a DNS resolver; empty for any."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Static addresses by the lower-case id of the subnet that must contain them."""
    _begun: set[str] = field(default_factory=set)
    _prefixes: dict[str, int] = field(default_factory=dict)

    def create(self, text: str, body: Json | None = None) -> AzureError | None:
        """Create a resource and what it needs, unless it exists; return the refusal, None for a resource of a type that is not modelled."""
        # Examples write some names of storage accounts with capitals, which a new account cannot have.
        text = _ACCOUNT.sub(lambda found: found[0].lower(), text)
        try:
            arm_id = parse(text)
        except AzureError as error:
            return error
        if arm_id.key in self._begun or (body is None and self.cloud.find(text) is not None):
            return None
        self._begun.add(arm_id.key)
        if arm_id.type == GROUP_TYPE:
            return self._put(arm_id, body or {"location": self.location})
        if arm_id.group:
            self.create(arm_id.group_id)
        if arm_id.type.lower() not in self.cloud.resource_types:
            return self._create_item(arm_id)
        if arm_id.parent:
            self.create(arm_id.parent)
        elif "/providers/" in arm_id.scope.lower():
            self.create(arm_id.scope)
        if self.cloud.find(text) is not None and body is None:
            return None
        # What contains a virtual resource exists by now.
        return None if self.cloud.resource_type_of(arm_id).virtual else self._create(arm_id, body)

    def create_references(self, body: Any, own: str) -> None:
        """Create every resource that a body refers to, except the body's own resource and its parts."""
        found: dict[str, None] = {}
        walk(body, lambda text: found.setdefault(text, None) if text.lower().startswith("/subscriptions/") else None)
        for text in found:
            if not f"{text.lower()}/".startswith(f"{own.lower()}/"):
                self.create(text)
                if _DEFINITION.search(text):
                    # A machine takes the latest version of the image.
                    self.create(f"{text}/versions/1.0.0")

    def _create(self, arm_id: ArmId, body: Json | None) -> AzureError | None:
        smallest = self.smallest(arm_id)
        if body is None:
            self.create_references(smallest, arm_id.text)
            return self._put(arm_id, smallest)
        self.create_references(body, arm_id.text)
        self.create_references(smallest, arm_id.text)
        return self._put(arm_id, body)

    def _put(self, arm_id: ArmId, body: Json) -> AzureError | None:
        try:
            answer = self.cloud.handle(Request("PUT", arm_id, body=deepcopy(body)))
        except AzureError as error:
            return error
        self.cloud.run_until_idle()
        if answer.operation is not None and answer.operation.error is not None:
            return AzureError(409, str(answer.operation.error["code"]), str(answer.operation.error["message"]))
        return None

    def _create_item(self, arm_id: ArmId) -> AzureError | None:
        """Create the owner of an item such as a backend pool, with the item."""
        if not arm_id.parent or parse(arm_id.parent).type.lower() not in self.cloud.resource_types:
            return None
        owner, collection = parse(arm_id.parent), arm_id.type.rpartition("/")[2]
        found = self.cloud.find(owner.text)
        body = deepcopy(found.sent) if found is not None else self.smallest(owner)
        items = body.setdefault("properties", {}).setdefault(_key_of(body["properties"], collection), [])
        if found is not None and any(str(one.get("name", "")).lower() == arm_id.name.lower() for one in items):
            return None
        make = ITEMS.get((owner.type.lower(), collection.lower()))
        smallest = make(owner.text) if make else {}
        in_place = collection.lower() in ("frontendipconfigurations", "ipconfigurations") and len(items) == 1
        if in_place and items[0]["name"] == self.configuration:
            items[0]["name"] = arm_id.name
        elif all(str(one.get("name", "")).lower() != arm_id.name.lower() for one in items):
            items.append({"name": arm_id.name, "properties": smallest})
        self._begun.discard(owner.key)
        self.create_references(body, owner.text)
        self._begun.add(owner.key)
        return self._put(owner, body)

    def create_user(self, text: str, target: ArmId) -> None:
        """Create a resource that refers to a target, as the target's answer shows."""
        try:
            arm_id = parse(text)
        except AzureError:
            return
        if arm_id.type.lower() == f"{target.type.lower()}/{arm_id.type.lower().rpartition('/')[2]}":
            # Examples are not consistent in the names of parents.
            self.create(f"{target.text}/{arm_id.type.rpartition('/')[2]}/{arm_id.name}")
            return
        while arm_id.type.lower() not in REFERENCES and arm_id.parent:
            arm_id = parse(arm_id.parent)
        refer = REFERENCES.get(arm_id.type.lower(), {}).get(target.type.lower())
        if refer is not None and self.cloud.find(arm_id.text) is None:
            body = self.smallest(arm_id)
            refer(body["properties"])["id"] = target.text
            self.create(arm_id.text, body)

    def prefix_of(self, network: str) -> int:
        """Return the number of a network, from which its address space follows: networks do not overlap."""
        return self._prefixes.setdefault(network.lower(), len(self._prefixes))

    def smallest(self, arm_id: ArmId) -> Json:
        """Return the smallest body of a type that Azure accepts."""
        make = SMALLEST.get(arm_id.type.lower())
        return make(self, arm_id) if make else {"location": self.location, "properties": {}}


def _key_of(properties: Mapping[str, Any], name: str) -> str:
    return next((key for key in properties if key.lower() == name.lower()), name)


def _configuration(name: str) -> Callable[[Json], Json]:
    def refer(properties: Json) -> Json:
        held: Json = properties["ipConfigurations"][0]["properties"].setdefault(name, {})
        return held

    return refer


def _own(name: str) -> Callable[[Json], Json]:
    def refer(properties: Json) -> Json:
        held: Json = properties.setdefault(name, {})
        return held

    return refer


REFERENCES: Mapping[str, Mapping[str, Callable[[Json], Json]]] = {
    SUBNETS.lower(): {
        "microsoft.network/natgateways": _own("natGateway"),
        "microsoft.network/networksecuritygroups": _own("networkSecurityGroup"),
        "microsoft.network/routetables": _own("routeTable"),
    },
    "microsoft.network/networkinterfaces": {
        "microsoft.network/networksecuritygroups": _own("networkSecurityGroup"),
        "microsoft.network/publicipaddresses": _configuration("publicIPAddress"),
        SUBNETS.lower(): _configuration("subnet"),
    },
    "microsoft.network/publicipaddresses": {"microsoft.network/publicipprefixes": _own("publicIPPrefix")},
    "microsoft.network/privateendpoints": {
        **dict.fromkeys(
            ("microsoft.keyvault/vaults", "microsoft.storage/storageaccounts"),
            lambda inner: _Linked(inner["privateLinkServiceConnections"][0]["properties"]),
        ),
        "microsoft.network/privatelinkservices": lambda inner: _Linked(inner["privateLinkServiceConnections"][0]["properties"]),
    },
    "microsoft.compute/virtualmachines": {
        "microsoft.network/networkinterfaces": lambda inner: inner["networkProfile"]["networkInterfaces"][0]
    },
}
"""Functions to the reference to a target, by the lower-case types of the user and of the target."""


class _Linked(dict[str, Any]):
    """Reference to a private link service, which is a property and no object."""

    def __init__(self, inner: Json) -> None:
        super().__init__()
        self._inner = inner

    def __setitem__(self, key: str, value: Any) -> None:
        self._inner["privateLinkServiceId"] = value


def sendable(resource_type: str, answer: Json) -> Json:
    """Return the properties of an answer that a client can send."""
    try:
        shape = shape_of(resource_type)
    except UnknownShapeError:
        return {}
    found: Json = _sendable(shape, answer)
    return {key: value for key, value in found.items() if key not in ("id", "name", "type", "etag", "systemData")}


def _sendable(shape: Shape, value: Any) -> Any:
    match shape, value:
        case OneOf(), dict():
            return _sendable(shape.variants.get(value.get(shape.discriminator, ""), shape.base), value)
        case ObjectOf(), dict():
            known = {key: held for key, held in shape.properties.items() if not held.read_only}
            return {key: _sendable(known[key].shape, item) for key, item in value.items() if key in known and item is not None}
        case ListOf(), list():
            return [_sendable(shape.item, item) for item in value]
        case MapOf(), dict():
            return {key: _sendable(shape.item, item) for key, item in value.items()}
        case _:
            return value


def grown(smallest: Json, full: Json) -> Iterator[tuple[str, str]]:
    """Yield the properties in which a full body differs from the smallest one: section (`properties` or empty) and name."""
    for key, value in full.items():
        if key == "properties" and isinstance(value, dict):
            yield from (("properties", name) for name, item in value.items() if (smallest.get("properties") or {}).get(name) != item)
        elif smallest.get(key) != value:
            yield "", key
