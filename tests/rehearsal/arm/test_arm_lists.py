"""Lists are filtered, cut into pages and expanded as documented; what is not modelled is refused in one form."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from in_process_clients import OfficialClients
from one_of_each import ACCOUNT, BODIES, GROUP, HUB, IDENTITY, LOCATION, NETWORK, ROLE, SCALE_SET, SUBSCRIPTION, ZONE

from rehearsal.azure.api_versions import api_versions
from rehearsal.azure.arm_id import parse
from rehearsal.azure.client_operations import operations
from rehearsal.azure.registry import RESOURCE_TYPES

ASSIGNMENT = f"{ACCOUNT}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-4000-8000-000000000001"
MADE = (
    GROUP,
    IDENTITY,
    ACCOUNT,
    HUB,
    f"{HUB}/subnets/nodes",
    ROLE,
    ASSIGNMENT,
    ZONE,
    *(f"{ZONE}/{one}" for one in ("A/a", "TXT/t")),
    SCALE_SET,
)
ASSIGNMENTS = f"{ACCOUNT}/providers/Microsoft.Authorization/roleAssignments"
TAGGED = f"{NETWORK}/routeTables/tagged"
INSTANCES = f"{SCALE_SET}/virtualMachines"
MODELLED = {kind.type.lower() for kind in RESOURCE_TYPES}


def path(text: str, **query: str) -> str:
    resource_type = "Microsoft.Resources/resources" if text.endswith("/resources") else parse(f"{text}/x").type
    found = {"api-version": api_versions(resource_type)[-1], **{f"${key}": value for key, value in query.items()}}
    return f"{text}?" + "&".join(f"{key}={value}".replace(" ", "%20").replace("'", "%27") for key, value in found.items())


@pytest.fixture(scope="module")
def clients() -> OfficialClients:
    """Some resources, one of them with tags."""
    made = OfficialClients()
    for text, body in {
        **{one: BODIES[one] for one in MADE},
        TAGGED: {"location": LOCATION, "tags": {"team": "it's", "Stage": "1"}},
    }.items():
        version = api_versions(parse(text).type)[-1]
        assert made.adapter.ask("PUT", f"{text}?api-version={version}", json.dumps(body).encode())[0] < 300
        made.adapter.live.clock.move(600.0)
    return made


def names(clients: OfficialClients, where: str) -> list[str]:
    status, content, _ = clients.adapter.ask("GET", where)
    assert status == 200, content
    return [one["name"] for one in json.loads(content)["value"]]


@pytest.mark.parametrize(
    ("text", "filter_text", "found"),
    [
        (f"{GROUP}/resources", "resourceType eq 'Microsoft.Network/virtualNetworks'", ["hub"]),
        (f"{GROUP}/resources", "resourcetype EQ 'microsoft.network/virtualnetworks' or name eq 'node'", ["node", "hub"]),
        (f"{GROUP}/resources", "tagName eq 'team' and tagValue eq 'it''s'", ["tagged"]),
        (f"{GROUP}/resources", "tagName eq 'team' and tagValue eq '1'", []),
        (f"{GROUP}/resources", "startswith(tagName, 'st')", ["tagged"]),
        (f"{GROUP}/resources", "substringof('ool', name) and location ne 'westus'", ["pool"]),
        (f"{GROUP}/resources", "(name eq 'hub' or name eq 'node') and resourceType ne 'Microsoft.Network/virtualNetworks'", ["node"]),
        (f"/subscriptions/{SUBSCRIPTION}/resourceGroups", "tagName eq 'none'", []),
        (INSTANCES, "properties/latestModelApplied eq true", ["pool_0", "pool_1"]),
        (INSTANCES, "properties/latestModelApplied eq false", []),
        (INSTANCES, "startswith(instanceView/statuses/code, 'PowerState') eq true", ["pool_0", "pool_1"]),
        (f"{GROUP}/providers/Microsoft.Compute/virtualMachines", f"'virtualMachineScaleSet/id' eq '{SCALE_SET}'", []),
        (ASSIGNMENTS, "atScope()", [ASSIGNMENT[-36:]]),
        (
            f"{ACCOUNT}/providers/Microsoft.Authorization/roleAssignments",
            "principalId eq 99999999-9999-4999-8999-999999999999",
            [ASSIGNMENT[-36:]],
        ),
        (ASSIGNMENTS, "assignedTo('other')", []),
        (f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions", "roleName eq 'Fleet reader'", [ROLE[-36:]]),
    ],
)
def test_a_filter_selects_what_azure_documents(clients: OfficialClients, text: str, filter_text: str, found: list[str]) -> None:
    assert sorted(names(clients, path(text, filter=filter_text))) == sorted(found)


def test_a_resource_of_another_type_has_no_roles_and_a_missing_one_is_not_found(clients: OfficialClients) -> None:
    below = "providers/Microsoft.Authorization/roleAssignments"
    assert names(clients, path(f"{GROUP}/providers/Microsoft.DocumentDb/databaseAccounts/db/{below}")) == []
    assert clients.adapter.ask("GET", path(f"{HUB}-none/{below}"))[0] == 404


@pytest.mark.parametrize(
    "filter_text",
    [
        "name",
        "name eq",
        "name eq 'a' and",
        "colour eq 'red'",
        "name eq 'a",
        "(name eq 'a'",
        "name gt 'a'",
        "f(name)",
        "name eq 'a') x",
        "(" * 2_000,
    ],
)
def test_another_filter_is_refused(clients: OfficialClients, filter_text: str) -> None:
    status, content, _ = clients.adapter.ask("GET", path(f"{GROUP}/resources", filter=filter_text))
    assert (status, json.loads(content)["error"]["code"]) == (400, "InvalidFilterInQueryString")


def test_pages_have_the_size_of_top_and_the_official_client_reads_all(clients: OfficialClients) -> None:
    groups = clients.client("resource").resources
    pages = [[one.name for one in page] for page in groups.list_by_resource_group("g", top=2).by_page()]
    assert [len(page) for page in pages[:-1]] == [2] * (len(pages) - 1)
    assert sorted(chain.from_iterable(pages)) == sorted(names(clients, path(f"{GROUP}/resources")))
    assert names(clients, path(f"{ZONE}/A", recordsetnamesuffix="A")) == ["a"]
    for wrong in ("0", "-1", "x", "9" * 5_000):
        assert clients.adapter.ask("GET", path(f"{GROUP}/resources", top=wrong))[0] == 400


def test_the_list_of_all_resources_is_generic_and_expanded_on_request(clients: OfficialClients) -> None:
    plain, expanded = (
        next(iter(clients.client("resource").resources.list(filter="name eq 'hub'", expand=expand)))
        for expand in (None, "createdTime,changedTime,provisioningState")
    )
    assert (plain.id, plain.type, plain.location) == (HUB, "Microsoft.Network/virtualNetworks", LOCATION)
    assert (plain.properties, plain.created_time, plain.provisioning_state) == (None, None, None)
    assert expanded.provisioning_state == "Succeeded"
    assert expanded.created_time <= expanded.changed_time


def test_what_is_not_modelled_is_refused_in_one_form_that_names_the_operation(clients: OfficialClients) -> None:
    kinds = {kind.type.lower(): kind for kind in RESOURCE_TYPES}
    refused = 0
    for key, operation in operations().items():
        method, _, rest = key.partition(" ")
        provider, *parts = rest.split("/")
        kind, action = "/".join((provider, *(one for one in parts if one != "*"))), ""
        if parts and len(parts) % 2 and kind not in MODELLED:
            kind, _, action = kind.rpartition("/")
        if "/" not in kind or (kind in MODELLED and (not action or action in (*kinds[kind].paths_below(method), "resources"))):
            continue
        if kind.endswith("rollingupgrades"):
            continue
        text = "/".join(("/subscriptions", SUBSCRIPTION, "resourceGroups/g/providers", provider, *parts)).replace("*", "x")
        text = text.replace("providers/microsoft.resources/resourcegroups/x/", "").replace("g/x", "g")
        status, content, _ = clients.adapter.ask(method, f"{text}?api-version=2018-10-01", b"{}")
        error: Any = json.loads(content)["error"]
        assert (status, error["code"]) == (400, "NotModelled"), (key, error)
        assert operation.names[0] in error["message"] or "/" not in text.partition("resourceGroups/g/")[2], (key, error)
        assert "docs/embedded-azure.md" in error["message"]
        refused += 1
    assert refused > 200


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("GET", f"/subscriptions/{SUBSCRIPTION}/tagNames"),
        ("GET", f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/skus"),
        ("GET", f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/{LOCATION}/publishers"),
        ("POST", f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.KeyVault/checkNameAvailability"),
        ("GET", f"{GROUP}/providers/Microsoft.Batch/batchAccounts"),
        ("PUT", f"{HUB}/subnets"),
        ("PATCH", f"{HUB}/frobnicate"),
    ],
)
def test_other_paths_that_are_not_modelled_are_refused_in_the_same_form(clients: OfficialClients, method: str, text: str) -> None:
    status, content, _ = clients.adapter.ask(method, f"{text}?api-version=2018-10-01", b"{}")
    assert (status, json.loads(content)["error"]["code"]) == ((405, "MethodNotAllowed") if method == "PUT" else (400, "NotModelled"))


def test_a_client_sees_the_refusal_and_does_not_take_it_for_a_missing_resource(clients: OfficialClients) -> None:
    with pytest.raises(HttpResponseError) as refused:
        list(clients.client("compute").virtual_machine_scale_sets.get_os_upgrade_history("g", "pool"))
    assert refused.value.status_code == 400
    assert "virtual_machine_scale_sets.get_os_upgrade_history" in str(refused.value)
