"""A real provider process, and what Pulumi's engine says to one, over gRPC with Pulumi's own stub."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from rehearsal.program.pulumi_values import Json, decode, encode

ROOT = Path(__file__).parents[4]
OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))


def urn_of(resource_type: str, name: str) -> str:
    return f"urn:pulumi:dev::gpufleet::{resource_type}::{name}"


class ProviderCallError(Exception):
    """A call that failed: gRPC's code, the sentence, and the half-made resource where there is one."""

    def __init__(self, error: Any) -> None:
        self.code: grpc.StatusCode = error.code()
        self.sentence: str = error.details()
        self.half_made: provider_pb2.ErrorResourceInitFailed | None = None
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                status = status_pb2.Status.FromString(value)
                self.half_made = provider_pb2.ErrorResourceInitFailed()
                assert status.details[0].Unpack(self.half_made)
                assert status.message == self.sentence
        super().__init__(self.sentence)


class Client:
    """An engine's side of the protocol."""

    def __init__(self, port: int) -> None:
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS)
        self.stub = provider_pb2_grpc.ResourceProviderStub(self.channel)

    def call(self, name: str, request: Any, timeout: float = 60) -> Any:
        try:
            return getattr(self.stub, name)(request, timeout=timeout)
        except grpc.RpcError as error:
            raise ProviderCallError(error) from None

    def raw(self, name: str, content: bytes, *, streaming: bool = False) -> bytes:
        """A call with whatever bytes."""
        path = f"/pulumirpc.ResourceProvider/{name}"
        try:
            if streaming:
                return b"".join(self.channel.unary_stream(path)(content, timeout=30))
            return bytes(self.channel.unary_unary(path)(content, timeout=30))
        except grpc.RpcError as error:
            raise ProviderCallError(error) from None

    def configure(self, **config: str) -> None:
        self.call("Handshake", provider_pb2.ProviderHandshakeRequest(engine_address=""))
        self.call("Configure", provider_pb2.ConfigureRequest(args=encode(config), acceptSecrets=True))

    def check(self, resource_type: str, inputs: Json, old: Json | None = None, name: str = "it", **more: Any) -> tuple[Json, list[str]]:
        """Return the checked inputs and their errors."""
        request = provider_pb2.CheckRequest(
            urn=urn_of(resource_type, name),
            news=encode(inputs),
            olds=None if old is None else encode(old),
            **{"randomSeed": b"seed", **more},
        )
        answer = self.call("Check", request)
        return decode(answer.inputs), [one.reason for one in answer.failures]

    def diff(self, resource_type: str, old: Json, new: Json, outputs: Mapping[str, Any] | None = None, resource_id: str = "id") -> Any:
        request = provider_pb2.DiffRequest(
            urn=urn_of(resource_type, "it"), id=resource_id, old_inputs=encode(old), olds=encode(outputs or {}), news=encode(new)
        )
        return self.call("Diff", request)

    def create(self, resource_type: str, inputs: Json, *, preview: bool = False, timeout: float = 0, name: str = "it") -> tuple[str, Json]:
        request = provider_pb2.CreateRequest(urn=urn_of(resource_type, name), properties=encode(inputs), preview=preview, timeout=timeout)
        answer = self.call("Create", request)
        return answer.id, decode(answer.properties)

    def update(
        self, resource_type: str, resource_id: str, old: Json, outputs: Json, new: Json, *, preview: bool = False, timeout: float = 0
    ) -> Json:
        request = provider_pb2.UpdateRequest(
            urn=urn_of(resource_type, "it"),
            id=resource_id,
            old_inputs=encode(old),
            olds=encode(outputs),
            news=encode(new),
            preview=preview,
            timeout=timeout,
        )
        return decode(self.call("Update", request).properties)

    def read(self, resource_type: str, resource_id: str, inputs: Json | None = None, outputs: Json | None = None) -> tuple[str, Json, Json]:
        """Id, outputs and inputs; without inputs it is an import."""
        request = provider_pb2.ReadRequest(
            urn=urn_of(resource_type, "it"),
            id=resource_id,
            properties=encode(outputs or {}),
            inputs=None if inputs is None else encode(inputs),
        )
        answer = self.call("Read", request)
        return answer.id, decode(answer.properties), decode(answer.inputs)

    def delete(self, resource_type: str, resource_id: str, inputs: Json, outputs: Json) -> None:
        request = provider_pb2.DeleteRequest(
            urn=urn_of(resource_type, "it"), id=resource_id, old_inputs=encode(inputs), properties=encode(outputs)
        )
        self.call("Delete", request)

    def invoke(self, token: str, arguments: Json) -> Json:
        answer = self.call("Invoke", provider_pb2.InvokeRequest(tok=token, args=encode(arguments)))
        return decode(getattr(answer, "return"))

    def close(self) -> None:
        self.channel.close()


class ProviderProcess:
    """A provider as the engine starts it."""

    def __init__(self, module: str, environment: Mapping[str, str], *arguments: str) -> None:
        command = [sys.executable, "-m", module, *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, **environment}
        )
        assert self.process.stdout
        self.port = int(self.process.stdout.readline())
        self.client = Client(self.port)

    def end(self) -> str:
        """End it if it still runs; what it wrote to stderr."""
        self.client.close()
        if self.process.poll() is None:
            self.process.terminate()
        _, errors = self.process.communicate(timeout=60)
        return errors


@contextmanager
def provider_process(module: str, environment: Mapping[str, str], *arguments: str) -> Iterator[ProviderProcess]:
    """A provider process that writes nothing to stderr."""
    running = ProviderProcess(module, environment, *arguments)
    errors = ""
    try:
        yield running
    finally:
        errors = running.end()
    assert "Traceback" not in errors, errors
