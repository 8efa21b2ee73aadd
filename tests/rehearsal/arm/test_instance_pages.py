"""A page from stored JSON is the page that is computed anew, whatever happened to the instances since."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scale_sets_made import HEALTH, NICS, PROFILE, SET, STORAGE, ask, body, delete, image, ip_configurations, made, nic, put, vm

from rehearsal.arm import instance_pages
from rehearsal.arm.instance_pages import InstancePages
from rehearsal.arm.paging import page_body
from rehearsal.arm.responses import encode
from rehearsal.arm.url_paths import ListPath
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instance_network import INSTANCE
from rehearsal.azure.compute.repairs import set_health
from rehearsal.azure.errors import AzureError
from rehearsal.azure.scenario import Scenario

URL = "https://127.0.0.1:1/pool"
LIST = ListPath(SET, INSTANCE)
QUERIES: tuple[dict[str, str], ...] = ({"api-version": "2026-04-01"}, {"api-version": "2026-04-01", "$expand": "instanceView"})
MACHINES = 4
FAULTS = Scenario.model_validate(
    {
        "bad_hosts": [{"share": 0.2}],
        "host_failures": [{"per_instance_day": 20.0}],
        "failed_provisioning": [{"rate": 0.2, "code": "OSProvisioningTimedOut"}],
    }
)
MODELS: tuple[dict[str, Any], ...] = (
    {},
    {f"{STORAGE}__imageReference": image("2.0.0")},
    {f"{STORAGE}__dataDisks": [{"lun": 0, "createOption": "Empty", "diskSizeGB": 8}]},
    {f"{PROFILE}__osProfile__customData": "b3RoZXI="},
    {NICS: [nic("nic", True, ip_configurations(3))]},
    {NICS: [nic("a", True, ip_configurations(1)), nic("b", False, ip_configurations(1))]},
)
NUMBERS = st.integers(0, MACHINES + 1)
ACTIONS = st.sampled_from(["restart", "reimage", "redeploy", "deallocate", "powerOff", "start", "simulateEviction"])
STEPS = st.one_of(
    st.tuples(st.just("act"), NUMBERS, ACTIONS),
    st.tuples(st.just("delete"), NUMBERS),
    st.tuples(st.just("upgrade"), NUMBERS),
    st.tuples(st.just("protect"), NUMBERS, st.booleans(), st.dictionaries(st.sampled_from(["a", "b"]), st.text(max_size=3), max_size=1)),
    st.tuples(st.just("put"), st.integers(0, MACHINES + 2), st.sampled_from(MODELS), st.sampled_from(["Manual", "Automatic", "Rolling"])),
    st.tuples(st.just("tag"), st.text(max_size=3)),
    st.tuples(st.just("health"), NUMBERS, st.sampled_from(["Healthy", "Unhealthy"])),
    st.tuples(st.just("advance"), st.sampled_from([0.0, 0.5, 7.0, 61.0, 600.0, 90_000.0])),
    st.tuples(st.just("event")),
    st.tuples(st.just("replace")),
)
# A page is read after some changes only: another may undo one before the next page.
HISTORIES = st.lists(st.tuples(STEPS, st.booleans()), max_size=20)


def apply(cloud: Cloud, step: tuple[Any, ...]) -> None:
    """Make one change; a refused one is one, too."""
    try:
        match step:
            case "act", number, action:
                ask(cloud, "POST", vm(number), action=action)
            case "delete", number:
                ask(cloud, "DELETE", vm(number))
            case "upgrade", number:
                ask(cloud, "POST", SET, {"instanceIds": [str(number)]}, "manualUpgrade")
            case "protect", number, held, tags:
                policy = {"protectFromScaleIn": held, "protectFromScaleSetActions": False}
                ask(cloud, "PUT", vm(number), {"location": "swedencentral", "tags": tags, "properties": {"protectionPolicy": policy}})
            case "put", capacity, changes, mode:
                ask(cloud, "PUT", SET, watched(capacity, **{"upgradePolicy__mode": mode, **changes}))
            case "tag", value:
                ask(cloud, "PATCH", SET, {"tags": {"n": value}})
            case "health", number, health:
                set_health(cloud, cloud.get(SET), str(number), health)
            case "advance", seconds:
                cloud.advance(cloud.now + seconds)
            case ("event",):
                cloud.step(cloud.events.next_at() or cloud.now)
            case ("replace",):
                delete(cloud, SET)
                put(cloud, SET, watched(MACHINES))
    except AzureError:
        pass


def watched(capacity: int, **properties: Any) -> dict[str, Any]:
    return body(capacity, **{f"{PROFILE}__extensionProfile": {"extensions": [HEALTH]}, **properties})


def computed(cloud: Cloud, query: dict[str, str]) -> bytes:
    """The page as it is computed anew for lists of any type."""
    return encode(page_body(cloud.list(SET, INSTANCE), query, URL, cloud)).encode()


@settings(max_examples=120)
@given(HISTORIES)
@example(
    [
        (("put", 4, MODELS[0], "Manual"), False),
        (("advance", 600.0), True),
        (("put", 4, MODELS[3], "Manual"), False),
        (("advance", 600.0), True),
    ]
)
@example([(("put", 4, MODELS[1], "Rolling"), True), *[(("event",), True)] * 12])
@example([(("tag", "\u20ac"), True), (("replace",), True), (("put", 2, MODELS[5], "Automatic"), True), (("advance", 600.0), True)])
def test_stored_pages_are_equal_to_computed_ones_after_any_history(history: list[tuple[tuple[Any, ...], bool]]) -> None:
    cloud = made(MACHINES, FAULTS, **{f"{PROFILE}__extensionProfile": {"extensions": [HEALTH]}})
    pages = InstancePages()
    for step, read in ((("advance", 0.0), True), *history, (("advance", 0.0), True)):
        apply(cloud, step)
        for query in QUERIES:
            if read and cloud.find(SET) is not None:
                assert pages.page(cloud, LIST, query, URL) == computed(cloud, query)


def test_pages_follow_each_other_as_those_of_other_lists_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance_pages, "STORED", 150)
    cloud, pages = made(230), InstancePages()
    cloud.advance(cloud.now + 3_600)
    for query in QUERIES:
        token, shown = {}, 0
        for removed in ((), (99, 100, 3), ()):
            for number in removed:
                delete(cloud, vm(number))
            page = pages.page(cloud, LIST, query | token, URL)
            assert page == computed(cloud, query | token)
            told = json.loads(page)
            shown += len(told["value"])
            token = {"$skiptoken": told["nextLink"].rpartition("$skiptoken=")[2]} if "nextLink" in told else {}
        assert (shown > 200, token) == (True, {})


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (LIST, {"$filter": "name eq 'x'"}),
        (ListPath(SET.rpartition("/")[0], INSTANCE), {}),
        (ListPath(SET, f"{INSTANCE}/networkInterfaces"), {}),
    ],
)
def test_any_other_list_is_not_stored(path: ListPath, query: dict[str, str]) -> None:
    assert InstancePages().page(made(1), path, query, URL) is None
