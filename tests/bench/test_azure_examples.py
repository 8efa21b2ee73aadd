"""The replay of published examples finds answers that differ from the example, and only those."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.azure_examples.client_operations import find_operation
from bench.azure_examples.example import ExampleError, read_example
from bench.azure_examples.replay import DIFFERENT, MATCHED, MISSING, NOT_MODELLED, NOT_SENT, REFUSED, Outcome, replay
from bench.azure_examples.served import Served, served

ADDRESS = {
    "operationId": "PublicIPAddresses_CreateOrUpdate",
    "parameters": {
        "subscriptionId": "subid",
        "resourceGroupName": "rg1",
        "publicIpAddressName": "test-ip",
        "parameters": {"location": "eastus", "sku": {"name": "Standard"}, "properties": {"publicIPAllocationMethod": "Static"}},
    },
    "responses": {"200": {"body": {"location": "eastus", "properties": {"provisioningState": "Succeeded", "ipAddress": "1.2.3.4"}}}},
}
LIST = {
    "operationId": "PublicIPAddresses_List",
    "parameters": {"subscriptionId": "subid", "resourceGroupName": "rg1"},
    "responses": {"200": {"body": {"value": [{"name": "test-ip", "location": "eastus", "properties": {"ipAddress": "1.2.3.4"}}]}}},
}


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served() as one:
        yield one


def replayed(server: Served, folder: Path, document: dict[str, Any]) -> Outcome:
    """The outcome of an example that is written to a file."""
    file = folder / "example.json"
    file.write_text(json.dumps(document))
    return replay(server, read_example(file, file.name))


def changed(document: dict[str, Any], part: str, **properties: Any) -> dict[str, Any]:
    """The example with other inner properties in its request or its answer."""
    copy = json.loads(json.dumps(document))
    body = copy["parameters"]["parameters"] if part == "request" else copy["responses"]["200"]["body"]
    body["properties"] |= properties
    return copy


@pytest.mark.parametrize(
    ("document", "category", "paths"),
    [
        (ADDRESS, MATCHED, ()),
        (LIST, MATCHED, ()),
        (changed(ADDRESS, "answer", colour="red"), MISSING, ("properties.colour",)),
        (changed(ADDRESS, "answer", ipAddress=3), MISSING, ("properties.ipAddress (string instead of number)",)),
        (changed(ADDRESS, "answer", ipAddress="1.2.3.4", dnsSettings={}), NOT_SENT, ("properties.dnsSettings",)),
        (changed(ADDRESS, "request", publicIPAllocationMethod="Dynamic"), REFUSED, ()),
        ({**LIST, "operationId": "ApplicationGateways_List"}, NOT_MODELLED, ()),
    ],
)
def test_an_example_is_compared_with_the_answer(
    server: Served, tmp_path: Path, document: dict[str, Any], category: str, paths: tuple[str, ...]
) -> None:
    outcome = replayed(server, tmp_path, document)
    assert (outcome.category, outcome.paths) == (category, paths), outcome
    assert outcome.category != DIFFERENT


def test_an_operation_that_no_client_has_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "example.json"
    file.write_text(json.dumps({**LIST, "operationId": "Unicorns_List"}))
    with pytest.raises(ExampleError, match="no pinned client has the operation Unicorns_List"):
        read_example(file, file.name)


def test_the_statuses_of_an_operation_are_those_of_its_client() -> None:
    found = find_operation("Disks_CreateOrUpdate")
    assert found is not None
    assert (found.method, found.statuses) == ("PUT", {200, 202})
    assert "Microsoft.Compute/disks/" in found.path
