"""A substitute of Pulumi's engine that records the messages of a provider."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc  # type: ignore[import-untyped]
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc


@dataclass
class Heard:
    """Address of the engine, and the messages that it received: severity, URN, message."""

    address: str = ""
    lines: list[tuple[str, str, str]] = field(default_factory=list)

    def warnings(self) -> list[str]:
        """Messages of warnings."""
        return [message for severity, _, message in self.lines if severity == "WARNING"]


class _Engine(engine_pb2_grpc.EngineServicer):
    def __init__(self, heard: Heard) -> None:
        self._heard = heard

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 (the protocol's)
        self._heard.lines.append((engine_pb2.LogSeverity.Name(request.severity), request.urn, request.message))
        return empty_pb2.Empty()


@contextmanager
def listening_engine() -> Iterator[Heard]:
    """An engine on a port of its own."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    heard = Heard()
    engine_pb2_grpc.add_EngineServicer_to_server(_Engine(heard), server)
    heard.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield heard
    server.stop(None).wait()
