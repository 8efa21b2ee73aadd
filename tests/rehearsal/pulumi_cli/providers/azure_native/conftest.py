"""Fixtures for tests of azure-native: an embedded Azure over HTTPS, and a provider process that is configured for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from azure_served import Served, served
from provider_process import Client, provider_process

MODULE = "rehearsal.pulumi_cli.providers.azure_native"


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One Azure for all tests, in which no call is counted and hours pass in a second."""
    with served(tmp_path_factory.mktemp("azure")) as running:
        yield running


@pytest.fixture(scope="session")
def provider(azure: Served) -> Iterator[Client]:
    """A provider process, configured."""
    with provider_process(MODULE, azure.environment) as running:
        running.client.configure(location=azure.location)
        yield running.client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for an Azure of one's own."""
    return tmp_path / "azure"
