"""docs/embedded-azure.md names every resource type that the embedded Azure has and every action of it, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from rehearsal.azure.api_versions import API_VERSIONS, CLI_VERSIONS, check_api_version
from rehearsal.azure.registry import RESOURCE_TYPES

DOCUMENT = Path(__file__).parents[3] / "docs" / "embedded-azure.md"
ROW = re.compile(r"\| `(?P<type>[\w/]+)` \| (?P<operations>[^|]*) \|(?P<holds>[^|]*)\|(?P<lacks>[^|]*)\|$")
ANSWERED_APART = {"Microsoft.Compute/virtualMachineScaleSets/rollingUpgrades": {"cancel"}}
"""Actions in the place of a name."""


CLI_ROWS = re.compile(r"^- `(?P<name>Microsoft\.\w+)`: (?P<versions>[\w, -]+)$", re.MULTILINE)
VERSIONS = re.compile(r"^\| `(?P<name>Microsoft\.[\w./]+)` \| (?P<versions>[^|]+) \|$", re.MULTILINE)


def rows() -> dict[str, str]:
    """Operations by resource type, as the document tells them."""
    found: dict[str, str] = {}
    provider = ""
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("## "):
            provider = line.removeprefix("## ")
        elif row := ROW.match(line):
            name = f"{provider}/{row['type']}"
            assert name not in found, f"{name} has two rows"
            assert row["holds"].strip(), f"{name} does not say what holds"
            assert row["lacks"].strip(), f"{name} does not say what is not modelled"
            found[name] = row["operations"]
    return found


def test_every_type_has_a_row_and_every_row_a_type() -> None:
    assert sorted(rows()) == sorted(kind.type for kind in RESOURCE_TYPES)


def test_every_action_and_every_read_only_path_is_named_and_no_other() -> None:
    for kind in RESOURCE_TYPES:
        named = re.findall(r"`([^`]+)`", rows()[kind.type])
        actions = {one for one in kind.paths_below("POST") if one} | ANSWERED_APART.get(kind.type, set())
        reads = {f"get {path}" for path in kind.paths_below("GET")}
        assert {one.lower() for one in named} == {one.lower() for one in actions} | reads, kind.type


def test_what_is_never_written_by_a_client_is_not_said_to_take_all_operations() -> None:
    read_only = {kind.type for kind in RESOURCE_TYPES if kind.virtual} | {
        "Microsoft.KeyVault/locations/deletedVaults",
        "Microsoft.VirtualMachineImages/imageTemplates/runOutputs",
    }
    assert {name for name, operations in rows().items() if not operations.startswith("all")} == read_only


def test_every_provider_names_its_sources() -> None:
    sections = DOCUMENT.read_text().split("\n## Microsoft.")[1:]
    assert len(sections) == len({kind.type.partition("/")[0] for kind in RESOURCE_TYPES})
    for section in sections:
        before_table = section.partition("| type |")[0]
        assert re.search(r"Sources?: \[[^\]]+\]\(https://", before_table), section[:40]


def test_every_api_version_that_is_taken_is_told_and_no_other() -> None:
    result = {row["name"]: tuple(row["versions"].strip("`").split(", ")) for row in VERSIONS.finditer(DOCUMENT.read_text())}
    assert result == dict(API_VERSIONS)


def test_every_api_version_of_the_command_line_is_told_and_taken() -> None:
    sent = {row["name"]: tuple(row["versions"].split(", ")) for row in CLI_ROWS.finditer(DOCUMENT.read_text())}
    assert sent == dict(CLI_VERSIONS)
    for provider, versions in CLI_VERSIONS.items():
        for version in versions:
            check_api_version(provider, version)
            assert version not in API_VERSIONS[provider]
