"""Runs the dynamic providers of a program in this process, so that what they make (keys, certificates) is real."""

import base64
from collections.abc import Mapping
from typing import Any, ClassVar

import dill  # type: ignore[import-untyped]
from pulumi.dynamic import ConfigureRequest, ResourceProvider
from pulumi.dynamic.config import Config
from pulumi.dynamic.dynamic import PROVIDER_KEY


class CheckFailed(Exception):
    """A dynamic provider's own check refused the inputs."""

    def __init__(self, failures: Mapping[str, str]) -> None:
        self.failures = failures
        super().__init__("; ".join(f"{path}: {reason}" for path, reason in failures.items()))


class DynamicProviders:
    """The program's dynamic providers, unpickled once each and configured with the stack's configuration.

    A provider class with `waits_for_cloud = True` stands for something that a rehearsal cannot wait for, such as an API server's
    `/readyz`; its resources are the cloud's to answer.
    """

    KEY: ClassVar[str] = PROVIDER_KEY

    def __init__(self, config: Mapping[str, str], project: str) -> None:
        self._request = ConfigureRequest(Config(raw_config=dict(config), project_name=project))
        self._providers: dict[str, ResourceProvider] = {}

    def answers(self, resource_type: str, inputs: Mapping[str, Any]) -> bool:
        """Whether the resource is a dynamic one whose provider's code is to run here."""
        if not resource_type.startswith("pulumi-python:dynamic"):
            return False
        return not getattr(self._provider(inputs), "waits_for_cloud", False)

    def class_name(self, inputs: Mapping[str, Any]) -> str:
        """The provider's class, with its module."""
        provider = type(self._provider(inputs))
        return f"{provider.__module__}.{provider.__qualname__}"

    def create(self, inputs: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Id and outputs from the provider's check and create, in the engine's order; `CheckFailed`, or what the provider raises."""
        provider = self._provider(inputs)
        checked = provider.check({}, dict(inputs))
        if checked.failures:
            raise CheckFailed({failure.property: failure.reason for failure in checked.failures})
        created = provider.create({**checked.inputs, PROVIDER_KEY: inputs[PROVIDER_KEY]})
        outputs = {key: value for key, value in (created.outs or {}).items() if key != PROVIDER_KEY}
        return created.id, outputs

    def _provider(self, inputs: Mapping[str, Any]) -> ResourceProvider:
        pickled = inputs[PROVIDER_KEY]
        if pickled not in self._providers:
            provider: ResourceProvider = dill.loads(base64.b64decode(pickled))  # noqa: S301 the program pickled it in this process
            provider.configure(self._request)
            self._providers[pickled] = provider
        return self._providers[pickled]
