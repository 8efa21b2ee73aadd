"""The control plane with the program's own objects in it, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from api_client import Api
from rehearsed_regions import rehearsed

from rehearsal.local_cluster.control_plane import ControlPlane
from rehearsal.local_cluster.objects.apply import apply
from rehearsal.local_cluster.objects.program_objects import objects_of
from rehearsal.local_cluster.objects.results import KubernetesObject


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
def api(kubeconfig: Path, declared: tuple[KubernetesObject, ...]) -> Iterator[Api]:
    """Return a client of the API servers, which have the program's objects."""
    applied = apply(kubeconfig, declared, print)
    assert applied.complete, (applied.failed, applied.conflicts)
    server = Api(kubeconfig)
    yield server
    server.close()
