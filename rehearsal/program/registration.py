"""Registration of a resource by a program: the request, the response, and its error."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from components.errors import GpufleetError


class RegistrationResult(Enum):
    """Result of a registration, with the names of Pulumi's protocol.

    A failed resource, and one that is skipped because it depends on a failed one, has no outputs; the program continues without them.
    """

    SUCCESS = 0
    FAIL = 1
    SKIP = 2


@dataclass(frozen=True, slots=True)
class PriorResource:
    """A resource before its update: the provider's id, and its inputs and outputs with plaintext secrets."""

    id: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]


BeforeUpdate = Callable[[PriorResource], Awaitable[str | None]]
"""Function that runs a resource's hooks before its update, and returns the reason of the first that failed, or None."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One resource that a program registers.

    `inputs` have the provider's names and plaintext secrets; `provider` holds the inputs of its explicit provider resource, and is empty
    without one. `waits_for` are URNs: of its parent, its provider, and everything that it depends on through an input or `depends_on`.
    `ignore_changes` holds paths as sent, in the provider's names. `before_update` runs the resource's hooks, None without hooks.
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
    before_update: BeforeUpdate | None = None


@dataclass(frozen=True, slots=True)
class RegistrationResponse:
    """The response to a program: the provider's id, empty for a component, and the outputs beyond the inputs."""

    id: str
    outputs: Mapping[str, Any]
    result: RegistrationResult = RegistrationResult.SUCCESS


class RegistrationError(GpufleetError):
    """A resource that was refused; `cause` is the reason in one line."""

    def __init__(self, resource_type: str, name: str, cause: str) -> None:
        self.resource_type, self.name, self.cause = resource_type, name, cause
        super().__init__(f"{resource_type} {name!r}: {cause}")


def one_line(error: BaseException) -> str:
    """Return an error's message as one line; the type's name precedes an empty message, and the message of a LookupError."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines or isinstance(error, LookupError):
        return ": ".join([type(error).__name__, *lines])
    # The SDK wraps an invalid value in two lines per level of nesting, with the whole value in the lines between.
    return lines[0] if len(lines) == 1 else f"{lines[0]}: {lines[-1]}"
