"""Any change of a region's network bodies is accepted or refused as on Azure, and a refused request changes nothing."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from test_azure_network_regions import empty, region, requested_resources

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.persistence import dump, load
from rehearsal.azure.resource import Json, Request

REGION = "pair"
"""The region of the tests with both ways of reaching a cluster."""


@cache
def saved() -> str:
    return json.dumps(dump(region(REGION)))


@cache
def network_bodies() -> tuple[tuple[ArmId, Json], ...]:
    return tuple(one for one in requested_resources(REGION) if one[0].type.startswith("Microsoft.Network/"))


@cache
def ids() -> tuple[str, ...]:
    return tuple(arm_id.text for arm_id, _ in requested_resources(REGION))


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of everything in a body."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [one for key, item in children for one in ((*path, key), *paths(item, (*path, key)))]


def another(value: Any) -> st.SearchStrategy[Any]:
    """Something of the same JSON type that is not meant there, or now and then of another."""
    strange = st.sampled_from(["", "x", 0, -1, True, None, [], {}])
    if isinstance(value, str) and value.startswith("/subscriptions/"):
        same = st.one_of(
            st.sampled_from(ids()), st.sampled_from(["/subscriptions/x", "/subscriptions", f"{value}-none", f"{value}/more/one"])
        )
    elif isinstance(value, str):
        same = st.sampled_from(
            ["", "x", "10.0.0.0/8", "10.48.1.9", "10.48.0.0/24", "fd00::/64", "Static", "Dynamic", "All", "Tcp", "*", "Standard"]
        )
    elif isinstance(value, bool):
        same = st.just(not value)
    elif isinstance(value, int):
        same = st.integers(-1, 70_000)
    else:
        same = st.just(type(value)())
    return st.integers(0, 9).flatmap(lambda number: strange if number == 0 else same)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[ArmId, Json]:
    """Draw a network request of a region with some parts removed, doubled or moved; half of them have a new name."""
    arm_id, body = draw(st.sampled_from(network_bodies()))
    body = deepcopy(body)
    for _ in range(draw(st.integers(1, 3))):
        found = paths(body)
        if not found:
            break
        *way, last = draw(st.sampled_from(found))
        place = body
        for key in way:
            place = place[key]
        action = draw(st.sampled_from(("leave out", "replace", "double")))
        if action == "leave out":
            del place[last]
        elif action == "double" and isinstance(place, list):
            place.append(deepcopy(place[last]))
        else:
            place[last] = draw(another(place[last]))
    if draw(st.booleans()):
        arm_id = parse(f"{arm_id.text}-new")
    return arm_id, body


def refusal(cloud: Cloud, method: str, arm_id: ArmId, body: Json | None = None) -> AzureError | None:
    """Why a request is refused, None where it is taken."""
    try:
        cloud.handle(Request(method, arm_id, body=body))
    except AzureError as refused:
        return refused
    return None


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutated())
def test_a_mutated_network_is_taken_or_refused(one: tuple[ArmId, Json]) -> None:
    arm_id, body = one
    cloud = load(json.loads(saved()), lambda _: empty(REGION))
    before = json.dumps(dump(cloud))
    refused = refusal(cloud, "PUT", arm_id, body)
    event(refused.code if refused else "taken")
    if refused:
        assert refused.message
        assert json.dumps(dump(cloud)) == before
        return
    cloud.run_until_idle()
    for resource in list(cloud.resources.values()):
        cloud.handle(Request("GET", resource.id))
    after = json.loads(json.dumps(dump(cloud)))
    assert dump(load(deepcopy(after), lambda _: empty(REGION))) == after
    deleted = refusal(cloud, "DELETE", arm_id)
    assert deleted is None or deleted.status in (400, 409, 429)
