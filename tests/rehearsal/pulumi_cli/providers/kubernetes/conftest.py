"""One real control plane in which nothing is yet, and a provider process that is configured for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.control_plane import ControlPlaneSize
from stacks.load import ROOT

sys.path.insert(0, str(ROOT / "tests" / "rehearsal" / "local_cluster"))
sys.path.insert(0, str(ROOT / "tests" / "rehearsal" / "local_cluster" / "objects"))
from api_client import Api
from listening_engine import Heard, listening_engine
from objects_made import Objects
from provider_process import provider_process
from running_plane import RunningPlane, running

MODULE = "rehearsal.pulumi_cli.providers.kubernetes"


# Before xdist, which reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one worker run all tests that need the cluster, so that there is one, and last, so that it does not run on beside others."""
    needing = {item for item in items if "bare_plane" in getattr(item, "fixturenames", ())}
    for item in needing:
        item.add_marker(pytest.mark.xdist_group("bare control plane"))
    items.sort(key=needing.__contains__)


@pytest.fixture(scope="session")
def bare_plane(binaries: Binaries) -> Iterator[RunningPlane]:
    """A control plane of region dev, of one API server, with no object of the program in it: what other tests share is full of them."""
    with running("dev", binaries, ControlPlaneSize(api_servers=1)) as plane:
        yield plane


@pytest.fixture(scope="session")
def engine() -> Iterator[Heard]:
    """The messages of the provider to the engine."""
    with listening_engine() as heard:
        yield heard


@pytest.fixture(scope="session")
def unconfigured(engine: Heard) -> Iterator[Objects]:
    """A provider without a cluster."""
    with provider_process(MODULE, {}, engine.address) as process:
        yield Objects(process.client)


@pytest.fixture(scope="session")
def kubeconfig(bare_plane: RunningPlane) -> Path:
    """The break-glass administrator's."""
    return bare_plane.control.kubeconfig


@pytest.fixture(scope="session")
def api(kubeconfig: Path) -> Iterator[Api]:
    """Somebody else who works in the same cluster."""
    server = Api(kubeconfig)
    yield server
    server.close()


@pytest.fixture(scope="session")
def objects(kubeconfig: Path, engine: Heard) -> Iterator[Objects]:
    """A provider for the cluster, configured as the program does it."""
    with provider_process(MODULE, {}, engine.address) as process:
        process.client.configure(kubeconfig=kubeconfig.read_text(), clusterIdentifier="dev/dev", skipUpdateUnreachable="true")
        yield Objects(process.client)


@pytest.fixture(scope="session")
def make_objects(engine: Heard) -> Iterator[Callable[..., Objects]]:
    """Gives one more provider another configuration: who has asked for one has it until somebody else does."""
    with provider_process(MODULE, {}, engine.address) as process:

        def make(**config: str) -> Objects:
            process.client.configure(**config)
            return Objects(process.client)

        yield make
