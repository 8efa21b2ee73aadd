"""Server of a provider process: it serves the protocol on loopback, prints its port, and ends with the engine or on a signal."""

from __future__ import annotations

import asyncio
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from pulumi.runtime.proto import plugin_pb2, provider_pb2, status_pb2

from rehearsal.program.pulumi_values import ValueFormatError, encode
from rehearsal.pulumi_cli.providers.engine_client import EngineClient
from rehearsal.pulumi_cli.providers.grpc_service import ProviderService
from rehearsal.pulumi_cli.providers.provider_interface import InitializationError, Provider, ProviderError

SERVICE = "pulumirpc.ResourceProvider"
OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
"""Messages may have any length: a stack's outputs exceed gRPC's default limit of 4 MB."""
GRACE_SECONDS = 10.0
"""Seconds that running calls have to end when the process must end."""
SHOWN_FRAMES = 3

ProviderFactory = Callable[[EngineClient], Provider]


def main(factory: ProviderFactory, arguments: Sequence[str]) -> int:
    """Serve a provider as Pulumi starts one: the engine's address may be the last argument. Return the exit status."""
    addresses = [argument for argument in arguments if not argument.startswith("-")]
    return asyncio.run(serve(factory, addresses[-1] if addresses else ""))


async def serve(factory: ProviderFactory, address: str) -> int:
    """Serve until the engine at the address ends or a signal arrives."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    provider = factory(EngineClient(address))
    server, port = await start(provider)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    waiting: list[asyncio.Future[Any]] = [asyncio.ensure_future(ended.wait())]
    if provider.engine.known:
        waiting.append(asyncio.ensure_future(provider.engine.gone()))
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for one in waiting:
        one.cancel()
    await provider.cancel()
    await server.stop(GRACE_SECONDS)
    await provider.close()
    return 0


async def start(provider: Provider) -> tuple[grpc.aio.Server, int]:
    """Start a server of the provider's protocol on a free port of 127.0.0.1; return it with the port."""
    server = grpc.aio.server(options=OPTIONS)
    calls = ProviderService(provider)
    methods = provider_pb2.DESCRIPTOR.services_by_name["ResourceProvider"].methods
    handlers = {method.name: _handler(calls, method) for method in methods}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, port


def _handler(calls: ProviderService, method: Any) -> grpc.RpcMethodHandler:
    message = _message(method.input_type)

    async def unary(content: bytes, context: Any) -> bytes:
        try:
            request = message.FromString(content)
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{method.name}: the content is not a {method.input_type.name}")
        return bytes((await _response(calls.answer(method.name, request), method.name, context)).SerializeToString())

    async def stream(content: bytes, context: Any) -> Any:
        yield await unary(content, context)

    return grpc.unary_stream_rpc_method_handler(stream) if method.server_streaming else grpc.unary_unary_rpc_method_handler(unary)


def _message(descriptor: Any) -> Any:
    found = getattr(provider_pb2, descriptor.name, None) or getattr(plugin_pb2, descriptor.name, None)
    return found or descriptor._concrete_class


async def _response(call: Awaitable[Any], name: str, context: Any) -> Any:
    """Return the response, or abort the call with a one-line message without a traceback."""
    try:
        return await call
    except InitializationError as failed:
        await _abort_initialization(failed, context)
    except ProviderError as failed:
        await context.abort(failed.code, failed.message)
    except ValueFormatError as refused:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{name}: {refused}")
    except Exception as bug:  # noqa: BLE001 the engine needs a response, and the process continues for other resources
        frames = reversed(traceback.extract_tb(bug.__traceback__)[-SHOWN_FRAMES:])
        where = ", called at ".join(f"{one.filename.rpartition('/')[2]}:{one.lineno}" for one in frames)
        # Without the exception's message, which may quote a secret.
        await context.abort(grpc.StatusCode.INTERNAL, f"{name}: internal error of the provider, {type(bug).__name__} at {where}; report it")


async def _abort_initialization(failed: InitializationError, context: Any) -> None:
    """https://github.com/pulumi/pulumi/blob/master/sdk/go/common/util/rpcutil/rpcerror/rpcerror.go"""
    detail = provider_pb2.ErrorResourceInitFailed(
        id=failed.id, properties=encode(failed.properties), inputs=encode(failed.inputs), reasons=failed.reasons
    )
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(failed))
    status.details.add().Pack(detail)
    await context.abort(grpc.StatusCode.UNKNOWN, str(failed), trailing_metadata=(("grpc-status-details-bin", status.SerializeToString()),))
