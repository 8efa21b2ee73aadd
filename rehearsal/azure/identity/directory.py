"""Remembers which principals and custom roles existed and are gone, so that what still names them can be refused as Azure does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rehearsal.azure.cloud import Cloud


class Directory:
    """Principals and role ids, in lower case, that were the model's and are no longer; all others are taken as existing."""

    def __init__(self) -> None:
        self.gone: set[str] = set()

    def add(self, name: str) -> None:
        """One that is there (again)."""
        self.gone.discard(name.lower())

    def remove(self, name: str) -> None:
        """One that is no longer."""
        self.gone.add(name.lower())

    def lacks(self, name: str) -> bool:
        """Whether it is known to be gone."""
        return name.lower() in self.gone

    def dump(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"gone": sorted(self.gone)}

    def load(self, data: Mapping[str, Any]) -> None:
        """Take up what dump told of."""
        self.gone = set(data["gone"])


def directory_of(cloud: Cloud) -> Directory:
    """The cloud's directory."""
    return cast("Directory", cloud.services.setdefault("directory", Directory()))
