"""The control plane with the program's own objects in it, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from api_client import MERGE, Api, eventually, service_account
from rehearsed_regions import rehearsed

from components.manifests.owned import FLEET_NAMESPACE
from components.plan.access import PREFLIGHT_ACCOUNT, ROTATION_ACCOUNT
from rehearsal.local_cluster.control_plane import ControlPlane
from rehearsal.local_cluster.objects.apply import apply
from rehearsal.local_cluster.objects.program_objects import objects_of
from rehearsal.local_cluster.objects.results import KubernetesObject

PROBED_NODE = "admission-probed"
REFUSED_BY_POLICY: tuple[tuple[str, str, dict[str, object]], ...] = (
    (PREFLIGHT_ACCOUNT, "PATCH", {}),
    (ROTATION_ACCOUNT, "PATCH", {"metadata": {"labels": {"gpufleet.io/pool": "other"}}}),
    (ROTATION_ACCOUNT, "DELETE", {}),
)
"""One request on a node for each policy, which RBAC allows and the policy refuses: account, method and body."""


@pytest.fixture(scope="session")
def declared() -> tuple[KubernetesObject, ...]:
    """Return the objects that the program registers for the dev region's cluster."""
    region = rehearsed("dev")
    return objects_of(region.clusters, region.plan.clusters[0])


@pytest.fixture(scope="session")
def kubeconfig(control_plane: ControlPlane) -> Path:
    """Return the break-glass administrator's kubeconfig."""
    return control_plane.kubeconfig


@pytest.fixture(scope="session")
def api(kubeconfig: Path, declared: tuple[KubernetesObject, ...], control_plane: ControlPlane) -> Iterator[Api]:
    """Return a client of the API servers, which have the program's objects and apply its admission policies."""
    applied = apply(kubeconfig, declared, print)
    assert applied.complete, (applied.failed, applied.conflicts)
    with closing(Api(kubeconfig)) as server:
        server.make("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": PROBED_NODE}})
        for machine in control_plane.api_servers:
            with closing(Api(control_plane.direct_kubeconfig(machine))) as one:
                eventually(lambda one=one: _applies_every_policy(one), f"the admission policies on {machine.name}")
        server.remove(f"/api/v1/nodes/{PROBED_NODE}")
        yield server


def _applies_every_policy(api: Api) -> bool:
    """Each API server reads new policies once per second on its own, so it may apply one later than it stores it."""
    for account, method, body in REFUSED_BY_POLICY:
        caller = service_account(FLEET_NAMESPACE, account)
        kind = MERGE if method == "PATCH" else "application/json"
        reply = api.request(method, f"/api/v1/nodes/{PROBED_NODE}?dryRun=All", body, by=caller, kind=kind)
        if "ValidatingAdmissionPolicy" not in reply.message:
            return False
    return True
