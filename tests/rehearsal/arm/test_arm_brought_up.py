"""The server serves the resources of `gpufleet up` with bodies of Azure's published types, and `gpufleet up` resumes from its state."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from arm_server import ArmServer, arm_server, bring_up
from azure_types import UnknownResourceTypeError
from published import answer_faults, needs_published_types

from rehearsal.azure.api_versions import api_versions
from rehearsal.azure.arm_id import parse


def saved(state: Path) -> dict[str, Any]:
    """The latest snapshot."""
    body: dict[str, Any] = json.loads(max(state.glob("state-*.json")).read_text())
    return body


@pytest.fixture(scope="module")
def region(brought_up: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ArmServer, dict[str, Any]]]:
    """A server of what was brought up, and the snapshot that it began with."""
    folder = Path(shutil.copytree(brought_up, tmp_path_factory.mktemp("served") / "state"))
    before = saved(folder)
    with arm_server(folder) as server:
        yield server, before


def test_every_resource_that_was_brought_up_is_served_in_every_version_of_its_type(region: tuple[ArmServer, dict[str, Any]]) -> None:
    server, before = region
    token = server.token()
    assert len(before["resources"]) > 100
    for one in before["resources"]:
        for version in api_versions(parse(one["id"]).type):
            status, body, _ = server.ask("GET", f"{one['id']}?api-version={version}", token=token)
            assert (status, body.get("id")) == (200, one["id"])


@needs_published_types
def test_every_answered_body_is_as_azure_publishes_its_type(region: tuple[ArmServer, dict[str, Any]]) -> None:
    server, before = region
    token, faults, looked_at = server.token(), [], set()
    machines = [
        machine["id"]
        for one in before["resources"]
        if parse(one["id"]).type == "Microsoft.Compute/virtualMachineScaleSets"
        for machine in server.ask("GET", f"{one['id']}/virtualMachines?api-version=2024-11-01", token=token)[1]["value"]
    ]
    for text in [*(one["id"] for one in before["resources"]), *machines]:
        arm_type = parse(text).type
        for version in api_versions(arm_type):
            body = server.ask("GET", f"{text}?api-version={version}", token=token)[1]
            try:
                faults += answer_faults(arm_type, version, body)
            except UnknownResourceTypeError:
                continue
            looked_at.add((arm_type.partition("/")[0], version))
    assert sorted(set(faults)) == []
    providers = {provider for provider, _ in looked_at}
    assert {"Microsoft.Compute", "Microsoft.Network", "Microsoft.KeyVault", "Microsoft.Storage", "Microsoft.ManagedIdentity"} <= providers
    assert {("Microsoft.Compute", "2024-11-01"), ("Microsoft.Compute", "2026-04-01")} <= looked_at


def test_each_resource_is_in_the_list_of_its_type(region: tuple[ArmServer, dict[str, Any]]) -> None:
    server, before = region
    token = server.token()
    for text in [one["id"] for one in before["resources"] if one["id"].count("/") > 4]:
        arm_type = parse(text).type
        path: str | None = f"{text.rpartition('/')[0]}?api-version={api_versions(arm_type)[-1]}"
        found: list[str] = []
        while path:
            status, body, _ = server.ask("GET", path, token=token)
            assert status == 200, (text, body)
            found += [one["id"] for one in body["value"]]
            path = body.get("nextLink")
        assert found.count(text) == 1


def test_what_the_program_declared_is_kept_while_it_is_served_and_a_second_up_changes_nothing(brought_up: Path, tmp_path: Path) -> None:
    state = Path(shutil.copytree(brought_up, tmp_path / "state"))
    before = saved(state)
    with arm_server(state) as server:
        group = f"/subscriptions/{server.subscription}/resourcegroups/by-hand?api-version=2025-04-01"
        assert server.ask("PUT", group, {"location": "southcentralus"}, token=server.token())[0] == 201
        server.kill()
    result = bring_up(state)
    assert "nothing to change" in result
    after = saved(state)
    assert after["services"]["stacks"] == before["services"]["stacks"]
    assert [one["id"] for one in after["resources"] if one["id"].endswith("/by-hand")]
