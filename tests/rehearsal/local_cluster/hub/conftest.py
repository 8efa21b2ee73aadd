"""A region that is up in a state directory, without the exports that a model under Pulumi's engine would lack too."""

from __future__ import annotations

import pytest
from saved_region import SavedRegion

from rehearsal.azure.persistence import save
from rehearsal.azure.region_cloud import open_region_cloud
from rehearsal.azure.scenario import NOTHING_WRONG
from rehearsal.azure.stack_records import stacks_of
from rehearsal.azure.state_directory import StateDirectory
from rehearsal.local_cluster.administrator import administrators_kubeconfig
from rehearsal.local_cluster.hub.hub_network import unavailable_reason
from rehearsal.local_up.request_scheduler import PARALLEL
from rehearsal.local_up.up import bring_up
from rehearsal.local_up.update_state import Approvals
from stacks.load import load_plan


# Before xdist, which reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the worker that runs control planes run these tests too."""
    for item in items:
        if "saved_region" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("control plane"))


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Skip tests that need namespaces if they are unavailable."""
    if reason := unavailable_reason():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def saved_region(tmp_path_factory: pytest.TempPathFactory) -> SavedRegion:
    folder = tmp_path_factory.mktemp("inside")
    plan = load_plan("dev")
    with StateDirectory(folder / "azure") as directory:
        cloud = open_region_cloud(directory, plan, NOTHING_WRONG)
        assert bring_up(plan, cloud, Approvals(frozenset(), None, PARALLEL), lambda *_: None).complete
        stacks_of(cloud).of(plan.stack).exports.clear()
        save(directory, cloud)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(administrators_kubeconfig(cloud, plan, plan.clusters[0]))
    return SavedRegion(plan, folder, kubeconfig)
