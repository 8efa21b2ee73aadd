"""The Kubernetes provider: checks and comparisons without a server, everything else through the cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

import grpc  # type: ignore[import-untyped]

from lifecycle.kubernetes_api.connection import ApiServerUnreachableError
from rehearsal.program.graph import reveal
from rehearsal.program.pulumi_values import Json, has_unknown, is_unknown
from rehearsal.pulumi_cli.providers.engine_client import EngineClient, Severity
from rehearsal.pulumi_cli.providers.kubernetes.cluster import Cluster, ClusterUnreachableError
from rehearsal.pulumi_cli.providers.kubernetes.diff import difference
from rehearsal.pulumi_cli.providers.kubernetes.error_text import masked
from rehearsal.pulumi_cli.providers.kubernetes.input_check import check_inputs
from rehearsal.pulumi_cli.providers.kubernetes.operations import ObjectOperations
from rehearsal.pulumi_cli.providers.kubernetes.settings import (
    CLUSTER_SETTINGS,
    ProviderSettings,
    diff_settings,
    read_settings,
    setting_failures,
)
from rehearsal.pulumi_cli.providers.kubernetes.state import state_of
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind, UnsupportedTypeError, kind_of
from rehearsal.pulumi_cli.providers.provider_interface import (
    CheckFailure,
    CheckRequest,
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    Provider,
    ProviderError,
    ReadRequest,
    ReadResult,
    ResourceRequest,
    UpdateRequest,
)

T = TypeVar("T")

CLUSTER_UNKNOWN = "the cluster is not known yet: the same update creates its kubeconfig"


class Kubernetes(Provider):
    """Replacement of pulumi-resource-kubernetes 4.34.2, with server-side apply: https://github.com/pulumi/pulumi-kubernetes"""

    package = "kubernetes"
    version = "4.34.2"
    autonaming = True

    def __init__(self, engine: EngineClient) -> None:
        super().__init__(engine)
        self._settings = ProviderSettings()
        self._cluster: Cluster | None = None
        self._unreachable = CLUSTER_UNKNOWN
        self._under_way: set[asyncio.Task[Any]] = set()
        self._cancelled = asyncio.Event()

    async def check_config(self, config: Json) -> CheckResult:
        """Reject settings that are unknown, wrong, or not supported in a rehearsal."""
        return CheckResult(config, list(setting_failures(config)))

    def diff_config(self, old: Json, new: Json) -> DiffResult:
        """Return whether the cluster changes."""
        return diff_settings(old, new)

    async def configure(self, config: Json) -> None:
        """Discover the cluster's kinds; for an unreachable cluster, each later call fails with the reason."""
        if faults := list(setting_failures(config)):
            raise ProviderError("\n".join(one.reason for one in faults), grpc.StatusCode.INVALID_ARGUMENT)
        self._settings = read_settings(config, os.environ)
        if any(has_unknown(config.get(key)) for key in CLUSTER_SETTINGS):
            return
        await self._disconnect()
        try:
            self._cluster = await Cluster.connect(self._settings)
        except ClusterUnreachableError as why:
            self._unreachable = str(why)

    async def check(self, request: CheckRequest) -> CheckResult:
        """Add defaults and check the inputs; an object of an unreachable cluster remains as it is, if so configured."""
        if self._keeps_unreachable and request.old:
            await self._warn(request.urn, "this object remains as in the state")
            return CheckResult(request.old)
        try:
            kind = kind_of(request.type)
        except UnsupportedTypeError as refused:
            return CheckResult(request.new, [CheckFailure("", str(refused))])
        namespace = self._settings.namespace or (self._cluster.namespace if self._cluster is not None else "")
        return check_inputs(request, kind, namespace, namespaced=self._namespaced(kind))

    async def diff(self, request: DiffRequest) -> DiffResult:
        """Compare with the recorded state."""
        kind = self._kind(request)
        state = state_of(request.old_outputs, request.old_inputs)
        if not isinstance(state.live.get("metadata"), dict):
            raise ProviderError(
                f"{request.urn}: the state contains no Kubernetes object; `pulumi refresh` reads it again", grpc.StatusCode.INVALID_ARGUMENT
            )
        return difference(state, request.new, kind, self._settings.mutable, namespaced=self._namespaced(kind))

    async def create(self, request: CreateRequest) -> CreateResult:
        """Create an object."""
        self._kind(request)
        _require_object(request.urn, request.inputs)
        if self._cluster is None and request.preview:
            return CreateResult("", request.inputs)
        return await self._cancellable(request, request.inputs, self._operations(request.urn, request.inputs).create(request))

    async def update(self, request: UpdateRequest) -> Mapping[str, Any]:
        """Update an object."""
        self._kind(request)
        _require_object(request.urn, request.new)
        if self._cluster is None and request.preview:
            return request.new
        return await self._cancellable(request, request.new, self._operations(request.urn, request.new).update(request))

    async def read(self, request: ReadRequest) -> ReadResult | None:
        """Read an object; in an unreachable cluster it remains as it is, or leaves the state, if so configured."""
        self._kind(request)
        if self._cluster is None and self._settings.delete_unreachable:
            await self._warn(request.urn, "this object is removed from the state, because deleteUnreachable is set")
            return None
        if self._keeps_unreachable:
            await self._warn(request.urn, "this object remains as in the state, which may differ from the cluster")
            return ReadResult(request.id, request.outputs, request.inputs or {})
        inputs = request.inputs or {}
        return await self._cancellable(request, inputs, self._operations(request.urn, inputs).read(request))

    async def delete(self, request: DeleteRequest) -> None:
        """Delete an object; in an unreachable cluster it only leaves the state, if so configured."""
        self._kind(request)
        if self._cluster is None and self._settings.delete_unreachable:
            await self._warn(request.urn, "this object is removed from the state, because deleteUnreachable is set")
            return
        await self._cancellable(request, request.inputs, self._operations(request.urn, request.inputs).delete(request))

    async def invoke(self, token: str, arguments: Json) -> Mapping[str, Any]:  # noqa: ARG002
        """Reject every function: those of the real provider read YAML, charts and directories, which the program does not use."""
        raise ProviderError(
            f"{token[:200]} is not a function of this provider; register the objects themselves", grpc.StatusCode.UNIMPLEMENTED
        )

    async def cancel(self) -> None:
        """Cancel running calls: each reports its progress, and the object remains in the state."""
        self._cancelled.set()
        for task in tuple(self._under_way):
            task.cancel()

    async def close(self) -> None:
        """Close all connections."""
        await self._disconnect()
        await super().close()

    @property
    def _keeps_unreachable(self) -> bool:
        """Return whether objects remain as they are because their cluster is unreachable."""
        return self._cluster is None and self._unreachable != CLUSTER_UNKNOWN and self._settings.skip_update_unreachable

    def _namespaced(self, kind: Kind) -> bool:
        return kind.namespaced if self._cluster is None else self._cluster.namespaced(kind)

    def _kind(self, request: ResourceRequest) -> Kind:
        try:
            return kind_of(request.type)
        except UnsupportedTypeError as refused:
            raise ProviderError(str(refused), grpc.StatusCode.INVALID_ARGUMENT) from refused

    def _operations(self, urn: str, inputs: Mapping[str, Any]) -> ObjectOperations:
        """Return the operations of the cluster; ProviderError where it is unreachable."""
        if self._cluster is None:
            raise ProviderError(
                f"the cluster cannot be reached: {self._unreachable}; if it is gone for good, deleteUnreachable on the provider "
                "removes its objects from the state",
                grpc.StatusCode.UNAVAILABLE,
            )

        async def report(text: str) -> None:
            await self.engine.say(urn, masked(text, inputs), ephemeral=True)

        return ObjectOperations(self._cluster, self._settings, report, partial(self.engine.say, urn, severity=Severity.WARNING))

    async def _cancellable(self, request: ResourceRequest, inputs: Mapping[str, Any], work: Coroutine[Any, Any, T]) -> T:
        """Return the result of work that cancel may end."""
        if self._cancelled.is_set():
            work.close()
            raise ProviderError(f"{request.urn}: cancelled before it began", grpc.StatusCode.CANCELLED)
        task = asyncio.ensure_future(work)
        self._under_way.add(task)
        try:
            return await task
        except ApiServerUnreachableError as error:
            raise ProviderError(masked(str(error), inputs), grpc.StatusCode.UNAVAILABLE) from error
        except asyncio.CancelledError:
            if not self._cancelled.is_set():
                raise
            remedy = "the result is unknown: `pulumi refresh` reads it"
            raise ProviderError(
                f"{request.urn}: cancelled during a request to the API server; {remedy}", grpc.StatusCode.CANCELLED
            ) from None
        finally:
            self._under_way.discard(task)

    async def _warn(self, urn: str, what: str) -> None:
        await self.engine.say(urn, f"the cluster cannot be reached: {self._unreachable}; {what}", Severity.WARNING)

    async def _disconnect(self) -> None:
        if self._cluster is not None:
            await self._cluster.close()
            self._cluster = None


def _require_object(urn: str, inputs: Mapping[str, Any]) -> None:
    """Raise ProviderError for inputs that no check has accepted."""
    metadata = reveal(inputs.get("metadata"))
    whole = isinstance(metadata, dict) and metadata.get("name") and inputs.get("apiVersion") and inputs.get("kind")
    if not whole and not is_unknown(metadata):
        reason = "the inputs are not a Kubernetes object with apiVersion, kind and metadata with a name; call Check first"
        raise ProviderError(f"{urn}: {reason}", grpc.StatusCode.INVALID_ARGUMENT)
