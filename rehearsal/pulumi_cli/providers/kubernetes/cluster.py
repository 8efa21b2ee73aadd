"""Which cluster the provider's objects are in: its kinds, and requests about one object."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from components.errors import GpufleetError
from rehearsal.local_cluster.objects.connection import APPLY, DISCOVERY, JSON, ApiResponse, ApiServerUnreachableError
from rehearsal.local_cluster.objects.kinds import ROOTS, Kinds, ServedKind, kinds_in
from rehearsal.local_cluster.objects.kubeconfig import KubeconfigError
from rehearsal.local_cluster.objects.results import ObjectKey
from rehearsal.pulumi_cli.providers.errors import ProviderError
from rehearsal.pulumi_cli.providers.kubernetes.api import Api, Say
from rehearsal.pulumi_cli.providers.kubernetes.metadata import name_of, namespace_of
from rehearsal.pulumi_cli.providers.kubernetes.settings import Settings
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind

PATIENCE_SECONDS = 15.0
"""How long a request is repeated that may yet succeed: an API server that restarts is back by then, and one cluster that has died holds
up the others no longer."""
FIRST_PATIENCE_SECONDS = 1.0
"""The same for the first requests: whether the cluster can be reached at all, many objects wait to know."""
SERVED_SECONDS = 30.0
"""How long a kind is waited for that a definition of the same update may bring."""
OK, NOT_FOUND = 200, 404


class ClusterUnreachableError(GpufleetError):
    """A cluster that cannot be asked: where it is, and why not."""


class Cluster:
    """A cluster that can be asked."""

    def __init__(self, api: Api, kinds: Kinds, namespace: str) -> None:
        self.api, self.kinds, self.namespace = api, kinds, namespace

    @classmethod
    async def reached(cls, settings: Settings) -> Cluster:
        """The cluster of a configuration; Unreachable."""
        try:
            access = settings.access()
        except KubeconfigError as refused:
            raise ClusterUnreachableError(str(refused)) from refused
        api = Api(access)
        try:
            kinds = await discover(api, FIRST_PATIENCE_SECONDS)
        except BaseException as error:
            await api.close()
            if isinstance(error, ApiServerUnreachableError):
                raise ClusterUnreachableError(str(error)) from error
            raise
        return cls(api, kinds, settings.namespace or access.namespace)

    async def close(self) -> None:
        """Ends all connections."""
        await self.api.close()

    def namespaced(self, kind: Kind) -> bool:
        """Whether objects of a kind are in namespaces; what is not served yet is taken as one can without a server."""
        served = self.kinds.get((kind.api_version, kind.kind))
        return served.namespaced if served is not None else kind.namespaced

    async def served(self, kind: Kind, seconds: float = 0.0) -> ServedKind | None:
        """How a kind is served, as soon as it is, for so many seconds; None where it is not."""
        loop = asyncio.get_running_loop()
        end, wait, pair = loop.time() + seconds, 0.2, (kind.api_version, kind.kind)
        while pair not in self.kinds:
            self.kinds = await discover(self.api, PATIENCE_SECONDS)
            if pair in self.kinds or loop.time() + wait > end:
                break
            await asyncio.sleep(wait)
            wait = min(2 * wait, 1.0)
        return self.kinds.get(pair)

    async def get(self, served: ServedKind, key: ObjectKey, say: Say | None = None) -> ApiResponse:
        """One object as it is."""
        return await self.api.request("GET", served.item(key), patience=PATIENCE_SECONDS, say=say)

    async def listed(self, kind: Kind, namespace: str, selector: str) -> list[Mapping[str, Any]]:
        """Objects of a namespace whose labels match; none where the kind is not served or may not be listed."""
        served = self.kinds.get((kind.api_version, kind.kind))
        if served is None:
            return []
        query = {"labelSelector": selector, "limit": "100"}
        answer = await self.api.request("GET", served.collection(namespace), query, patience=PATIENCE_SECONDS)
        return list(answer.body.get("items") or []) if answer.status == OK else []

    async def write(
        self, method: str, path: str, query: Mapping[str, str], body: object, say: Say, *, dry: bool = False, kind: str = JSON
    ) -> ApiResponse:
        """A change of one object; a dry one changes nothing and is answered as if it had."""
        asked = {**query, **({"dryRun": "All"} if dry else {})}
        return await self.api.request(method, path, asked, body, kind, patience=PATIENCE_SECONDS, say=say)

    async def apply(
        self, served: ServedKind, key: ObjectKey, item: object, manager: str, say: Say, *, force: bool, dry: bool
    ) -> ApiResponse:
        """Server-side apply of one object: https://kubernetes.io/docs/reference/using-api/server-side-apply/"""
        query = {"fieldManager": manager, "force": str(force).lower()}
        return await self.write("PATCH", served.item(key), query, item, say, dry=dry, kind=APPLY)


async def discover(api: Api, patience: float) -> Kinds:
    """Every kind that a server serves, in two requests."""
    answers = [await api.request("GET", root, accept=DISCOVERY, patience=patience) for root in ROOTS]
    for answer in answers:
        if answer.status != OK:
            raise ApiServerUnreachableError(
                api.where, f"does not tell which kinds it serves: {answer.message}", "see what the kubeconfig's user may do"
            )
    return {pair: served for root, answer in zip(ROOTS, answers, strict=True) for pair, served in kinds_in(root, answer.body).items()}


def key_for(kind: Kind, item: Mapping[str, Any], served: ServedKind | None = None) -> ObjectKey:
    """Key of an object of a kind."""
    namespaced = kind.namespaced if served is None else served.namespaced
    return ObjectKey(kind.kind, namespace_of(item) if namespaced else "", name_of(item), kind.api_version)


def unserved(kind: Kind) -> ProviderError:
    """A kind that the cluster does not know, however long it was asked."""
    return ProviderError(
        f"the cluster serves no {kind}; register its CustomResourceDefinition and let the object depend on it, "
        "or enable its API group at the API servers"
    )
