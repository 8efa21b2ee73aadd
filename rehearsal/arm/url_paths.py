"""Parser of ARM URL paths: a resource, a list, an action on a resource, an operation, a location or a subscription."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from rehearsal.azure.arm_id import ArmId, parse

DELETED_VAULTS = "Microsoft.KeyVault/locations/deletedVaults"
"""Type that is listed without its location: https://learn.microsoft.com/rest/api/keyvault/keyvault/vaults/list-deleted"""


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """One resource, or with a tail an action on it or a view of it."""

    id: ArmId
    tail: str = ""


@dataclass(frozen=True, slots=True)
class ListPath:
    """All resources of a type below a scope; an empty type is every type."""

    scope: str
    type: str


@dataclass(frozen=True, slots=True)
class OperationPath:
    """The status of an operation, or with result its result."""

    subscription: str
    id: str
    result: bool


@dataclass(frozen=True, slots=True)
class LocationPath:
    """A list of a location: usages, vmSizes."""

    subscription: str
    provider: str
    location: str
    what: str


@dataclass(frozen=True, slots=True)
class SubscriptionPath:
    """A subscription (empty), or its locations, providers or resources; name is the provider's."""

    subscription: str
    what: str
    name: str = ""
    tail: str = ""


ArmPath = ResourcePath | ListPath | OperationPath | LocationPath | SubscriptionPath


def parse_arm_path(parts: Sequence[str], types: Container[str]) -> ArmPath | None:
    """Return the parsed path; types are the modelled ones in lower case; None for a path outside ARM.

    Raises AzureError for an invalid id.
    """
    if parts[0].lower() != "subscriptions" or "" in parts:
        return None
    lowered = [part.lower() for part in parts]
    if len(parts) == 1:
        return ListPath("", "Microsoft.Resources/subscriptions")
    if "providers" not in lowered or lowered[2:] == ["providers"]:
        return _outside_providers(parts, lowered)
    last = len(lowered) - 1 - lowered[::-1].index("providers")
    scope, tail = "/" + "/".join(parts[:last]), parts[last + 1 :]
    if last == 2:
        special = _of_provider(parts[1], tail)
        if special is not None:
            return special
    if len(tail) < 2:
        return None
    if len(tail) % 2 == 1:
        return ResourcePath(parse("/" + "/".join(parts)))
    resource_type = "/".join((tail[0], *tail[1::2]))
    if resource_type.lower() in types or len(tail) == 2:
        return ListPath(scope if len(tail) == 2 else "/" + "/".join(parts[:-1]), resource_type)
    return ResourcePath(parse("/" + "/".join(parts[:-1])), tail[-1])


def _outside_providers(parts: Sequence[str], lowered: list[str]) -> ArmPath | None:
    """Parse paths of subscriptions and resource groups."""
    subscription = "/" + "/".join(parts[:2])
    match lowered[2:]:
        case []:
            return SubscriptionPath(parts[1], "")
        case ["resourcegroups"]:
            return ListPath(subscription, "Microsoft.Resources/resourceGroups")
        case ["resourcegroups", _]:
            return ResourcePath(parse(f"{subscription}/resourceGroups/{parts[3]}"))
        case ["resourcegroups", _, "resources"]:
            return ListPath(f"{subscription}/resourceGroups/{parts[3]}", "")
        case ["resources"]:
            return ListPath(subscription, "")
        case [what] if what in ("locations", "providers"):
            return SubscriptionPath(parts[1], what)
        case ["operationresults", operation]:
            return OperationPath(parts[1], operation, result=True)
        case _:
            return None


def _of_provider(subscription: str, tail: Sequence[str]) -> ArmPath | None:
    """Parse paths of a provider that are not resources: the provider itself, operations, usages."""
    match tail:
        case [provider]:
            return SubscriptionPath(subscription, "providers", provider)
        case [provider, verb] if verb.lower() in ("register", "unregister"):
            return SubscriptionPath(subscription, "providers", provider, verb.lower())
        case [_, locations, _, kind, operation] if locations.lower() == "locations" and kind.lower().startswith("operation"):
            return OperationPath(subscription, operation, result=kind.lower() == "operationresults")
        case [provider, locations, location, what] if locations.lower() == "locations":
            return LocationPath(subscription, provider, location, what.lower())
        case [provider, what] if (provider.lower(), what.lower()) == ("microsoft.keyvault", "deletedvaults"):
            return ListPath(f"/subscriptions/{subscription}", DELETED_VAULTS)
        case [provider, what] if what.lower() == "skus":
            return LocationPath(subscription, provider, "", "skus")
        case _:
            return None
