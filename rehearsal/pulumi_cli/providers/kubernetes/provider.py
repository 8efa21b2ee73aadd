"""Decides what the Kubernetes provider answers: checks and differences with or without a server, everything else in the cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

import grpc  # type: ignore[import-untyped]

from rehearsal.local_cluster.objects.connection import ApiServerUnreachableError
from rehearsal.program.graph import reveal
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
from rehearsal.pulumi_cli.providers.pulumi_values import Json, has_unknown, is_unknown

T = TypeVar("T")

CLUSTER_UNKNOWN = "the cluster is not known yet: its kubeconfig is made by the same update"


class Kubernetes(Provider):
    """Stands for pulumi-resource-kubernetes 4.34.2, with server-side apply: https://github.com/pulumi/pulumi-kubernetes"""

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
        """Refuses settings that are unknown, wrong, or not rehearsed."""
        return CheckResult(config, list(setting_failures(config)))

    def diff_config(self, old: Json, new: Json) -> DiffResult:
        """Says whether another cluster is meant."""
        return diff_settings(old, new)

    async def configure(self, config: Json) -> None:
        """Asks the cluster what it serves; one that cannot be reached is kept in mind, and each call says so."""
        if faults := list(setting_failures(config)):
            raise ProviderError("\n".join(one.reason for one in faults), grpc.StatusCode.INVALID_ARGUMENT)
        self._settings = read_settings(config, os.environ)
        if any(has_unknown(config.get(key)) for key in CLUSTER_SETTINGS):
            return
        await self._let_go()
        try:
            self._cluster = await Cluster.connect(self._settings)
        except ClusterUnreachableError as why:
            self._unreachable = str(why)

    async def check(self, request: CheckRequest) -> CheckResult:
        """Fills in and looks over; an object of an unreachable cluster stays as it was, if the provider is so configured."""
        if self._skips and request.old:
            await self._warn(request.urn, "keeps this object as it is in the state")
            return CheckResult(request.old)
        try:
            kind = kind_of(request.type)
        except UnsupportedTypeError as refused:
            return CheckResult(request.new, [CheckFailure("", str(refused))])
        namespace = self._settings.namespace or (self._cluster.namespace if self._cluster is not None else "")
        return check_inputs(request, kind, namespace, namespaced=self._namespaced(kind))

    async def diff(self, request: DiffRequest) -> DiffResult:
        """By the state alone."""
        kind = self._kind(request)
        state = state_of(request.old_outputs, request.old_inputs)
        if not isinstance(state.live.get("metadata"), dict):
            raise ProviderError(
                f"{request.urn}: the state holds no object of Kubernetes; `pulumi refresh` reads it anew", grpc.StatusCode.INVALID_ARGUMENT
            )
        return difference(state, request.new, kind, self._settings.mutable, namespaced=self._namespaced(kind))

    async def create(self, request: CreateRequest) -> CreateResult:
        """Makes an object."""
        self._kind(request)
        _require_object(request.urn, request.inputs)
        if self._cluster is None and request.preview:
            return CreateResult("", request.inputs)
        return await self._done(request, request.inputs, self._operations(request.urn, request.inputs).create(request))

    async def update(self, request: UpdateRequest) -> Mapping[str, Any]:
        """Changes an object."""
        self._kind(request)
        _require_object(request.urn, request.new)
        if self._cluster is None and request.preview:
            return request.new
        return await self._done(request, request.new, self._operations(request.urn, request.new).update(request))

    async def read(self, request: ReadRequest) -> ReadResult | None:
        """Looks an object up. Where the cluster cannot be reached: it stays as it is, or goes from the state, if so configured."""
        self._kind(request)
        if self._cluster is None and self._settings.delete_unreachable:
            await self._warn(request.urn, "takes this object out of the state, as deleteUnreachable says")
            return None
        if self._skips:
            await self._warn(request.urn, "keeps this object as it is in the state, which may not be what the cluster holds")
            return ReadResult(request.id, request.outputs, request.inputs or {})
        inputs = request.inputs or {}
        return await self._done(request, inputs, self._operations(request.urn, inputs).read(request))

    async def delete(self, request: DeleteRequest) -> None:
        """Deletes an object; one in a cluster that cannot be reached is given up, if so configured."""
        self._kind(request)
        if self._cluster is None and self._settings.delete_unreachable:
            await self._warn(request.urn, "takes this object out of the state, as deleteUnreachable says")
            return
        await self._done(request, request.inputs, self._operations(request.urn, request.inputs).delete(request))

    async def invoke(self, token: str, arguments: Json) -> Mapping[str, Any]:  # noqa: ARG002
        """Refuses: the real provider's functions read YAML, charts and directories, for which the program has no use."""
        raise ProviderError(
            f"{token[:200]} is no function of this provider; register the objects themselves", grpc.StatusCode.UNIMPLEMENTED
        )

    async def cancel(self) -> None:
        """Ends what is under way: a wait says how far it was, and the object stays in the state."""
        self._cancelled.set()
        for task in tuple(self._under_way):
            task.cancel()

    async def close(self) -> None:
        """Ends all connections."""
        await self._let_go()
        await super().close()

    @property
    def _skips(self) -> bool:
        """Whether objects stay as they are because their cluster was request in vain."""
        return self._cluster is None and self._unreachable != CLUSTER_UNKNOWN and self._settings.skip_update_unreachable

    def _namespaced(self, kind: Kind) -> bool:
        return kind.namespaced if self._cluster is None else self._cluster.namespaced(kind)

    def _kind(self, request: ResourceRequest) -> Kind:
        try:
            return kind_of(request.type)
        except UnsupportedTypeError as refused:
            raise ProviderError(str(refused), grpc.StatusCode.INVALID_ARGUMENT) from refused

    def _operations(self, urn: str, inputs: Mapping[str, Any]) -> ObjectOperations:
        """What can be done in the cluster; Failed where it cannot be reached."""
        if self._cluster is None:
            raise ProviderError(
                f"the cluster cannot be reached: {self._unreachable}; if it is gone for good, deleteUnreachable on the provider "
                "takes its objects out of the state",
                grpc.StatusCode.UNAVAILABLE,
            )

        async def report(text: str) -> None:
            await self.engine.say(urn, masked(text, inputs), ephemeral=True)

        return ObjectOperations(self._cluster, self._settings, report, partial(self.engine.say, urn, severity=Severity.WARNING))

    async def _done(self, request: ResourceRequest, inputs: Mapping[str, Any], work: Coroutine[Any, Any, T]) -> T:
        """What comes of work that cancel may end."""
        if self._cancelled.is_set():
            work.close()
            raise ProviderError(f"{request.urn}: cancelled before it began", grpc.StatusCode.CANCELLED)
        task = asyncio.ensure_future(work)
        self._under_way.add(task)
        try:
            return await task
        except ApiServerUnreachableError as silent:
            raise ProviderError(masked(str(silent), inputs), grpc.StatusCode.UNAVAILABLE) from silent
        except asyncio.CancelledError:
            if not self._cancelled.is_set():
                raise
            remedy = "whether it was done is not known: `pulumi refresh` finds out"
            raise ProviderError(f"{request.urn}: cancelled while the API server was request; {remedy}", grpc.StatusCode.CANCELLED) from None
        finally:
            self._under_way.discard(task)

    async def _warn(self, urn: str, what: str) -> None:
        await self.engine.say(urn, f"the cluster cannot be reached: {self._unreachable}; {what}", Severity.WARNING)

    async def _let_go(self) -> None:
        if self._cluster is not None:
            await self._cluster.close()
            self._cluster = None


def _require_object(urn: str, inputs: Mapping[str, Any]) -> None:
    """Refuses what no check let through."""
    metadata = reveal(inputs.get("metadata"))
    whole = isinstance(metadata, dict) and metadata.get("name") and inputs.get("apiVersion") and inputs.get("kind")
    if not whole and not is_unknown(metadata):
        said = "the inputs are no object of Kubernetes with apiVersion, kind and metadata with a name; Check comes first"
        raise ProviderError(f"{urn}: {said}", grpc.StatusCode.INVALID_ARGUMENT)
