"""The protocol itself, before any provider's own work: what every call answers, garbage included."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from provider_process import Client, ProviderCallError, urn_of
from pulumi.runtime.proto import plugin_pb2, provider_pb2

from rehearsal.program.graph import Secret
from rehearsal.program.pulumi_values import UNKNOWN, Json, decode, encode
from rehearsal.pulumi_cli.providers.engine_client import EngineClient
from rehearsal.pulumi_cli.providers.grpc_service import UNSUPPORTED_CALLS
from rehearsal.pulumi_cli.providers.provider_interface import (
    ChangeKind,
    CheckFailure,
    CheckRequest,
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    InitializationError,
    PropertyChange,
    Provider,
    ProviderError,
    ReadRequest,
    ReadResult,
    UpdateRequest,
)
from rehearsal.pulumi_cli.providers.server import start

BOX = "shelf:index:Box"


class Shelf(Provider):
    """A provider of boxes in memory."""

    package, version, autonaming = "shelf", "1.2.3", True

    def __init__(self, engine: EngineClient) -> None:
        super().__init__(engine)
        self.boxes: dict[str, Json] = {}
        self.asked: list[Any] = []

    async def configure(self, config: Json) -> None:
        if "room" not in config:
            raise ProviderError("the shelf stands in no room; set room")

    async def check(self, request: CheckRequest) -> CheckResult:
        self.asked.append(request)
        return CheckResult(request.new, [] if "size" in request.new else [CheckFailure("size", "is missing")])

    async def diff(self, request: DiffRequest) -> DiffResult:
        changed = request.old_inputs.get("size") != request.new.get("size")
        return DiffResult(
            {"size": PropertyChange(ChangeKind.UPDATE, replace=True), "labels[0]": PropertyChange(ChangeKind.ADD)} if changed else {},
            delete_first=True,
        )

    async def create(self, request: CreateRequest) -> CreateResult:
        self.asked.append(request)
        if request.inputs.get("size") == "broken":
            raise InitializationError("box-1", {"size": Secret("broken")}, request.inputs, ["the lid is missing", "the bottom too"])
        if request.inputs.get("size") == "odd":
            raise ZeroDivisionError("hush")
        return CreateResult("" if request.preview else "box-1", request.inputs)

    async def read(self, request: ReadRequest) -> ReadResult | None:
        return None if request.id == "gone" else ReadResult(request.id, {"size": 1}, request.inputs or {"size": 1})

    async def update(self, request: UpdateRequest) -> Mapping[str, Any]:
        return {**request.old_outputs, **request.new}

    async def delete(self, request: DeleteRequest) -> None:
        if request.id == "stuck":
            raise ProviderError("the box is nailed to the shelf")

    async def invoke(self, token: str, arguments: Json) -> Mapping[str, Any]:
        return {"token": token, **arguments}

    async def cancel(self) -> None:
        self.boxes.clear()


@pytest.fixture
def shelf() -> Iterator[tuple[Client, Shelf]]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(10)

    async def begin() -> tuple[Any, int, Shelf]:
        provider = Shelf(EngineClient())
        return *await start(provider), provider

    server, port, provider = run(begin())
    client = Client(port)
    yield client, provider
    client.close()
    run(server.stop(None))
    run(provider.close())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_the_engine_is_told_what_the_provider_understands(shelf: tuple[Client, Shelf]) -> None:
    client, _ = shelf
    result = client.call("Handshake", provider_pb2.ProviderHandshakeRequest(engine_address=""))
    assert result.accept_secrets
    assert result.supports_autonaming_configuration
    assert not result.accept_resources, "the engine sends ids in their place"
    assert client.call("GetPluginInfo", empty_pb2.Empty()).version == "1.2.3"
    assert client.call("Attach", plugin_pb2.PluginAttach(address="")) == empty_pb2.Empty()
    answer = client.call("Configure", provider_pb2.ConfigureRequest(args=encode({"room": "a"})))
    assert answer.acceptSecrets
    assert answer.supportsPreview


def test_a_configuration_is_kept_compared_and_refused_in_one_sentence(shelf: tuple[Client, Shelf]) -> None:
    client, _ = shelf
    assert decode(client.call("CheckConfig", provider_pb2.CheckRequest(urn="x", news=encode({"room": UNKNOWN}))).inputs) == {
        "room": UNKNOWN
    }
    request = provider_pb2.DiffRequest(old_inputs=encode({"room": "a", "b": 1}), news=encode({"room": "c", "d": Secret(2)}))
    found = client.call("DiffConfig", request)
    assert not found.replaces
    assert {path: one.kind for path, one in found.detailedDiff.items()} == {"b": 2, "d": 0, "room": 4}
    same = provider_pb2.DiffRequest(old_inputs=encode({"room": "a"}), news=encode({"room": "a"}))
    assert client.call("DiffConfig", same).changes == 1
    with pytest.raises(ProviderCallError, match="set room"):
        client.call("Configure", provider_pb2.ConfigureRequest(args=encode({})))
    client.call("Configure", provider_pb2.ConfigureRequest(variables={"shelf:config:room": "a"}))
    assert client.invoke("f", {"a": 1}) == {"token": "f", "a": 1}


def test_nothing_is_made_before_the_provider_is_configured_but_in_a_preview(shelf: tuple[Client, Shelf]) -> None:
    client, _ = shelf
    for call in (
        lambda: client.create(BOX, {"size": 1}),
        lambda: client.update(BOX, "box-1", {}, {}, {}),
        lambda: client.delete(BOX, "box-1", {}, {}),
        lambda: client.read(BOX, "box-1"),
        lambda: client.invoke("f", {}),
    ):
        with pytest.raises(ProviderCallError) as failed:
            call()
        assert failed.value.code is grpc.StatusCode.FAILED_PRECONDITION
    assert client.create(BOX, {"size": UNKNOWN}, preview=True) == ("", {"size": UNKNOWN})


@pytest.fixture
def ready(shelf: tuple[Client, Shelf]) -> tuple[Client, Shelf]:
    shelf[0].configure(room="a")
    return shelf


def test_each_call_reaches_the_provider_and_its_answer_the_engine(ready: tuple[Client, Shelf]) -> None:
    client, provider = ready
    assert client.check(BOX, {"size": Secret(1)}, old={"size": 2}, name="mine") == ({"size": Secret(1)}, [])
    seen = provider.asked[-1]
    assert (seen.type, seen.name, seen.old, seen.seed, seen.naming) == (BOX, "mine", {"size": 2}, b"seed", None)
    assert client.check(BOX, {})[1] == ["is missing"]
    assert client.create(BOX, {"size": Secret(3)}, timeout=5) == ("box-1", {"size": Secret(3)})
    assert provider.asked[-1].timeout == 5
    assert client.update(BOX, "box-1", {}, {"a": 1}, {"size": 2}) == {"a": 1, "size": 2}
    assert client.read(BOX, "box-1") == ("box-1", {"size": 1}, {"size": 1})
    assert client.read(BOX, "gone") == ("", {}, {})
    client.delete(BOX, "box-1", {}, {})
    found = client.diff(BOX, {"size": 1}, {"size": 2})
    assert (list(found.replaces), list(found.diffs), found.deleteBeforeReplace) == (["size"], ["size", "labels"], True)
    nothing = client.diff(BOX, {"size": 1}, {"size": 1})
    assert (nothing.changes, nothing.deleteBeforeReplace, nothing.hasDetailedDiff) == (1, False, True)
    client.call("Cancel", empty_pb2.Empty())


def test_a_half_made_resource_is_handed_over_with_its_reasons(ready: tuple[Client, Shelf]) -> None:
    with pytest.raises(ProviderCallError) as failed:
        ready[0].create(BOX, {"size": "broken"})
    half_made = failed.value.half_made
    assert half_made is not None
    assert (half_made.id, list(half_made.reasons)) == ("box-1", ["the lid is missing", "the bottom too"])
    assert decode(half_made.properties) == {"size": Secret("broken")}
    assert decode(half_made.inputs) == {"size": "broken"}


def test_a_failure_is_one_sentence_and_a_fault_leaves_the_process_alive(ready: tuple[Client, Shelf]) -> None:
    client, _ = ready
    with pytest.raises(ProviderCallError, match="nailed to the shelf"):
        client.delete(BOX, "stuck", {}, {})
    with pytest.raises(ProviderCallError) as fault:
        client.create(BOX, {"size": "odd"})
    assert fault.value.code is grpc.StatusCode.INTERNAL
    assert fault.value.sentence.startswith("Create: internal error of the provider, ZeroDivisionError at test_provider_calls.py:")
    assert "\n" not in fault.value.sentence
    assert "hush" not in fault.value.sentence, "it may quote a secret"
    assert client.create(BOX, {"size": 1})[0] == "box-1"


@pytest.mark.parametrize("name", sorted(UNSUPPORTED_CALLS))
def test_a_call_that_is_not_served_says_why(ready: tuple[Client, Shelf], name: str) -> None:
    with pytest.raises(ProviderCallError) as failed:
        ready[0].raw(name, b"", streaming=name == "List")
    assert failed.value.code is grpc.StatusCode.UNIMPLEMENTED
    assert failed.value.sentence == f"shelf does not serve {name}: {UNSUPPORTED_CALLS[name]}"


REQUESTS = {
    "urn": lambda client: client.call("Create", provider_pb2.CreateRequest(urn="nonsense")),
    "no id": lambda client: client.call("Read", provider_pb2.ReadRequest(urn=urn_of(BOX, "a"))),
    "no id to delete": lambda client: client.call("Delete", provider_pb2.DeleteRequest(urn=urn_of(BOX, "a"))),
    "unknown": lambda client: client.create(BOX, {"size": [{"a": UNKNOWN}]}),
    "unknown update": lambda client: client.update(BOX, "i", {}, {}, {"size": Secret(UNKNOWN)}),
    "asset": lambda client: client.check(BOX, {"a": {"4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17"}}),
}


@pytest.mark.parametrize("what", REQUESTS)
def test_a_request_that_makes_no_sense_is_refused(ready: tuple[Client, Shelf], what: str) -> None:
    with pytest.raises(ProviderCallError) as failed:
        REQUESTS[what](ready[0])
    assert failed.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "\n" not in failed.value.sentence


METHODS = sorted(method.name for method in provider_pb2.DESCRIPTOR.services_by_name["ResourceProvider"].methods)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(METHODS), content=st.binary(max_size=60))
def test_whatever_bytes_come_they_are_answered_or_refused_in_a_sentence(ready: tuple[Client, Shelf], name: str, content: bytes) -> None:
    sentence, code = "", None
    try:
        ready[0].raw(name, content, streaming=name == "List")
    except ProviderCallError as failed:
        sentence, code = failed.sentence, failed.code
    assert "\n" not in sentence
    assert code in (None, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN), sentence
    assert bool(sentence) == (code is not None)
