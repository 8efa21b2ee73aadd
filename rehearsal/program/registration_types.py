"""Says what a program asks of the engine when it registers a resource, and what it is answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class RegistrationResult(Enum):
    """How a registration ended, by the names of Pulumi's own protocol.

    A failed resource, and one that is skipped because it waits for a failed one, has no outputs: the program goes on without them.
    """

    SUCCESS = 0
    FAIL = 1
    SKIP = 2


@dataclass(frozen=True, slots=True)
class Registration:
    """One resource as the program wants it.

    `inputs` have the provider's names and plaintext secrets; `provider` holds the inputs of its explicit provider resource, and is empty
    without one. `waits_for` are URNs: of its parent, its provider, and everything that it depends on through an input or `depends_on`.
    `ignore_changes` holds paths as sent, in the provider's names.
    """

    urn: str
    type: str
    name: str
    parent: str | None
    custom: bool
    inputs: Mapping[str, Any]
    provider: Mapping[str, Any]
    waits_for: frozenset[str] = frozenset()
    protect: bool = False
    retain_on_delete: bool = False
    ignore_changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RegistrationResponse:
    """What the program is told: the provider's id, empty for a component, and the outputs beyond the inputs."""

    id: str
    outputs: Mapping[str, Any]
    result: RegistrationResult = RegistrationResult.SUCCESS
