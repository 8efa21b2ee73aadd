"""Queries of Resource Graph read the resources and machines of the model; others than the supported ones are refused."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scale_sets_made import GROUP, SET, SUBSCRIPTION, made, post, vm

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json
from rehearsal.azure.resource_graph.expressions import SUBSET
from rehearsal.azure.resource_graph.query import parse_query
from rehearsal.azure.resource_graph.tables import table_rows

ROWS: list[Json] = [
    {"id": "a", "name": "Alpha", "type": "t/one", "location": "swedencentral", "zones": ["1"], "properties": {"size": 4}},
    {"id": "b", "name": "beta", "type": "t/one", "location": "eastus", "zones": None, "properties": {"size": 10, "On": True}},
    {"id": "c", "name": "gamma ray", "type": "t/two", "location": "eastus", "zones": ["2", "1"], "properties": {}, "tags": {"a-b": "x"}},
]
WORDS = "Resources | where type =~ 'a' and or not ( ) in [ 0 ] . project count , = order by summarize -"


@pytest.fixture(scope="module")
def cloud() -> Cloud:
    """An Azure with a scale set of three machines, of which one is deallocated."""
    whole = made(3, virtualMachineProfile__storageProfile__osDisk={"createOption": "FromImage"})
    whole.advance(whole.now + 3_600)
    post(whole, vm(1), "deallocate")
    return whole


def ran(text: str) -> list[Json]:
    return parse_query(text).rows(ROWS)


def asked(cloud: Cloud, text: str) -> list[Json]:
    query = parse_query(text)
    return query.rows(table_rows(cloud, query.table, [SUBSCRIPTION]))


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("type =~ 'T/ONE'", "ab"),
        ("type == 'T/ONE'", ""),
        ("type != 't/one' or name =~ 'BETA'", "bc"),
        ("not(type == 't/one') and location == 'eastus'", "c"),
        ("location in ('eastus', 'westus') and type =~ 't/one'", "b"),
        ("location !in~ ('EASTUS')", "a"),
        ("name contains 'A' and name !startswith 'al'", "bc"),
        ("name has 'ray' or name endswith 'TA'", "bc"),
        ("name !has 'ra'", "abc"),
        ("properties.size > 4", "b"),
        ("properties.SIZE <= 10 and properties['size'] >= 4.0", "ab"),
        ("properties.on == true", "b"),
        ("tags['a-b'] == \"x\"", "c"),
        ("zones[0] == '2'", "c"),
        ("isempty(properties) or isnull(zones)", "bc"),
        ("isnotempty(properties.size) and isnotnull(zones)", "a"),
        ("tolower(name) == 'alpha' or (toupper(name) == 'BETA')", "ab"),
        ("toint(properties.size) == 10 or tostring(properties.size) == '4'", "ab"),
    ],
)
def test_a_condition_selects_rows(condition: str, ids: str) -> None:
    assert "".join(row["id"] for row in ran(f"Resources | where {condition}")) == ids


@pytest.mark.parametrize(
    ("operators", "rows"),
    [
        ("count", [{"Count": 3}]),
        ("project name, n = properties.size | top 1 by n", [{"name": "beta", "n": 10}]),
        ("project id | order by id | limit 2", [{"id": "c"}, {"id": "b"}]),
        ("sort by location asc, id desc | take 2 | project id", [{"id": "c"}, {"id": "b"}]),
        ("summarize count() by location", [{"location": "swedencentral", "count_": 1}, {"location": "eastus", "count_": 2}]),
        ("summarize machines = count() by tostring(properties.size) | where machines > 0 | count", [{"Count": 3}]),
        ("summarize count()", [{"count_": 3}]),
        ("where id == 'none' | summarize count() by type", []),
        ("distinct location | order by location asc", [{"location": "eastus"}, {"location": "swedencentral"}]),
        (
            "extend up = toupper(name) | where id == 'b' | project-away name, type, location, zones, Properties",
            [{"id": "b", "up": "BETA"}],
        ),
    ],
)
def test_operators_change_rows(operators: str, rows: list[Any]) -> None:
    assert ran(operators) == ran(f"resources | {operators}") == rows


@pytest.mark.parametrize(
    "text",
    [
        "Nothing | count",
        "Resources | join kind=inner (Resources) on id",
        "Resources | where type matches regex 'x'",
        "Resources | where strcat(name, 'x') == 'y'",
        "Resources | summarize max(properties.size)",
        "Resources | where",
        "Resources | limit many",
        "Resources | where name == 'x",
        "Resources | where " + "(" * 40 + "true" + ")" * 40,
        "Resources | where zones[" + "9" * 400 + ".0] == '1'",
        "Resources | where properties.size > " + "9" * 400,
        "Resources | ",
        "Resources ; Resources",
    ],
)
def test_another_query_is_refused_with_the_supported_subset(text: str) -> None:
    with pytest.raises(AzureError) as refused:
        parse_query(text)
    assert (refused.value.status, refused.value.code) == (400, "BadRequest")
    assert SUBSET in refused.value.message


@given(st.lists(st.sampled_from(WORDS.split())))
def test_any_words_are_a_query_or_are_refused(words: list[str]) -> None:
    with contextlib.suppress(AzureError):
        ran(" ".join(words))


def test_tables_have_scale_sets_and_their_machines(cloud: Cloud) -> None:
    sets = "Resources | where type =~ 'Microsoft.Compute/virtualMachineScaleSets'"
    (found,) = asked(cloud, f"{sets} | project id, location, sku.capacity, resourceGroup")
    assert found == {"id": SET, "location": "swedencentral", "sku_capacity": 3, "resourceGroup": "fleet"}
    machines = "ComputeResources | where type =~ 'microsoft.compute/virtualmachinescalesets/virtualmachines'"
    by_power = asked(cloud, f"{machines} | summarize n = count() by power = tostring(properties.extended.instanceView.powerState.code)")
    assert {row["power"]: row["n"] for row in by_power} == {"PowerState/running": 2, "PowerState/deallocated": 1}
    assert [row["id"] for row in asked(cloud, machines)] == [vm(number) for number in range(3)]
    disks = asked(cloud, "where type =~ 'microsoft.compute/disks' | project managedBy")
    assert [row["managedBy"] for row in disks] == [vm(number) for number in range(3)]
    containers = asked(cloud, "ResourceContainers | project id")
    assert containers == [{"id": f"/subscriptions/{SUBSCRIPTION}"}, {"id": GROUP}]
