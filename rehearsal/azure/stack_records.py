"""Records of a program's resources: their stack, and resources that exist outside Azure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from rehearsal.azure.azure_native_ids import AZURE
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.resource import Json, Resource

SERVICE = "stacks"
"""Name of the records in a model's state."""


@dataclass(frozen=True, slots=True)
class StackRecord:
    """One resource that a stack has: id is the Azure resource id of what lives in Azure, the provider's otherwise, empty for a component.

    dependencies are URNs that must outlive it, its parent among them. kept holds inputs and outputs of what lives nowhere else (keys,
    certificates, Kubernetes objects) and is None for the rest: Azure's own model knows those.
    """

    urn: str
    type: str
    parent: str | None
    id: str
    dependencies: tuple[str, ...] = ()
    protect: bool = False
    retain: bool = False
    kept: Json | None = None

    @property
    def name(self) -> str:
        """Return the logical name."""
        return self.urn.rpartition("::")[2]

    @property
    def azure(self) -> bool:
        """Return whether it is an Azure resource."""
        return self.type.startswith(AZURE)


@dataclass(slots=True)
class StackState:
    """Resources of one stack by URN in creation order, and its outputs. Secrets are plain here; only the file's owner can read it."""

    records: dict[str, StackRecord] = field(default_factory=dict)
    exports: Json = field(default_factory=dict)


class StackStates:
    """Every stack of a state, by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, StackState] = {}

    def of(self, name: str) -> StackState:
        """Return a stack, which is empty before its first update."""
        return self.by_name.setdefault(name, StackState())

    def __iter__(self) -> Iterator[tuple[str, StackRecord]]:
        """Return stack name and record of every resource, base stacks first."""
        return ((name, record) for name, stack in self.by_name.items() for record in stack.records.values())

    def dump(self) -> Json:
        """Return plain JSON."""
        return {
            name: {"exports": stack.exports, "records": [asdict(record) for record in stack.records.values()]}
            for name, stack in self.by_name.items()
        }

    def load(self, data: Mapping[str, Any]) -> None:
        """Restore the state that dump returned."""
        self.by_name = {name: _stack(saved) for name, saved in data.items()}


def _stack(saved: Mapping[str, Any]) -> StackState:
    records = (StackRecord(**{**item, "dependencies": tuple(item["dependencies"])}) for item in saved["records"])
    return StackState({record.urn: record for record in records}, saved["exports"])


def resource_of(cloud: Cloud, record: StackRecord) -> Resource | None:
    """Return the Azure resource of a record; None if it is outside Azure or deleted."""
    return cloud.find(record.id) if record.azure else None


def stacks_of(cloud: Cloud) -> StackStates:
    """Return the stacks of a model's state."""
    return cast("StackStates", cloud.services.setdefault(SERVICE, StackStates()))
