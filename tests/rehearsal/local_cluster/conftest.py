"""One real control plane of region dev for all tests that do not change it permanently."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from running_plane import RunningPlane, running
from supervised_services import SupervisedServices

from rehearsal.binaries.find import Binaries, find_binaries
from rehearsal.local_cluster.control_plane import ControlPlane
from rehearsal.local_cluster.run_directory import RunDirectory


# Before xdist, which reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one worker run all tests that share the control plane, so that it starts once."""
    for item in items:
        if "running_plane" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("control plane"))


@pytest.fixture(scope="session")
def real_engines() -> Binaries:
    """Return the real programs, which are built first if they are missing."""
    return find_binaries()


@pytest.fixture(scope="session")
def running_plane(real_engines: Binaries) -> Iterator[RunningPlane]:
    """Return the control plane with its run and its Azure."""
    with running("dev", real_engines) as plane:
        yield plane


@pytest.fixture(scope="session")
def control_plane(running_plane: RunningPlane) -> ControlPlane:
    """Return the control plane."""
    return running_plane.control


@pytest.fixture
def supervised() -> Iterator[SupervisedServices]:
    """Return a supervisor in a new run."""
    with RunDirectory() as run:
        yield SupervisedServices(run)
