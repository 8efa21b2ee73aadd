"""Decides what a provider process does with the engine that started it: it tells it things, and ends when it has gone."""

from __future__ import annotations

from enum import IntEnum

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc


class Severity(IntEnum):
    """How loud the engine is to be; numbers as in the protocol."""

    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


class EngineClient:
    """The engine at an address; without one, nobody hears."""

    def __init__(self, address: str = "") -> None:
        self._channel: grpc.aio.Channel | None = None
        self.connect(address)

    def connect(self, address: str) -> None:
        """Talk to the engine at an address from now on; an address that is there already stays."""
        if address and self._channel is None:
            self._channel = grpc.aio.insecure_channel(address)
            self._stub = engine_pb2_grpc.EngineStub(self._channel)

    async def say(self, urn: str, message: str, severity: Severity = Severity.INFO, *, ephemeral: bool = False) -> None:
        """Let the engine show a line at a resource; an ephemeral one only while it is the latest. Nothing is raised where nobody hears."""
        if self._channel is None:
            return
        request = engine_pb2.LogRequest(severity=engine_pb2.LogSeverity.Name(severity), message=message, urn=urn, ephemeral=ephemeral)
        try:
            await self._stub.Log(request, timeout=5)
        except grpc.aio.AioRpcError:
            return

    async def gone(self) -> None:
        """Return once the engine was there and is not any more; never without an engine's address."""
        if self._channel is None:
            raise ValueError("no engine's address was given, so nobody can tell when it goes")
        state = self._channel.get_state(try_to_connect=True)
        while state not in (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN):
            await self._channel.wait_for_state_change(state)
            # A connection that nothing was sent over goes idle by itself; asking for it again tells whether anybody is there.
            state = self._channel.get_state(try_to_connect=True)

    @property
    def known(self) -> bool:
        """Whether there is an engine's address."""
        return self._channel is not None

    async def close(self) -> None:
        """End the connection."""
        if self._channel is not None:
            await self._channel.close()
