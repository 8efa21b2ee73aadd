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
from rehearsal.pulumi_cli.providers import requests as calls
from rehearsal.pulumi_cli.providers.base import Provider
from rehearsal.pulumi_cli.providers.engine_client import Engine, Severity
from rehearsal.pulumi_cli.providers.errors import CheckFailure, ProviderError
from rehearsal.pulumi_cli.providers.kubernetes import settings as configuration
from rehearsal.pulumi_cli.providers.kubernetes.check import checked
from rehearsal.pulumi_cli.providers.kubernetes.cluster import Cluster, ClusterUnreachableError
from rehearsal.pulumi_cli.providers.kubernetes.diff import difference
from rehearsal.pulumi_cli.providers.kubernetes.error_text import masked
from rehearsal.pulumi_cli.providers.kubernetes.operations import Operations
from rehearsal.pulumi_cli.providers.kubernetes.settings import WHERE, Settings
from rehearsal.pulumi_cli.providers.kubernetes.state import state_of
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind, UnsupportedTypeError, kind_of
from rehearsal.pulumi_cli.providers.pulumi_values import Json, has_unknown, is_unknown
from rehearsal.pulumi_cli.providers.requests import (
    CheckAsked,
    Checked,
    CreateAsked,
    DeleteAsked,
    DiffAsked,
    Difference,
    Found,
    Made,
    ReadAsked,
    UpdateAsked,
)

T = TypeVar("T")

NOT_ASKED = "the cluster is not known yet: its kubeconfig is made by the same update"


class Kubernetes(Provider):
    """Stands for pulumi-resource-kubernetes 4.34.2, with server-side apply: https://github.com/pulumi/pulumi-kubernetes"""

    package = "kubernetes"
    version = "4.34.2"
    autonaming = True

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._settings = Settings()
        self._cluster: Cluster | None = None
        self._unreachable = NOT_ASKED
        self._under_way: set[asyncio.Task[Any]] = set()
        self._cancelled = asyncio.Event()

    async def check_config(self, config: Json) -> Checked:
        """Refuses settings that are unknown, wrong, or not rehearsed."""
        return Checked(config, list(configuration.faults(config)))

    def diff_config(self, old: Json, new: Json) -> Difference:
        """Says whether another cluster is meant."""
        return configuration.difference(old, new)

    async def configure(self, config: Json) -> None:
        """Asks the cluster what it serves; one that cannot be reached is kept in mind, and each call says so."""
        if faults := list(configuration.faults(config)):
            raise ProviderError("\n".join(one.reason for one in faults), grpc.StatusCode.INVALID_ARGUMENT)
        self._settings = configuration.settings_of(config, os.environ)
        if any(has_unknown(config.get(key)) for key in WHERE):
            return
        await self._let_go()
        try:
            self._cluster = await Cluster.reached(self._settings)
        except ClusterUnreachableError as why:
            self._unreachable = str(why)

    async def check(self, asked: CheckAsked) -> Checked:
        """Fills in and looks over; an object of an unreachable cluster stays as it was, if the provider is so configured."""
        if self._skips and asked.old:
            await self._warn(asked.urn, "keeps this object as it is in the state")
            return Checked(asked.old)
        try:
            kind = kind_of(asked.type)
        except UnsupportedTypeError as refused:
            return Checked(asked.new, [CheckFailure("", str(refused))])
        namespace = self._settings.namespace or (self._cluster.namespace if self._cluster is not None else "")
        return checked(asked, kind, namespace, namespaced=self._namespaced(kind))

    async def diff(self, asked: DiffAsked) -> Difference:
        """By the state alone."""
        kind = self._kind(asked)
        state = state_of(asked.old_outputs, asked.old_inputs)
        if not isinstance(state.live.get("metadata"), dict):
            raise ProviderError(
                f"{asked.urn}: the state holds no object of Kubernetes; `pulumi refresh` reads it anew", grpc.StatusCode.INVALID_ARGUMENT
            )
        return difference(state, asked.new, kind, self._settings.mutable, namespaced=self._namespaced(kind))

    async def create(self, asked: CreateAsked) -> Made:
        """Makes an object."""
        self._kind(asked)
        _shaped(asked.urn, asked.inputs)
        if self._cluster is None and asked.preview:
            return Made("", asked.inputs)
        return await self._done(asked, asked.inputs, self._operations(asked.urn, asked.inputs).create(asked))

    async def update(self, asked: UpdateAsked) -> Mapping[str, Any]:
        """Changes an object."""
        self._kind(asked)
        _shaped(asked.urn, asked.new)
        if self._cluster is None and asked.preview:
            return asked.new
        return await self._done(asked, asked.new, self._operations(asked.urn, asked.new).update(asked))

    async def read(self, asked: ReadAsked) -> Found | None:
        """Looks an object up. Where the cluster cannot be reached: it stays as it is, or goes from the state, if so configured."""
        self._kind(asked)
        if self._cluster is None and self._settings.delete_unreachable:
            await self._warn(asked.urn, "takes this object out of the state, as deleteUnreachable says")
            return None
        if self._skips:
            await self._warn(asked.urn, "keeps this object as it is in the state, which may not be what the cluster holds")
            return Found(asked.id, asked.outputs, asked.inputs or {})
        inputs = asked.inputs or {}
        return await self._done(asked, inputs, self._operations(asked.urn, inputs).read(asked))

    async def delete(self, asked: DeleteAsked) -> None:
        """Deletes an object; one in a cluster that cannot be reached is given up, if so configured."""
        self._kind(asked)
        if self._cluster is None and self._settings.delete_unreachable:
            await self._warn(asked.urn, "takes this object out of the state, as deleteUnreachable says")
            return
        await self._done(asked, asked.inputs, self._operations(asked.urn, asked.inputs).delete(asked))

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
        """Whether objects stay as they are because their cluster was asked in vain."""
        return self._cluster is None and self._unreachable != NOT_ASKED and self._settings.skip_update_unreachable

    def _namespaced(self, kind: Kind) -> bool:
        return kind.namespaced if self._cluster is None else self._cluster.namespaced(kind)

    def _kind(self, asked: calls.Subject) -> Kind:
        try:
            return kind_of(asked.type)
        except UnsupportedTypeError as refused:
            raise ProviderError(str(refused), grpc.StatusCode.INVALID_ARGUMENT) from refused

    def _operations(self, urn: str, inputs: Mapping[str, Any]) -> Operations:
        """What can be done in the cluster; Failed where it cannot be reached."""
        if self._cluster is None:
            raise ProviderError(
                f"the cluster cannot be reached: {self._unreachable}; if it is gone for good, deleteUnreachable on the provider "
                "takes its objects out of the state",
                grpc.StatusCode.UNAVAILABLE,
            )

        async def say(text: str) -> None:
            await self.engine.say(urn, masked(text, inputs), ephemeral=True)

        return Operations(self._cluster, self._settings, say, partial(self.engine.say, urn, severity=Severity.WARNING))

    async def _done(self, asked: calls.Subject, inputs: Mapping[str, Any], work: Coroutine[Any, Any, T]) -> T:
        """What comes of work that cancel may end."""
        if self._cancelled.is_set():
            work.close()
            raise ProviderError(f"{asked.urn}: cancelled before it began", grpc.StatusCode.CANCELLED)
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
            raise ProviderError(f"{asked.urn}: cancelled while the API server was asked; {remedy}", grpc.StatusCode.CANCELLED) from None
        finally:
            self._under_way.discard(task)

    async def _warn(self, urn: str, what: str) -> None:
        await self.engine.say(urn, f"the cluster cannot be reached: {self._unreachable}; {what}", Severity.WARNING)

    async def _let_go(self) -> None:
        if self._cluster is not None:
            await self._cluster.close()
            self._cluster = None


def _shaped(urn: str, inputs: Mapping[str, Any]) -> None:
    """Refuses what no check let through."""
    metadata = reveal(inputs.get("metadata"))
    whole = isinstance(metadata, dict) and metadata.get("name") and inputs.get("apiVersion") and inputs.get("kind")
    if not whole and not is_unknown(metadata):
        said = "the inputs are no object of Kubernetes with apiVersion, kind and metadata with a name; Check comes first"
        raise ProviderError(f"{urn}: {said}", grpc.StatusCode.INVALID_ARGUMENT)
