"""Client of the engine that started a provider process: log messages, and detection of its end."""

from __future__ import annotations

from enum import IntEnum

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc


class Severity(IntEnum):
    """Severity of a message; numbers as in the protocol."""

    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


class EngineClient:
    """Client of the engine at an address; without an address, messages are dropped."""

    def __init__(self, address: str = "") -> None:
        self._channel: grpc.aio.Channel | None = None
        self.connect(address)

    def connect(self, address: str) -> None:
        """Connect to the engine at an address; the first address remains."""
        if address and self._channel is None:
            self._channel = grpc.aio.insecure_channel(address)
            self._stub = engine_pb2_grpc.EngineStub(self._channel)

    async def say(self, urn: str, message: str, severity: Severity = Severity.INFO, *, ephemeral: bool = False) -> None:
        """Show a line at a resource; an ephemeral line only while it is the latest. Errors of the connection are ignored."""
        if self._channel is None:
            return
        request = engine_pb2.LogRequest(severity=engine_pb2.LogSeverity.Name(severity), message=message, urn=urn, ephemeral=ephemeral)
        try:
            await self._stub.Log(request, timeout=5)
        except grpc.aio.AioRpcError:
            return

    async def gone(self) -> None:
        """Return when the engine has ended; ValueError without an engine's address."""
        if self._channel is None:
            raise ValueError("no engine's address was given, so its end cannot be detected")
        state = self._channel.get_state(try_to_connect=True)
        while state not in (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN):
            await self._channel.wait_for_state_change(state)
            # An unused connection becomes idle by itself; a new connection attempt shows whether the engine still exists.
            state = self._channel.get_state(try_to_connect=True)

    @property
    def known(self) -> bool:
        """Return whether an engine's address is set."""
        return self._channel is not None

    async def close(self) -> None:
        """Close the connection."""
        if self._channel is not None:
            await self._channel.close()
