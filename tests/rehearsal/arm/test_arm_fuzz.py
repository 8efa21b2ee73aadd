"""Fuzzed requests to a complete region never fail the server; a refused one changes nothing, and an accepted one is accepted again."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from azure_types import UnknownResourceTypeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published import FOLDER, answer_faults, needs_published_types, published_types
from published_bodies import ODD, bodies

from rehearsal.arm import attested_data
from rehearsal.arm.http_request import HttpRequest
from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.server import AzureServer
from rehearsal.arm.time_source import TimeSource
from rehearsal.arm.tokens import ClientIdentity, IdentityPlatform
from rehearsal.azure.api_versions import api_versions
from rehearsal.azure.arm_id import GROUP_TYPE, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.persistence import dump, open_cloud
from rehearsal.azure.state_directory import StateDirectory

BASE = "https://127.0.0.1:1"
SET, INSTANCE = "Microsoft.Compute/virtualMachineScaleSets", "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"


def saved_state(cloud: Cloud) -> str:
    """Everything that is kept of an Azure but the count of calls."""
    return json.dumps({**dump(cloud), "gates": {}})


class Region:
    """A region that is up, served in this process, and as it was again whenever something has changed it."""

    def __init__(self, brought_up: Path, folder: Path) -> None:
        self.brought_up, self.folder = brought_up, folder
        self.identity = ClientIdentity.load_or_create(folder)
        self.directory: StateDirectory | None = None
        self.begin()

    def begin(self) -> None:
        """Be as it was when it was brought up."""
        if self.directory is not None:
            self.directory.close()
        shutil.rmtree(self.folder / "state", ignore_errors=True)
        shutil.copytree(self.brought_up, self.folder / "state")
        self._open()
        self.before = saved_state(self.cloud)
        self.ids = frozenset(targets(self))

    def _open(self) -> None:
        self.directory = StateDirectory(self.folder / "state")
        self.cloud = open_cloud(self.directory, lambda: pytest.fail("nothing was kept"))
        self.live = LiveModel(self.cloud, TimeSource(0.0, self.cloud.now), self.directory)
        self.server = AzureServer(
            self.live, IdentityPlatform(self.cloud.tenant, BASE, self.identity), lambda: attested_data.create(datetime.now(UTC))
        )
        token = self.server.tokens.issue(self.identity.client, BASE)["access_token"]
        self.headers = {"Authorization": f"Bearer {token}"}

    def ask(self, method: str, path: str, body: Any, **query: str) -> int:
        """Send one request, and hold it to what every request is held to: its status."""
        content = b"" if body is None else json.dumps(body).encode()
        call = HttpRequest(method, tuple(path.strip("/").split("/")), path, query, self.headers, content)
        answer = self.server.answer(call)
        assert answer.status < 500
        if answer.status >= 400:
            assert isinstance(answer.body, bytes)
            error = json.loads(answer.body)["error"]
            assert error["code"]
            assert error["message"]
        elif method in ("PUT", "PATCH", "GET") and answer.status != 202 and path in self.ids:
            assert isinstance(answer.body, bytes)
            assert published_faults(parse(path).type, query.get("api-version", ""), json.loads(answer.body)) == []
        now = saved_state(self.cloud)
        if answer.status >= 400:
            assert now == self.before
        elif now != self.before:
            self._accepted(now)
        return answer.status

    def _accepted(self, now: str) -> None:
        """Read back, it is the same; and a day later nothing has failed."""
        assert self.directory is not None
        self.directory.close()
        self._open()
        assert saved_state(self.cloud) == now
        self.cloud.advance(self.cloud.now + 86_400)
        self.begin()


@pytest.fixture(scope="module")
def region(brought_up: Path) -> Iterator[Region]:
    with tempfile.TemporaryDirectory() as folder:
        made = Region(brought_up, Path(folder))
        yield made
        assert made.directory is not None
        made.directory.close()


def published_faults(arm_type: str, version: str, body: Any) -> list[str]:
    """List the differences of a response from Azure's published types; return nothing if the types are absent or lack this type."""
    try:
        return answer_faults(arm_type, version, body) if FOLDER.is_dir() else []
    except UnknownResourceTypeError:
        return []


def targets(region: Region) -> list[str]:
    """Ids of every resource, and of some instances."""
    sets = [one for one in region.cloud.resources.values() if one.id.type == SET]
    return [
        *(one.id.text for one in region.cloud.resources.values()),
        *(f"{one.id.text}/virtualMachines/{n}" for one in sets for n in (0, 1, 99)),
    ]


def answered(region: Region, text: str) -> Any:
    found = region.cloud.find(text)
    return deepcopy(found.sent) if found is not None else {}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything inside a body."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def put_at(body: Any, path: tuple[Any, ...], value: Any) -> None:
    for step in path[:-1]:
        body = body[step]
    body[path[-1]] = value


REQUESTS = int(os.environ.get("GPUFLEET_FUZZ_REQUESTS", "100"))
"""Requests of each test; a complete run has 1,250, which are 5,000 of all four."""
FUZZED = settings(
    max_examples=REQUESTS, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)


@needs_published_types
@FUZZED
@given(st.data())
def test_a_body_made_of_a_published_type_is_taken_or_refused(region: Region, data: st.DataObject) -> None:
    ids = targets(region)
    text = data.draw(st.sampled_from(ids))
    arm_type = parse(text).type
    version = data.draw(st.sampled_from(api_versions(arm_type)))
    try:
        file, kind = published_types().body_of(arm_type, version)
    except UnknownResourceTypeError:
        return
    body = data.draw(bodies(file, kind, ids))
    if isinstance(body, dict):
        body.pop("name", None)
    place = data.draw(st.sampled_from([text, f"{text}2"]))
    method = data.draw(st.sampled_from(["PUT", "PUT", "PATCH"]))
    region.ask(method, place, body, **{"api-version": version})


@FUZZED
@given(st.data())
def test_a_body_that_was_good_with_one_thing_changed_is_taken_or_refused(region: Region, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(targets(region)))
    body = answered(region, text)
    inside = list(places(body))
    if inside:
        put_at(body, data.draw(st.sampled_from(inside)), data.draw(ODD))
    method = data.draw(st.sampled_from(["PUT", "PUT", "PATCH"]))
    place = data.draw(st.sampled_from([text, f"{text.rpartition('/')[0]}/other"]))
    region.ask(method, place, body, **{"api-version": api_versions(parse(text).type)[-1]})


@FUZZED
@given(st.data())
def test_any_action_and_any_delete_is_taken_or_refused(region: Region, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(targets(region)))
    arm_type = parse(text).type
    kind = region.cloud.resource_types[arm_type.lower()]
    instance_actions = ("restart", "reimage", "redeploy", "poweroff", "deallocate", "start", "simulateeviction", "performmaintenance")
    names = [*kind.actions, *kind.gets, *(instance_actions if arm_type == INSTANCE else ()), "frobnicate", "providers", "x/y"]
    method = data.draw(st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "HEAD", "TRACE"]))
    tail = f"/{data.draw(st.sampled_from(names))}" if method in ("POST", "GET") else ""
    numbers = st.lists(st.sampled_from(["0", "1", "99", "*", "", "x"]) | ODD, max_size=3)
    known = {"instanceIds": numbers, "force": ODD, "tempDisk": ODD, "serviceName": ODD, "action": ODD, "keyName": ODD, "commandId": ODD}
    body = data.draw(st.none() | st.just({}) | st.fixed_dictionaries({}, optional=known))
    query = data.draw(
        st.fixed_dictionaries({}, optional={"forceDeletion": TRUTHS, "$expand": WORDS, "$filter": WORDS, "hibernate": TRUTHS})
    )
    region.ask(method, text + tail, body, **{"api-version": api_versions(arm_type)[-1], **query})


TRUTHS = st.sampled_from(["true", "false", "", "maybe"])
WORDS = st.sampled_from(["instanceView", "userData", "", "name eq 'x'", "tagName eq 'a' and tagValue eq 'b'", "x eq", "'", "atScope()"])


@FUZZED
@given(st.data())
def test_any_list_is_answered_or_refused(region: Region, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(targets(region)))
    arm_id = parse(text)
    scope = data.draw(
        st.sampled_from([text.rpartition("/")[0], f"/subscriptions/{arm_id.subscription}/resources", f"{arm_id.group_id}/resources"])
    )
    version = api_versions("Microsoft.Resources/resources" if scope.endswith("/resources") else arm_id.type)[-1]
    token = data.draw(st.sampled_from(["", "AAAA", "WzEsICIvIl0=", "W10=", "\u00e9", "WzEsIDJd"]))
    query = data.draw(st.fixed_dictionaries({}, optional={"$filter": WORDS, "$top": WORDS, "$skiptoken": st.just(token)}))
    region.ask("GET", scope, None, **{"api-version": version, **query})


def test_every_group_can_be_asked_to_go_at_any_time(region: Region) -> None:
    for text in [one.id.text for one in region.cloud.resources.values() if one.id.type == GROUP_TYPE]:
        region.ask("DELETE", text, None, **{"api-version": "2025-04-01"})
