"""Bare program: a recorded graph registered again with one SDK call per resource, its inputs prepared beforehand."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_azure_native as azure
import pulumi_kubernetes as kubernetes
from pulumi import dynamic

from bench.recorded_inputs import Argument, CreatedResources, keyword_arguments, plain, wired
from bench.snake_case import arguments
from components.aliases import drop_version_aliases
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.dispatch import STACK_REFERENCE, CreatedResource
from rehearsal.program.dynamic_providers import DynamicProviders
from rehearsal.program.graph import Graph, Resource, reveal

PROVIDERS = {"pulumi:providers:azure-native": azure.Provider, "pulumi:providers:kubernetes": kubernetes.Provider}
DYNAMIC = "pulumi-python:dynamic/"

Maker = Callable[..., pulumi.Resource]
"""A class of an SDK or its substitute, called with a logical name, opts and the inputs."""
Inputs = list[tuple[str, str, Any]]
"""The provider's name, the SDK's, and the value."""


class Recorded(dynamic.ResourceProvider):
    """Substitute for the program's dynamic providers: the backend answers with the recorded outputs, and no key is created again."""

    waits_for_cloud = True


class RecordedBackend(AcceptingCloud):
    """Cloud of a rehearsal that returns the recorded outputs of the program's dynamic providers."""

    def __init__(self, graph: Graph, *, subscription: str, tenant: str) -> None:
        super().__init__(subscription=subscription, tenant=tenant)
        made = (item for item in graph if item.type.startswith(DYNAMIC))
        self._answers = {(item.type, item.name): CreatedResource(item.id or "", reveal(item.outputs)) for item in made}

    def create(self, resource_type: str, name: str, inputs: Mapping[str, Any], provider: Mapping[str, Any], /) -> CreatedResource:
        """Return the recorded outputs of a resource, or those of AcceptingCloud if none were recorded."""
        return self._answers.get((resource_type, name)) or super().create(resource_type, name, inputs, provider)


@dataclass(frozen=True)
class Step:
    """One resource to register; after are the URNs of its dependencies that are not sources of its arguments."""

    resource: Resource
    make: Maker
    arguments: tuple[Argument, ...]
    after: tuple[str, ...]


def steps(graph: Graph, *, dependencies: bool) -> tuple[Step, ...]:
    """Return a step for each resource of a graph except components, in the order of registration.

    With dependencies, each resource depends on what it depended on, through its inputs where it did so. Without, inputs are plain values
    and nothing waits for anything, which no cloud would accept.
    """
    return tuple(_step(item, graph, dependencies) for item in graph if item.custom)


def program(planned: tuple[Step, ...]) -> Callable[[], None]:
    """Return a Pulumi program that registers the steps and does nothing else."""

    def run() -> None:
        drop_version_aliases()
        made = CreatedResources()
        for step in planned:
            opts, arguments = _options(step, made.resources), keyword_arguments(step.arguments, made)
            made.resources[step.resource.urn] = step.make(step.resource.name, opts=opts, **arguments)

    return run


def _options(step: Step, made: Mapping[str, pulumi.Resource]) -> pulumi.ResourceOptions:
    resource = step.resource
    provider = made[resource.provider] if resource.provider else None
    return pulumi.ResourceOptions(
        provider=provider if isinstance(provider, pulumi.ProviderResource) else None,
        depends_on=[made[urn] for urn in step.after],
        protect=resource.protect or None,
        ignore_changes=list(resource.ignore_changes) or None,
        additional_secret_outputs=list(resource.additional_secret_outputs) or None,
    )


def _step(resource: Resource, graph: Graph, dependencies: bool) -> Step:
    make, inputs = _making(resource)
    if not dependencies:
        return Step(resource, make, tuple(plain(name, value) for _, name, value in inputs), ())
    sources = resource.property_dependencies
    brought = {urn for urns in sources.values() for urn in urns}
    wires = tuple(wired(name, value, [graph.by_urn[urn] for urn in sources.get(key, ())]) for key, name, value in inputs)
    return Step(resource, make, wires, tuple(urn for urn in resource.dependencies if urn not in brought))


def _making(resource: Resource) -> tuple[Maker, Inputs]:
    """Return the constructor of a resource and its inputs."""
    if resource.type == STACK_REFERENCE:
        return pulumi.StackReference, [("name", "stack_name", resource.inputs["name"])]
    if resource.type in PROVIDERS:
        provider = PROVIDERS[resource.type]
        return provider, arguments(provider, _decoded(resource.inputs))
    if resource.type.startswith("azure-native:"):
        _, module, name = resource.type.split(":")
        sdk_class = getattr(importlib.import_module(f"pulumi_azure_native.{module}"), name)
        return sdk_class, arguments(sdk_class, resource.inputs)
    inputs = [(key, key, value) for key, value in resource.inputs.items() if key != DynamicProviders.KEY]
    return _dynamic(resource) if resource.type.startswith(DYNAMIC) else _untyped(resource.type), inputs


def _untyped(resource_type: str) -> Maker:
    def make(name: str, /, *, opts: pulumi.ResourceOptions, **inputs: Any) -> pulumi.Resource:
        return pulumi.CustomResource(resource_type, name, inputs, opts)

    return make


def _dynamic(resource: Resource) -> Maker:
    module, _, class_name = resource.type.removeprefix(DYNAMIC).rpartition(":")
    sdk_class: Maker = type(class_name, (dynamic.Resource,), {}, module=module, name=class_name)
    computed = dict.fromkeys(key for key in resource.outputs if key not in resource.inputs)

    def make(name: str, /, *, opts: pulumi.ResourceOptions, **inputs: Any) -> pulumi.Resource:
        return sdk_class(Recorded(), name, {**computed, **inputs}, opts)

    return make


def _decoded(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a provider resource with its flags decoded, which the SDK sends as JSON."""
    return {key: json.loads(value) if value in ("true", "false") else value for key, value in inputs.items() if key != "version"}
