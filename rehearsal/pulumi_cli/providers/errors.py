"""Decides how a provider tells the engine that something failed: a sentence, or a half-made resource that the engine is to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc  # type: ignore[import-untyped]

from components.errors import GpufleetError


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
