"""The provider's tables of kinds match a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from api_client import Api

from rehearsal.pulumi_cli.providers.kubernetes.cluster import Cluster
from rehearsal.pulumi_cli.providers.kubernetes.diff import CONTENT_PATHS, IMMUTABLE_PATHS
from rehearsal.pulumi_cli.providers.kubernetes.input_check import COMMON
from rehearsal.pulumi_cli.providers.kubernetes.readiness import READINESS_RULES
from rehearsal.pulumi_cli.providers.kubernetes.settings import ProviderSettings
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind


@pytest.fixture(scope="module")
def served(kubeconfig: Path) -> dict[Kind, bool]:
    """Kinds that the server serves, and whether their objects are in namespaces."""

    async def discovered() -> dict[Kind, bool]:
        cluster = await Cluster.connect(ProviderSettings(kubeconfig=str(kubeconfig)))
        await cluster.close()
        return {Kind(*pair): one.namespaced for pair, one in cluster.kinds.items()}

    return asyncio.run(discovered())


def test_which_kinds_are_in_namespaces_is_known_without_a_server(served: dict[Kind, bool]) -> None:
    own = [kind for kind in served if "." not in kind.group or kind.group.endswith(".k8s.io")]
    assert len(own) > 60
    assert [str(kind) for kind in own if not kind.built_in] == []
    assert [str(kind) for kind, namespaced in served.items() if kind.built_in and kind.namespaced is not namespaced] == []


def test_every_kind_in_a_table_is_one(served: dict[Kind, bool]) -> None:
    assert {*IMMUTABLE_PATHS, *CONTENT_PATHS, *READINESS_RULES} <= served.keys()


def test_which_fields_kinds_have_is_known_without_a_server(api: Api, served: dict[Kind, bool]) -> None:
    wrong, seen = [], set()
    for path, one in api.request("GET", "/openapi/v3").body["paths"].items():
        if not path.startswith(("api/", "apis/")):
            continue
        for schema in api.request("GET", one["serverRelativeURL"]).body["components"]["schemas"].values():
            for said in schema.get("x-kubernetes-group-version-kind", ()):
                kind = Kind(f"{said['group']}/{said['version']}" if said["group"] else said["version"], said["kind"])
                fields = schema.get("properties", {}).keys() - COMMON
                if kind in served and "metadata" in schema.get("properties", {}) and kind.built_in:
                    seen.add(kind)
                    wrong += [f"{kind}: {field}" for field in fields - (kind.fields if kind.fields is not None else fields)]
    assert wrong == []
    assert len(seen) > 50
