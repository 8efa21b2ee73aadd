"""Dynamic providers of a program, run in this process: their keys and certificates are real."""

import base64
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import dill  # type: ignore[import-untyped]
from pulumi.dynamic import ConfigureRequest, ResourceProvider
from pulumi.dynamic.config import Config
from pulumi.dynamic.dynamic import PROVIDER_KEY

from components.errors import GpufleetError


class DynamicCheckError(GpufleetError):
    """Inputs that a dynamic provider's own check refused."""

    def __init__(self, failures: Mapping[str, str]) -> None:
        self.failures = failures
        super().__init__("; ".join(f"{path}: {reason}" for path, reason in failures.items()))


class DynamicUpdate(NamedTuple):
    """Result of a provider's update: "same", "updated" or "replaced", the id, and the outputs."""

    how: Literal["same", "updated", "replaced"]
    id: str
    outputs: Mapping[str, Any]


class DynamicProviders:
    """The program's dynamic providers, unpickled once each and configured with the stack's configuration.

    A provider class with `waits_for_cloud = True` waits for something that a rehearsal does not have, such as an API server's
    `/readyz`; the backend answers for its resources.
    """

    KEY: ClassVar[str] = PROVIDER_KEY

    def __init__(self, config: Mapping[str, str], project: str) -> None:
        self._request = ConfigureRequest(Config(raw_config=dict(config), project_name=project))
        self._providers: dict[str, ResourceProvider] = {}

    def answers(self, resource_type: str, inputs: Mapping[str, Any]) -> bool:
        """Return whether a resource is dynamic and its provider's code runs here."""
        if not resource_type.startswith("pulumi-python:dynamic"):
            return False
        return not getattr(self._provider(inputs), "waits_for_cloud", False)

    def class_name(self, inputs: Mapping[str, Any]) -> str:
        """Return the provider's class, with its module."""
        provider = type(self._provider(inputs))
        return f"{provider.__module__}.{provider.__qualname__}"

    def create(self, inputs: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return id and outputs from the provider's check and create; raise DynamicCheckError, or what the provider raises."""
        return self._create(inputs, self._checked({}, inputs))

    def update(self, resource_id: str, old: Mapping[str, Any], outputs: Mapping[str, Any], inputs: Mapping[str, Any]) -> DynamicUpdate:
        """Update a resource that has old inputs and outputs, in the engine's order: check, diff, and then the update or replacement.

        A provider without its own diff updates when the inputs differ. Raises DynamicCheckError, or what the provider raises.
        """
        provider, checked = self._provider(inputs), self._checked(old, inputs)
        said = provider.diff(resource_id, dict(outputs), {**checked, PROVIDER_KEY: inputs[PROVIDER_KEY]})
        changes = _without_provider(inputs) != dict(old) if said.changes is None else said.changes
        if said.replaces:
            return DynamicUpdate("replaced", *self._create(inputs, checked))
        if not changes:
            return DynamicUpdate("same", resource_id, outputs)
        updated = provider.update(resource_id, dict(outputs), {**checked, PROVIDER_KEY: inputs[PROVIDER_KEY]})
        return DynamicUpdate("updated", resource_id, _without_provider(updated.outs or {}))

    def _checked(self, old: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs after the provider's check, without the provider itself."""
        checked = self._provider(inputs).check(dict(old), dict(inputs))
        if checked.failures:
            raise DynamicCheckError({failure.property: failure.reason for failure in checked.failures})
        return _without_provider(checked.inputs)

    def _create(self, inputs: Mapping[str, Any], checked: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        created = self._provider(inputs).create({**checked, PROVIDER_KEY: inputs[PROVIDER_KEY]})
        return created.id, _without_provider(created.outs or {})

    def _provider(self, inputs: Mapping[str, Any]) -> ResourceProvider:
        pickled = inputs[PROVIDER_KEY]
        if pickled not in self._providers:
            provider: ResourceProvider = dill.loads(base64.b64decode(pickled))  # noqa: S301 the program pickled it in this process
            provider.configure(self._request)
            self._providers[pickled] = provider
        return self._providers[pickled]


def _without_provider(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in properties.items() if key != PROVIDER_KEY}
