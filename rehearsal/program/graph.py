"""Graph of one run of a Pulumi program: every resource with its inputs, parent and dependencies, and the stack's exports."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

MASK = "[secret]"


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that Pulumi stores encrypted; its text form hides it, and `reveal` returns it."""

    value: Any = field(repr=False)


def reveal(value: Any) -> Any:
    """Return the value with every `Secret` in it, at any depth, replaced by its plain value."""
    match value:
        case Secret():
            return reveal(value.value)
        case Mapping():
            return {key: reveal(item) for key, item in value.items()}
        case list() | tuple():
            return [reveal(item) for item in value]
        case _:
            return value


def mask(value: Any) -> Any:
    """Return the value as plain JSON types, with `[secret]` for every `Secret` at any depth."""
    match value:
        case Secret():
            return MASK
        case Mapping():
            return {key: mask(item) for key, item in value.items()}
        case list() | tuple():
            return [mask(item) for item in value]
        case _:
            return value


@dataclass(frozen=True)
class Resource:
    """One registered resource, as Pulumi's state file stores it.

    `inputs` and `outputs` have the provider's names (camelCase for Azure and Kubernetes); whole numbers are ints, secrets are `Secret`.
    `dependencies` are sorted URNs of everything it waits for, through an input or `depends_on`; `property_dependencies` has them by
    input, without inputs that have none. `parent` and `provider` are URNs; `provider` is None for a default
    provider. `id` is None for a component. `outputs` holds what the backend returned beyond the inputs, or what a component declared.
    `protect` and `ignore_changes` are the options in force, a parent's `protect` included; `ignore_changes` holds the paths as sent.
    """

    urn: str
    type: str
    name: str
    parent: str | None
    custom: bool
    id: str | None
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    dependencies: tuple[str, ...] = ()
    property_dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provider: str | None = None
    protect: bool = False
    ignore_changes: tuple[str, ...] = ()
    additional_secret_outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Resources of one run in the order of registration, the stack's own first, and the stack's exports."""

    resources: tuple[Resource, ...]
    stack_outputs: Mapping[str, Any]

    def __iter__(self) -> Iterator[Resource]:
        return iter(self.resources)

    def __len__(self) -> int:
        return len(self.resources)

    @cached_property
    def by_urn(self) -> Mapping[str, Resource]:
        return {resource.urn: resource for resource in self.resources}

    @cached_property
    def by_type(self) -> Mapping[str, tuple[Resource, ...]]:
        return _grouped((resource.type, resource) for resource in self.resources)

    @cached_property
    def _by_parent(self) -> Mapping[str, tuple[Resource, ...]]:
        return _grouped((resource.parent, resource) for resource in self.resources if resource.parent is not None)

    @cached_property
    def created_resources(self) -> tuple[Resource, ...]:
        """Return the resources that a provider creates: all except components, and Pulumi's own stack, stack references and providers."""
        return tuple(item for item in self.resources if item.custom and not item.type.startswith("pulumi:"))

    def of_type(self, resource_type: str) -> tuple[Resource, ...]:
        """Return all resources of one type token, such as `azure-native:network:Subnet`."""
        return self.by_type.get(resource_type, ())

    def children(self, urn: str) -> tuple[Resource, ...]:
        """Return the resources whose parent is `urn`."""
        return self._by_parent.get(urn, ())

    def descendants(self, urn: str) -> tuple[Resource, ...]:
        """Return all resources below `urn`, depth first."""
        return tuple(found for child in self.children(urn) for found in (child, *self.descendants(child.urn)))

    def to_json(self) -> str:
        """Return the graph as deterministic JSON: resources by URN, keys sorted, empty values omitted, every secret as `[secret]`."""
        resources = {resource.urn: _described(resource) for resource in self.resources}
        document = {"resources": resources, "stackOutputs": mask(self.stack_outputs)}
        return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _grouped(pairs: Iterator[tuple[str, Resource]]) -> dict[str, tuple[Resource, ...]]:
    groups: dict[str, list[Resource]] = {}
    for key, resource in pairs:
        groups.setdefault(key, []).append(resource)
    return {key: tuple(group) for key, group in groups.items()}


def _described(resource: Resource) -> dict[str, Any]:
    values = {entry.name: mask(getattr(resource, entry.name)) for entry in fields(resource) if entry.name != "urn"}
    return {name: value for name, value in values.items() if value not in (None, False, [], {})}
