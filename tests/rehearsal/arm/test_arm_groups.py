"""Resource groups through the official client: made, listed over pages, looked for, deleted by a poller."""

from __future__ import annotations

import pytest
from arm_server import LOCATION, ArmServer
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

VERSION = "api-version=2025-04-01"


def test_a_group_is_made_found_changed_and_deleted(server: ArmServer) -> None:
    groups = server.resources().resource_groups
    assert not groups.check_existence("round-trip")
    made = groups.create_or_update("round-trip", {"location": LOCATION, "tags": {"team": "a"}})
    assert (made.name, made.location, made.tags, made.properties.provisioning_state) == ("round-trip", LOCATION, {"team": "a"}, "Succeeded")
    assert groups.check_existence("ROUND-trip")
    assert groups.update("round-trip", {"tags": {"team": "b"}}).tags == {"team": "b"}
    groups.begin_delete("round-trip").result()
    with pytest.raises(ResourceNotFoundError) as missing:
        groups.get("round-trip")
    assert missing.value.error.code == "ResourceGroupNotFound"


def test_a_group_that_is_not_there_is_not_found_by_who_deletes_it(server: ArmServer) -> None:
    with pytest.raises(ResourceNotFoundError) as missing:
        server.resources().resource_groups.begin_delete("never-made").result()
    assert missing.value.error.code == "ResourceGroupNotFound"


def test_a_long_list_comes_in_pages_and_each_group_once(server: ArmServer) -> None:
    groups = server.resources().resource_groups
    names = {f"page-{number:03}" for number in range(230)}
    for name in sorted(names):
        groups.create_or_update(name, {"location": LOCATION})
    pages = [[one.name for one in page] for page in groups.list().by_page()]
    result = [name for page in pages for name in page]
    assert len(pages) >= 3
    assert max(len(page) for page in pages) <= 100
    assert len(result) == len(set(result))
    assert names <= set(result)


def test_a_list_goes_on_where_it_was_although_what_was_told_last_is_gone(server: ArmServer) -> None:
    token, path = server.token(), f"/subscriptions/{server.subscription}/resourcegroups?{VERSION}"
    for number in range(150):
        server.ask(
            "PUT", f"/subscriptions/{server.subscription}/resourcegroups/gone-{number:03}?{VERSION}", {"location": LOCATION}, token=token
        )
    _, first, _ = server.ask("GET", path, token=token)
    server.ask("DELETE", f"{first['value'][-1]['id']}?{VERSION}", token=token)
    _, second, _ = server.ask("GET", first["nextLink"], token=token)
    assert not {one["id"] for one in first["value"]} & {one["id"] for one in second["value"]}


@pytest.mark.parametrize(
    ("method", "tail", "status", "code"),
    [
        ("GET", "", 400, "MissingApiVersionParameter"),
        ("GET", "?api-version=1999-01-01", 400, "InvalidApiVersionParameter"),
        ("PUT", f"?{VERSION}", 400, "InvalidRequestContent"),
        ("PATCH", f"?{VERSION}", 404, "ResourceGroupNotFound"),
        ("OPTIONS", f"?{VERSION}", 405, "MethodNotAllowed"),
        ("POST", f"/frobnicate?{VERSION}", 400, "NotModelled"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_azures_code(server: ArmServer, method: str, tail: str, status: int, code: str) -> None:
    path = f"/subscriptions/{server.subscription}/resourcegroups/nowhere{tail}"
    result = server.ask(method, path, None if method in ("GET", "PUT") else {}, token=server.token())
    assert (result[0], result[1]["error"]["code"]) == (status, code)


def test_an_unknown_property_a_wrong_type_and_an_unknown_provider_are_refused(server: ArmServer) -> None:
    client = server.resources()
    with pytest.raises(HttpResponseError, match="bogus"):
        client.resource_groups.create_or_update("strict", {"location": LOCATION, "bogus": 1})
    with pytest.raises(HttpResponseError) as wrong:
        client.resource_groups.create_or_update("strict", {"location": {"a": 1}})
    assert wrong.value.status_code == 400
    token = server.token()
    path = f"/subscriptions/{server.subscription}/providers/Microsoft.Nowhere/things?api-version=2024-01-01"
    assert server.ask("GET", path, token=token)[1]["error"]["code"] == "NotModelled"


def test_another_subscription_is_not_found(server: ArmServer) -> None:
    token = server.token()
    elsewhere = "/subscriptions/99999999-9999-9999-9999-999999999999"
    for path in ("", "/resourcegroups", "/resources", "/providers", "/locations", "/providers/Microsoft.Compute/virtualMachines"):
        version = "2024-11-01" if "Compute" in path else "2025-04-01"
        status, body, _ = server.ask("GET", f"{elsewhere}{path}?api-version={version}", token=token)
        assert (status, body["error"]["code"]) == (404, "SubscriptionNotFound"), path


def test_an_etag_that_is_not_the_present_one_changes_nothing(server: ArmServer) -> None:
    token, path = server.token(), f"/subscriptions/{server.subscription}/resourcegroups/tagged?{VERSION}"
    server.ask("PUT", path, {"location": LOCATION}, token=token)
    _, _, headers = server.ask("GET", path, token=token)
    assert server.ask("PUT", path, {"location": LOCATION, "tags": {"a": "1"}}, token=token, headers={"If-None-Match": "*"})[0] == 412
    assert server.ask("PUT", path, {"location": LOCATION, "tags": {"a": "1"}}, token=token, headers={"If-Match": 'W/"other"'})[0] == 412
    assert "tags" not in server.ask("GET", path, token=token)[1]
    changed = server.ask("PUT", path, {"location": LOCATION, "tags": {"a": "1"}}, token=token, headers={"If-Match": headers["ETag"]})
    assert (changed[0], changed[1]["tags"]) == (200, {"a": "1"})
