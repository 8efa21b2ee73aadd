"""Fixtures of tests in network namespaces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fabric import Azure, fabric


@pytest.fixture
def azure() -> Iterator[Azure]:
    """Azure's network without machines, with the internet behind it."""
    with fabric() as made:
        yield made
