"""Decides how a provider tells the engine that something failed: a sentence, or a half-made resource that the engine is to keep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

import grpc  # type: ignore[import-untyped]

from components.errors import GpufleetError
from rehearsal.pulumi_cli.providers.engine_client import EngineClient
from rehearsal.pulumi_cli.providers.pulumi_values import Json


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """One thing that is wrong with inputs: the path of the property (empty for the whole) and what is wrong with it."""

    property: str
    reason: str


class ProviderError(GpufleetError):
    """A call that failed; the message is what the person reads."""

    def __init__(self, message: str, code: grpc.StatusCode = grpc.StatusCode.UNKNOWN) -> None:
        self.message, self.code = message, code
        super().__init__(message)


class InitializationError(GpufleetError):
    """A resource that exists although making or changing it failed: the engine keeps it in its state, and goes on with it next time.

    properties are its outputs, inputs what to keep as its inputs, reasons a sentence each.
    """

    def __init__(self, resource_id: str, properties: Mapping[str, Any], inputs: Mapping[str, Any], reasons: Sequence[str]) -> None:
        self.id, self.properties, self.inputs, self.reasons = resource_id, properties, inputs, list(reasons)
        super().__init__("; ".join(self.reasons))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRequest:
    """The resource that a call is about: its URN, type token and logical name."""

    urn: str
    type: str
    name: str


@dataclass(frozen=True, slots=True)
class ProposedName:
    """A name that the engine's configuration proposes; mode is PROPOSE, ENFORCE or DISABLE."""

    proposed: str
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest(ResourceRequest):
    """New inputs to look at; old is None for a resource that is not there yet. seed makes names that look random the same again."""

    old: Json | None
    new: Json
    seed: bytes = b""
    naming: ProposedName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest(ResourceRequest):
    """What differs between what was asked for last and what is asked for now."""

    id: str
    old_inputs: Json
    old_outputs: Json
    new: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest(ResourceRequest):
    """A resource to make. timeout in seconds, 0 for the provider's own."""

    inputs: Json
    timeout: float = 0.0
    preview: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest(ResourceRequest):
    """A resource to look up; inputs is None where nothing is known of it but its id, as in an import."""

    id: str
    outputs: Json
    inputs: Json | None
    timeout: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest(ResourceRequest):
    """A resource to change."""

    id: str
    old_inputs: Json
    old_outputs: Json
    new: Json
    timeout: float = 0.0
    preview: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest(ResourceRequest):
    """A resource to delete."""

    id: str
    inputs: Json
    outputs: Json
    timeout: float = 0.0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Inputs as they are to be kept, and what is wrong with them."""

    inputs: Mapping[str, Any]
    failures: Sequence[CheckFailure] = ()


class ChangeKind(Enum):
    """What became of a property."""

    ADD = "ADD"
    DELETE = "DELETE"
    UPDATE = "UPDATE"


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One property that differs; replace says that the resource must be made anew for it."""

    kind: ChangeKind
    replace: bool = False
    input: bool = True


@dataclass(frozen=True, slots=True)
class DiffResult:
    """What differs, by path (`tags.owner`, `subnets[0].name`); empty for nothing.

    delete_first says that a replacement cannot stand beside what it replaces; stables are outputs that no update changes.
    """

    changed: Mapping[str, PropertyChange] = field(default_factory=dict)
    delete_first: bool = False
    stables: Sequence[str] = ()

    @classmethod
    def of_settings(cls, old: Json, new: Json, replacing: Collection[str] = ()) -> Self:
        """What differs between two configurations; replacing are the settings whose change makes every resource be made anew."""
        differing = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        kinds = ((key, ChangeKind.ADD if key not in old else ChangeKind.UPDATE if key in new else ChangeKind.DELETE) for key in differing)
        return cls({key: PropertyChange(kind, replace=key in replacing) for key, kind in kinds})


@dataclass(frozen=True, slots=True)
class CreateResult:
    """A resource that was made: its id, which is empty in a preview, and its outputs."""

    id: str
    outputs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReadResult:
    """A resource that was looked up: id, outputs, and the inputs that would make it."""

    id: str
    outputs: Mapping[str, Any]
    inputs: Mapping[str, Any]


class Provider(ABC):
    """One provider, in one process, for one provider resource of the program. Calls run side by side in one event loop.

    Every method may raise Failed, and NotUnderstood for values it cannot take; create, update and read may raise InitFailed.
    """

    package: str
    """Name of the package, such as kubernetes."""
    version: str
    """Version of the package for which this stands in."""
    autonaming = False
    """Whether it follows the engine's configuration of names."""

    def __init__(self, engine: EngineClient) -> None:
        self.engine = engine

    @abstractmethod
    async def configure(self, config: Json) -> None:
        """Take the configuration of the provider resource; Failed where it cannot serve."""

    async def check_config(self, config: Json) -> CheckResult:
        """Look at a configuration before it is taken."""
        return CheckResult(config)

    def diff_config(self, old: Json, new: Json) -> DiffResult:
        """What differs between two configurations."""
        return DiffResult.of_settings(old, new)

    @abstractmethod
    async def check(self, asked: CheckRequest) -> CheckResult:
        """Put defaults into new inputs and say what is wrong with them; unknown and secret values stay as they are."""

    @abstractmethod
    async def diff(self, asked: DiffRequest) -> DiffResult:
        """Say what an update would change, and what it would replace."""

    @abstractmethod
    async def create(self, asked: CreateRequest) -> CreateResult:
        """Make a resource; in a preview only say what would come of it."""

    @abstractmethod
    async def read(self, asked: ReadRequest) -> ReadResult | None:
        """Look a resource up; None where it is gone."""

    @abstractmethod
    async def update(self, asked: UpdateRequest) -> Mapping[str, Any]:
        """Change a resource and answer its outputs; in a preview only say what would come of it."""

    @abstractmethod
    async def delete(self, asked: DeleteRequest) -> None:
        """Delete a resource; one that is gone already is deleted."""

    @abstractmethod
    async def invoke(self, token: str, arguments: Json) -> Mapping[str, Any]:
        """Answer a function; Failed where there is none of that name."""

    @abstractmethod
    async def cancel(self) -> None:
        """Let everything under way end soon, each call with a sentence that says where it stood; called again, do nothing."""

    async def close(self) -> None:
        """Give back what it holds, when the process ends."""
        await self.engine.close()
