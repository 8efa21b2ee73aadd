"""The table of operations of the official clients is what their pinned source says."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import rehearsal.azure
from rehearsal.azure.client_operations import accepted_status, client_operation, operations, published_key
from rehearsal.azure.registry import RESOURCE_TYPES
from tests.support.client_sources import source_operations

TABLE = Path(rehearsal.azure.__file__).with_name("client_operations.json")
DOCUMENT = Path(__file__).parents[3] / "docs" / "embedded-azure.md"
ANSWERED_APART = {"GET Microsoft.Resources/resourceGroups/*/resources"}
"""Operations of a type that Resource Manager itself answers."""
MODELLED = {kind.type.lower() for kind in RESOURCE_TYPES}


def of_modelled_type(key: str) -> bool:
    """Whether a request is for a modelled type, for what is below one, or for a list of all types."""
    provider, *parts = key.partition(" ")[2].split("/")
    kinds = [part for part in parts if part != "*"]
    return any("/".join((provider, *kinds[:count])) in MODELLED for count in range(1, len(kinds) + 1)) or provider == "resources"


def test_the_table_is_what_the_pinned_clients_say() -> None:
    found: dict[str, list[list[object]]] = {}
    for one in source_operations():
        if of_modelled_type(one.key):
            found.setdefault(published_key(one.method, one.path), []).append(
                [f"{one.group}.{one.name}", set(one.statuses), one.polled, set(one.query)]
            )
    rows = {
        key: [
            sorted({str(row[0]) for row in same}),
            sorted(set.intersection(*(row[1] for row in same))),  # type: ignore[arg-type]
            any(row[2] for row in same),
            sorted(set.union(*(row[3] for row in same))),  # type: ignore[arg-type]
        ]
        for key, same in sorted(found.items())
    }
    text = "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items()) + "\n}\n"
    if os.environ.get("GPUFLEET_UPDATE_GOLDEN") == "1":
        TABLE.write_text(text, encoding="utf-8")
        operations.cache_clear()
        client_operation.cache_clear()
    assert TABLE.read_text(encoding="utf-8") == text, "GPUFLEET_UPDATE_GOLDEN=1 pytest writes the table; read the diff"
    assert min(len(row[1]) for row in rows.values()) > 0


def unmodelled_rows() -> str:
    """The rows of the document's table: operations and types below each modelled type, in the order of its tables."""
    kinds = {kind.type.lower(): kind for kind in RESOURCE_TYPES}
    paths: dict[str, set[str]] = {kind.type: set() for kind in RESOURCE_TYPES}
    below: dict[str, dict[str, str]] = {kind.type: {} for kind in RESOURCE_TYPES}
    for key in json.loads(TABLE.read_text(encoding="utf-8")):
        method, _, path = key.partition(" ")
        provider, *parts = path.split("/")
        names = [part for part in parts if part != "*"]
        depth = next((count for count in range(len(names), 0, -1) if "/".join((provider, *names[:count])).lower() in kinds), 0)
        if not depth or depth == len(names) or key in ANSWERED_APART:
            continue
        kind, rest = kinds["/".join((provider, *names[:depth])).lower()], names[depth:]
        if parts[-1] == "*" or len(rest) > 1:
            below[kind.type].setdefault(rest[0].lower(), rest[0])
        elif rest[0].lower() not in kind.paths_below(method):
            paths[kind.type].add(f"{method} {rest[0]}")
    rows = []
    for kind in RESOURCE_TYPES:
        children = set(below[kind.type].values())
        own = sorted(one for one in paths[kind.type] if one.removeprefix("GET ").lower() not in below[kind.type])
        if own or children:
            shown = (", ".join(f"`{one}`" for one in found) or "–" for found in (own, sorted(children)))
            rows.append(f"| `{kind.type}` | {' | '.join(shown)} |\n")
    return "".join(rows)


def test_the_document_lists_what_is_not_modelled() -> None:
    head, found, rest = DOCUMENT.read_text(encoding="utf-8").partition("| type | operations | types below it |\n|---|---|---|\n")
    rows = re.match(r"(?:\|.*\n)*", rest)
    assert found
    assert rows is not None
    if os.environ.get("GPUFLEET_UPDATE_GOLDEN") == "1":
        DOCUMENT.write_text(head + found + unmodelled_rows() + rest[rows.end() :], encoding="utf-8")
    else:
        assert rows[0] == unmodelled_rows(), "GPUFLEET_UPDATE_GOLDEN=1 pytest writes the table"
    assert "`POST capture`" in unmodelled_rows()


@pytest.mark.parametrize(
    ("method", "resource_type", "outcome", "running", "status"),
    [
        ("PUT", "Microsoft.Compute/disks", 201, True, 202),
        ("PUT", "Microsoft.Compute/disks", 201, False, 200),
        ("PUT", "Microsoft.Compute/disks", 200, True, 202),
        ("PUT", "Microsoft.Compute/virtualMachineScaleSets", 201, True, 201),
        ("PUT", "Microsoft.Compute/virtualMachineScaleSets", 200, True, 200),
        ("PUT", "Microsoft.Network/privateDnsZones/A", 201, False, 201),
        ("PUT", "Microsoft.Authorization/roleDefinitions", 200, False, 201),
        ("DELETE", "Microsoft.KeyVault/vaults", 200, False, 200),
        ("DELETE", "Microsoft.VirtualMachineImages/imageTemplates", 200, False, 204),
        ("DELETE", "Microsoft.Storage/storageAccounts/blobServices", 202, True, 202),
    ],
)
def test_the_status_of_an_outcome_is_one_that_the_client_accepts(
    method: str, resource_type: str, outcome: int, running: bool, status: int
) -> None:
    assert accepted_status(client_operation(method, resource_type), outcome, running=running) == status
