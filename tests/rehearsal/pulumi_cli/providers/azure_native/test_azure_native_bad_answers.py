"""Wrong or missing responses of Azure: the provider reports them, and forgets no resource that may exist."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from rehearsal.azure.azure_native_requests import RETRIES
from rehearsal.program.pulumi_values import Json
from rehearsal.pulumi_cli.providers.azure_native.arm_client import ResourceManagerClient
from rehearsal.pulumi_cli.providers.azure_native.inputs_and_outputs import refreshed_inputs
from rehearsal.pulumi_cli.providers.azure_native.provider import AzureNative
from rehearsal.pulumi_cli.providers.azure_native.resource_operations import ResourceOperations
from rehearsal.pulumi_cli.providers.azure_native.resource_types import resource_type_of
from rehearsal.pulumi_cli.providers.azure_native.sign_in import AzureEndpoints, AzureSettings, ServicePrincipal
from rehearsal.pulumi_cli.providers.engine_client import EngineClient
from rehearsal.pulumi_cli.providers.provider_interface import CheckRequest, InitializationError, ProviderError

GROUP = resource_type_of("azure-native:resources:ResourceGroup")
INPUTS: Json = {"resourceGroupName": "one", "location": "here"}
PATH = "/subscriptions/s/resourceGroups/one"
BODY = {"id": PATH, "name": "one", "location": "here", "managedBy": "azure", "properties": {"provisioningState": "Succeeded"}}
PACE = 0.0005
"""Real seconds per second of Azure."""

Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def _is_there(_request: web.Request) -> web.StreamResponse:
    return web.json_response(BODY)


async def _drops(request: web.Request) -> web.StreamResponse:
    """Takes the whole of a call and hangs up."""
    await request.read()
    assert request.transport
    request.transport.abort()
    return web.Response()


async def _fails(_request: web.Request) -> web.StreamResponse:
    return web.json_response({"error": {"code": "InternalServerError", "message": "Try later."}}, status=500)


class Azure:
    """Tokens token-1, token-2 and so on, and for each method one way of answering; calls are method and token."""

    def __init__(self, **replies: Reply) -> None:
        self.replies, self.tokens = replies, 0
        self.calls: list[tuple[str, str]] = []

    async def sign_in(self, _request: web.Request) -> web.StreamResponse:
        self.tokens += 1
        return web.json_response({"access_token": f"token-{self.tokens}", "expires_in": 3_600})

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.calls.append((request.method, request.headers["Authorization"].removeprefix("Bearer ")))
        return await self.replies[request.method](request)


def with_client(azure: Azure, work: Callable[[ResourceManagerClient], Coroutine[Any, Any, Any]]) -> Any:
    """Return the result of work with an Azure."""

    async def served() -> Any:
        app = web.Application()
        app.router.add_post("/tenant/oauth2/v2.0/token", azure.sign_in)
        app.router.add_route("*", "/{rest:.*}", azure.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        (address, port) = runner.addresses[0]
        base = f"http://{address}:{port}"
        try:
            async with aiohttp.ClientSession() as session:
                account = ServicePrincipal(
                    session, AzureSettings("", "s", "tenant", "client", "hush", ""), AzureEndpoints(base, base, base)
                )
                return await work(ResourceManagerClient(session, account, base, asyncio.Event(), PACE))
        finally:
            await runner.cleanup()

    return asyncio.run(served())


def created(azure: Azure) -> Json:
    """Outputs of a group that is made."""
    return dict(with_client(azure, lambda client: ResourceOperations(client).write(GROUP, PATH, INPUTS, 30)))


def test_a_token_that_azure_takes_no_more_is_renewed_once() -> None:
    async def put(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] == "Bearer token-1":
            return web.json_response({"error": {"code": "ExpiredAuthenticationToken", "message": "Expired."}}, status=401)
        return web.json_response(BODY)

    azure = Azure(PUT=put, GET=_is_there)
    assert created(azure)["location"] == "here"
    assert azure.calls == [("PUT", "token-1"), ("PUT", "token-2"), ("GET", "token-2")]


def test_an_account_that_azure_never_takes_is_told_so() -> None:
    async def refuse(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": {"code": "InvalidAuthenticationToken", "message": "Who is it?"}}, status=401)

    azure = Azure(PUT=refuse)
    with pytest.raises(ProviderError, match=f"creating {PATH}: InvalidAuthenticationToken: Who is it"):
        created(azure)
    assert len(azure.calls) == 2


def test_a_resource_that_was_made_and_cannot_be_read_is_kept_and_refreshed_to_what_it_was_made_of() -> None:
    azure = Azure(PUT=_is_there, GET=_fails)
    with pytest.raises(InitializationError, match=r"succeeded, but the result cannot be read: reading .*: InternalServerError") as raised:
        created(azure)
    assert (raised.value.id, raised.value.inputs) == (PATH, INPUTS)
    assert [method for method, _ in azure.calls] == ["PUT", *["GET"] * (RETRIES + 1)]
    assert refreshed_inputs(GROUP, INPUTS, raised.value.properties, BODY) == INPUTS, "what Azure added is none of the program's inputs"


@pytest.mark.parametrize(("put", "told"), [(_drops, "Azure cannot be reached"), (_fails, "InternalServerError: Try later")])
def test_a_resource_whose_making_got_no_answer_or_an_error_of_azures_is_looked_for_and_kept(put: Reply, told: str) -> None:
    azure = Azure(PUT=put, GET=_is_there)
    with pytest.raises(InitializationError, match=rf"creating .*: {told}") as raised:
        created(azure)
    assert raised.value.id == PATH
    assert raised.value.properties["managedBy"] == "azure"
    assert {method for method, _ in azure.calls[:-1]} == {"PUT"}
    assert azure.calls[-1][0] == "GET"


@pytest.mark.parametrize(("put", "told"), [(_drops, "Azure cannot be reached"), (_fails, "InternalServerError: Try later")])
def test_a_resource_whose_making_got_no_answer_or_an_error_of_azures_and_that_is_not_there_has_failed(put: Reply, told: str) -> None:
    async def absent(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": {"code": "ResourceGroupNotFound", "message": "No."}}, status=404)

    with pytest.raises(ProviderError, match=told):
        created(Azure(PUT=put, GET=absent))


def test_an_operation_that_tells_nothing_is_not_waited_for_for_ever() -> None:
    async def begun(request: web.Request) -> web.StreamResponse:
        headers = {"Azure-AsyncOperation": f"{request.url.origin()}/operation", "Retry-After": "0"}
        return web.json_response(BODY, status=201, headers=headers)

    async def silent(request: web.Request) -> web.StreamResponse:
        return web.json_response({} if request.path == "/operation" else BODY)

    with pytest.raises(InitializationError, match="/operation does not contain the operation's status"):
        created(Azure(PUT=begun, GET=silent))


def test_a_token_that_says_nothing_of_its_holder_is_told_in_a_sentence() -> None:
    with pytest.raises(ProviderError, match="has no readable claims; does `gpufleet azure` run there"):
        with_client(Azure(), lambda client: client.account.claims())


def test_a_location_that_azure_does_not_tell_is_no_location_that_is_missing() -> None:
    def check(client: ResourceManagerClient) -> Coroutine[Any, Any, Any]:
        provider = AzureNative(EngineClient())
        provider.client = client
        new = {"resourceGroupName": "one", "virtualNetworkName": "net", "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}
        return provider.check(CheckRequest(urn="urn", type="azure-native:network:VirtualNetwork", name="net", old=None, new=new))

    with pytest.raises(ProviderError, match=r"reading .*/resourceGroups/one: InternalServerError: Try later"):
        with_client(Azure(GET=_fails), check)
    assert with_client(Azure(GET=_is_there), check).inputs["location"] == "here"
