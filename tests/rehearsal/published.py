"""Checks bodies against Azure's published types, where their folder lies beside the repository."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from azure_types import AzureTypes

FOLDER = Path(__file__).parents[3] / "shared" / "azure-types"

needs_published_types = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"Azure's published types are not there: no folder {FOLDER.name} beside the repository"
)
"""Mark of a test that calls the functions below."""


@cache
def published_types() -> AzureTypes:
    """All types of the folder."""
    return AzureTypes(FOLDER)


def answer_faults(arm_type: str, version: str, body: Mapping[str, Any]) -> list[str]:
    """List the differences of a response body from its type; an empty version is azure-native's. Raise UnknownResourceTypeError."""
    return published_types().answer_faults(arm_type, version, body)


def sent_faults(arm_type: str, version: str, body: Mapping[str, Any]) -> list[str]:
    """List the differences of a PUT body from its type, as answer_faults does."""
    return published_types().sent_faults(arm_type, version, body)
