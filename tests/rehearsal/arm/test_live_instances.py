"""The program counts live instances with one reader for Azure and for the embedded Azure, and takes nothing unreadable for zero."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from arm_server import ArmServer
from fleet_made import make_network, scale_set

from components import live_instances
from components.live_instances import READ_INSTANCES, ArmInstances, UnreadableInstancesError

READ = """
import asyncio, json, os, sys
from components.live_instances import ArmInstances, UnreadableInstancesError

async def token():
    return os.environ["TOKEN"]

async def main():
    for path in sys.argv[1:]:
        try:
            print(json.dumps(await ArmInstances(token, os.environ["ARM_METADATA_HOST"])(path)))
        except UnreadableInstancesError as error:
            print(json.dumps(str(error)))

asyncio.run(main())
"""
MACHINES = 230


def read(server: ArmServer, token: str, *ids: str) -> list[Any]:
    """Return what a program with the settings of a served Azure reads: states, or a message."""
    settings = {"ARM_METADATA_HOST": server.base.removeprefix("https://"), "SSL_CERT_FILE": server.authority, "TOKEN": token}
    words = [sys.executable, "-c", READ, *ids]
    done = subprocess.run(words, env=os.environ | settings, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def scale_set_id(server: ArmServer) -> str:
    subnet = make_network(server, "guarded")
    sets = server.compute().virtual_machine_scale_sets
    return str(sets.begin_create_or_update("guarded", "pool", scale_set(subnet, MACHINES)).result().id)


def test_all_pages_are_read_and_deleted_instances_no_longer(server: ArmServer, scale_set_id: str) -> None:
    assert read(server, server.token(), scale_set_id) == [["Succeeded"] * MACHINES]
    server.compute().virtual_machine_scale_sets.begin_delete_instances("guarded", "pool", {"instanceIds": ["0", "7"]}).result()
    assert read(server, server.token(), scale_set_id) == [["Succeeded"] * (MACHINES - 2)]


def test_a_refused_sign_in_and_a_missing_scale_set_are_no_empty_scale_sets(server: ArmServer, scale_set_id: str) -> None:
    (unauthorized,) = read(server, "none", scale_set_id)
    assert unauthorized.startswith("Azure answered 401 ")
    assert unauthorized.endswith(
        f"give the account that runs pulumi the action {READ_INSTANCES}, which Owner, Contributor and Reader include"
    )
    (missing,) = read(server, server.token(), f"{scale_set_id}-2")
    assert missing.startswith("Azure answered 404 ResourceNotFound: ")
    assert missing.endswith("; if the scale set was deleted by hand, run pulumi refresh first")


Answer = Callable[[web.Request], web.Response]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait milliseconds where Azure would be given seconds."""
    monkeypatch.setattr(live_instances, "FIRST_DELAY", 0.001)


def message(monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> str:
    """Return the error for a host with these answers, the last one again and again."""

    async def main() -> None:
        left = list(answers)

        async def handle(request: web.Request) -> web.Response:
            return (left.pop(0) if len(left) > 1 else left[0])(request)

        application = web.Application()
        application.router.add_get("/{path:.*}", handle)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        monkeypatch.setattr(live_instances, "PUBLIC_AZURE", f"http://127.0.0.1:{runner.addresses[0][1]}")
        try:
            await ArmInstances(_token)("/subscriptions/s/set")
        finally:
            await runner.cleanup()

    with pytest.raises(UnreadableInstancesError) as caught:
        asyncio.run(main())
    return str(caught.value)


async def _token() -> str:
    return "token"


def page(link: str | None = None) -> Answer:
    """Return the answer with one instance and a link, in which BASE is the host."""
    item = {"properties": {"provisioningState": "Succeeded"}}
    return lambda request: web.json_response({"value": [item], "nextLink": link and link.replace("BASE", str(request.url.origin()))})


def refused(status: int, **headers: str) -> Answer:
    body = {"error": {"code": "TooManyRequests", "message": "slow\ndown."}}
    return lambda _request: web.json_response(
        body, status=status, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


@pytest.mark.parametrize(
    ("answers", "start"),
    [
        ((refused(429),), "Azure answered 429 TooManyRequests: slow down; run"),
        ((refused(429, Retry_After="3600"),), "Azure answered 429 TooManyRequests: slow down; run"),
        ((page("BASE/next"), refused(503)), "Azure answered 503 TooManyRequests: slow down; run"),
        ((page("BASE/next"),), "Azure returned an invalid link to the next page of instances of /subscriptions/s/set; "),
        (
            (page("https://elsewhere.example/next"),),
            "Azure returned an invalid link to the next page of instances of /subscriptions/s/set; ",
        ),
        ((lambda _: web.Response(text="<html>"),), "the answer of http://127.0.0.1:"),
        ((lambda _: web.json_response({}),), "Azure listed instances of /subscriptions/s/set without their provisioning states; "),
        ((lambda _: web.json_response({"value": [{"properties": {}}]}),), "Azure listed instances of /subscriptions/s/set without"),
        ((lambda _: web.Response(status=502, text="bad gateway"),), "Azure answered 502 without an error code: bad gateway; run"),
    ],
)
def test_an_incomplete_reading_is_an_error(monkeypatch: pytest.MonkeyPatch, answers: tuple[Answer, ...], start: str) -> None:
    assert message(monkeypatch, *answers).startswith(start)


def test_a_host_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_instances, "PUBLIC_AZURE", "http://127.0.0.1:1")
    with pytest.raises(UnreadableInstancesError, match=r"^http://127.0.0.1:1/.* cannot be reached: .*; run the command again"):
        asyncio.run(ArmInstances(_token)("/subscriptions/s/set"))
