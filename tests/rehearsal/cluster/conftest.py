"""One real control plane of region dev for all tests that leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from running_plane import RunningPlane, model_of

from rehearsal.cluster.azure_service import serve_azure
from rehearsal.cluster.control_plane import ControlPlane
from rehearsal.cluster.run_directory import RunDirectory
from rehearsal.cluster.supervisor import Supervisor
from rehearsal.engines.find import Engines, engines

PATIENCE_SECONDS = 300
"""Ten times and more what it takes: a machine may be busy with much else."""


# Before xdist, which reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one worker run all tests that share the control plane, so that there is one."""
    for item in items:
        if "running_plane" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("control plane"))


@pytest.fixture(scope="session")
def real_engines() -> Engines:
    """The real programs, built first where they are not there."""
    return engines()


@pytest.fixture(scope="session")
def running_plane(real_engines: Engines) -> Iterator[RunningPlane]:
    """The control plane with all that it runs in."""
    plan, cloud = model_of("dev")
    (cluster,) = plan.clusters
    with (
        RunDirectory() as run,
        serve_azure(cloud, run.path / "azure") as azure,
        Supervisor(run) as supervisor,
        ControlPlane.start(plan, cluster, azure, real_engines, run, supervisor) as plane,
    ):
        plane.wait_ready(PATIENCE_SECONDS)
        yield RunningPlane(plan, cluster, azure, real_engines, run, supervisor, plane)


@pytest.fixture(scope="session")
def control_plane(running_plane: RunningPlane) -> ControlPlane:
    """The control plane alone."""
    return running_plane.plane
