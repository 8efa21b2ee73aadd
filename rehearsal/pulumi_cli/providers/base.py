"""Says what a provider of the rehearsal is: what it must do for the engine, in Python's values; the protocol itself is in calls.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from rehearsal.pulumi_cli.providers.engine_client import Engine
from rehearsal.pulumi_cli.providers.pulumi_values import Json
from rehearsal.pulumi_cli.providers.requests import (
    CheckAsked,
    Checked,
    CreateAsked,
    DeleteAsked,
    DiffAsked,
    Difference,
    Found,
    Made,
    ReadAsked,
    UpdateAsked,
)


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

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @abstractmethod
    async def configure(self, config: Json) -> None:
        """Take the configuration of the provider resource; Failed where it cannot serve."""

    async def check_config(self, config: Json) -> Checked:
        """Look at a configuration before it is taken."""
        return Checked(config)

    def diff_config(self, old: Json, new: Json) -> Difference:
        """What differs between two configurations."""
        return Difference.of_settings(old, new)

    @abstractmethod
    async def check(self, asked: CheckAsked) -> Checked:
        """Put defaults into new inputs and say what is wrong with them; unknown and secret values stay as they are."""

    @abstractmethod
    async def diff(self, asked: DiffAsked) -> Difference:
        """Say what an update would change, and what it would replace."""

    @abstractmethod
    async def create(self, asked: CreateAsked) -> Made:
        """Make a resource; in a preview only say what would come of it."""

    @abstractmethod
    async def read(self, asked: ReadAsked) -> Found | None:
        """Look a resource up; None where it is gone."""

    @abstractmethod
    async def update(self, asked: UpdateAsked) -> Mapping[str, Any]:
        """Change a resource and answer its outputs; in a preview only say what would come of it."""

    @abstractmethod
    async def delete(self, asked: DeleteAsked) -> None:
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
