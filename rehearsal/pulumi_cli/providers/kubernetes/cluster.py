"""Cluster that contains the provider's objects: the kinds that it serves, and requests for one object."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from components.errors import GpufleetError
from lifecycle.kubernetes_api.connection import APPLY, DISCOVERY, JSON, ApiResponse, ApiServerUnreachableError
from lifecycle.kubernetes_api.kubeconfig import KubeconfigError
from rehearsal.local_cluster.objects.kinds import ROOTS, Kinds, ServedKind, kinds_in
from rehearsal.local_cluster.objects.results import ObjectKey
from rehearsal.pulumi_cli.providers.kubernetes.api_client import ApiClient, Report
from rehearsal.pulumi_cli.providers.kubernetes.object_metadata import name_of, namespace_of
from rehearsal.pulumi_cli.providers.kubernetes.settings import ProviderSettings
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind
from rehearsal.pulumi_cli.providers.provider_interface import ProviderError

PATIENCE_SECONDS = 15.0
"""Time for which a request is repeated: a restarted API server is back by then, and a cluster that has died does not delay the others
longer."""
FIRST_PATIENCE_SECONDS = 1.0
"""The same for the first requests: many objects wait to learn whether the cluster can be reached at all."""
SERVED_SECONDS = 30.0
"""Time to wait for a kind that a definition of the same update may add."""
OK = 200


class ClusterUnreachableError(GpufleetError):
    """A cluster that cannot be reached: address and reason."""


class Cluster:
    """A cluster that can be reached."""

    def __init__(self, api: ApiClient, kinds: Kinds, namespace: str) -> None:
        self.api, self.kinds, self.namespace = api, kinds, namespace

    @classmethod
    async def connect(cls, settings: ProviderSettings) -> Cluster:
        """Return the cluster of a configuration; ClusterUnreachableError."""
        try:
            access = settings.access()
        except KubeconfigError as error:
            raise ClusterUnreachableError(str(error)) from error
        api = ApiClient(access)
        try:
            kinds = await discover(api, FIRST_PATIENCE_SECONDS)
        except BaseException as error:
            await api.close()
            if isinstance(error, ApiServerUnreachableError):
                raise ClusterUnreachableError(str(error)) from error
            raise
        return cls(api, kinds, settings.namespace or access.namespace)

    async def close(self) -> None:
        """Close all connections."""
        await self.api.close()

    def namespaced(self, kind: Kind) -> bool:
        """Return whether a kind's objects are in namespaces; for a kind that is not served yet, as known without a server."""
        served = self.kinds.get((kind.api_version, kind.kind))
        return served.namespaced if served is not None else kind.namespaced

    async def served(self, kind: Kind, seconds: float = 0.0) -> ServedKind | None:
        """Return a kind as soon as it is served, within a number of seconds; None where it is not."""
        loop = asyncio.get_running_loop()
        end, wait, pair = loop.time() + seconds, 0.2, (kind.api_version, kind.kind)
        while pair not in self.kinds:
            self.kinds = await discover(self.api, PATIENCE_SECONDS)
            if pair in self.kinds or loop.time() + wait > end:
                break
            await asyncio.sleep(wait)
            wait = min(2 * wait, 1.0)
        return self.kinds.get(pair)

    async def get(self, served: ServedKind, key: ObjectKey, report: Report | None = None) -> ApiResponse:
        """Read one object."""
        return await self.api.request("GET", served.item(key), patience=PATIENCE_SECONDS, report=report)

    async def list_objects(self, kind: Kind, namespace: str, selector: str) -> list[Mapping[str, Any]]:
        """List objects of a namespace whose labels match; none where the kind is not served or may not be listed."""
        served = self.kinds.get((kind.api_version, kind.kind))
        if served is None:
            return []
        query = {"labelSelector": selector, "limit": "100"}
        response = await self.api.request("GET", served.collection(namespace), query, patience=PATIENCE_SECONDS)
        return list(response.body.get("items") or []) if response.status == OK else []

    async def write(
        self, method: str, path: str, query: Mapping[str, str], body: object, report: Report, *, dry: bool = False, content_type: str = JSON
    ) -> ApiResponse:
        """Change one object; a dry run changes nothing and returns the same response."""
        full = {**query, **({"dryRun": "All"} if dry else {})}
        return await self.api.request(method, path, full, body, content_type, patience=PATIENCE_SECONDS, report=report)

    async def apply(
        self, served: ServedKind, key: ObjectKey, item: object, manager: str, report: Report, *, force: bool, dry: bool
    ) -> ApiResponse:
        """Apply one object on the server: https://kubernetes.io/docs/reference/using-api/server-side-apply/"""
        query = {"fieldManager": manager, "force": str(force).lower()}
        return await self.write("PATCH", served.item(key), query, item, report, dry=dry, content_type=APPLY)


async def discover(api: ApiClient, patience: float) -> Kinds:
    """Return every kind that a server serves, in two requests."""
    kinds: dict[tuple[str, str], ServedKind] = {}
    for root in ROOTS:
        response = await api.request("GET", root, accept=DISCOVERY, patience=patience)
        if response.status != OK:
            reason = f"discovery of its kinds failed: {response.message}"
            raise ApiServerUnreachableError(api.address, reason, "check the rights of the kubeconfig's user")
        kinds.update(kinds_in(root, response.body))
    return kinds


def object_key(kind: Kind, item: Mapping[str, Any], served: ServedKind | None = None) -> ObjectKey:
    """Return the key of an object of a kind."""
    namespaced = kind.namespaced if served is None else served.namespaced
    return ObjectKey(kind.kind, namespace_of(item) if namespaced else "", name_of(item), kind.api_version)


def kind_not_served(kind: Kind) -> ProviderError:
    """Build the error for a kind that the cluster does not serve."""
    return ProviderError(
        f"the cluster serves no {kind}; register its CustomResourceDefinition and let the object depend on it, "
        "or enable its API group at the API servers"
    )
