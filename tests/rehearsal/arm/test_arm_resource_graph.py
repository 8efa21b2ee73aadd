"""Resource Graph answers a query in pages, in both formats, and refuses other requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scale_sets_made import GROUP, SUBSCRIPTION, azure, put

from rehearsal.arm.http_request import HttpRequest
from rehearsal.arm.resource_graph import PATH, graph_response
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json

QUERY = "where type =~ 'microsoft.managedidentity/userassignedidentities' | project id, name | order by name asc"


@pytest.fixture(scope="module")
def cloud() -> Cloud:
    """An Azure with five identities."""
    made = azure()
    for number in range(5):
        put(made, f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/own{number}", {"location": "swedencentral"})
    return made


def asked(cloud: Cloud, query: Any = QUERY, version: str = "2022-10-01", **body: Any) -> Json:
    content = json.dumps({"query": query, **body}).encode()
    return graph_response(HttpRequest("POST", PATH, "/".join(PATH), {"api-version": version}, {}, content), cloud)


def test_pages_contain_every_row_once(cloud: Cloud) -> None:
    names, token = [], None
    for size in (2, 2, 1):
        page = asked(cloud, subscriptions=[SUBSCRIPTION.upper()], options={"$top": 2, "$skipToken": token})
        assert (page["count"], page["totalRecords"], page["resultTruncated"]) == (size, 5, "false")
        names += [row["name"] for row in page["data"]]
        token = page.get("$skipToken")
    assert (names, token) == ([f"own{number}" for number in range(5)], None)


def test_a_table_has_columns_and_rows_and_is_truncated_without_ids(cloud: Cloud) -> None:
    page = asked(cloud, f"{QUERY} | project name", options={"$top": 1, "$skip": 3, "resultFormat": "table"})
    assert page["data"] == {"columns": [{"name": "name", "type": "string"}], "rows": [["own3"]]}
    assert (page["resultTruncated"], "$skipToken" in page) == ("true", False)
    assert asked(cloud, subscriptions=["11111111-1111-4111-8111-111111111111"])["data"] == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"query": 1}, "BadRequest"),
        ({"query": "x | y"}, "BadRequest"),
        ({"managementGroups": ["all"]}, "NotModelled"),
        ({"facets": [{"expression": "location"}]}, "NotModelled"),
        ({"subscriptions": "one"}, "BadRequest"),
        ({"options": {"$top": 1_001}}, "BadRequest"),
        ({"options": {"$skip": -1}}, "BadRequest"),
        ({"options": {"$skipToken": "other"}}, "BadRequest"),
        ({"version": "2020-01-01"}, "NoRegisteredProviderFound"),
    ],
)
def test_another_request_is_refused(cloud: Cloud, body: Json, code: str) -> None:
    with pytest.raises(AzureError) as refused:
        asked(cloud, **body)
    assert refused.value.code == code
