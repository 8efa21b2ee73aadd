"""One etcd cluster of region dev and one blob storage for all tests of playbooks; each test leaves the etcd cluster whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from blob_storage import Storage, blob_storage
from etcd_machines import EtcdMachines, running_etcd

from components.plan.model import RegionPlan
from rehearsal.azure.region_cloud import new_region_cloud
from rehearsal.azure.scenario import Scenario
from rehearsal.local_cluster.azure_service import AzureService, serve_azure
from rehearsal.local_up.up import bring_up
from rehearsal.local_up.update_state import Approvals
from stacks.load import load_plan

QUOTA_BYTES = 16 * 1024 * 1024
"""Small enough that a test reaches it."""


# Before xdist, which reads the groups in the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one worker run all tests that share a model, an etcd cluster and a storage, so that there is one of each."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("playbooks"))


@pytest.fixture(scope="session")
def plan() -> RegionPlan:
    return load_plan("dev")


@pytest.fixture(scope="session")
def azure(plan: RegionPlan, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureService]:
    """Region dev, brought up in the model of Azure and served."""
    cloud = bring_up(plan, new_region_cloud(plan, Scenario(duration_factor=0)), Approvals(), lambda *_: None).cloud
    with serve_azure(cloud, tmp_path_factory.mktemp("azure")) as served:
        yield served


@pytest.fixture(scope="session")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with blob_storage(tmp_path_factory.mktemp("storage"), "dev") as made:
        yield made


@pytest.fixture(scope="session")
def etcd(plan: RegionPlan, azure: AzureService, storage: Storage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdMachines]:
    quota = {"quota-backend-bytes": str(QUOTA_BYTES)}
    with running_etcd(plan.clusters[0], azure, tmp_path_factory.mktemp("etcd"), quota) as made:
        made.use_storage(storage)
        yield made
