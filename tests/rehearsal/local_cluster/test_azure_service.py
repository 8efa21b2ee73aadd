"""A model is served to programs of this machine as long as its context lasts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from components.boot.etcd import boot_etcd
from components.boot.machine import BootFile
from components.boot.scripts import FETCH_SECRETS
from components.boot.secrets import MANIFEST
from components.plan import naming
from components.plan.model import RegionPlan
from rehearsal.azure.errors import AzureError
from rehearsal.azure.region_cloud import new_region_cloud
from rehearsal.azure.scenario import Scenario
from rehearsal.local_cluster.azure_service import AzureService, serve_azure
from rehearsal.local_up.up import bring_up_anew
from stacks.load import load_plan


@pytest.fixture(scope="module")
def plan() -> RegionPlan:
    return load_plan("dev")


@pytest.fixture(scope="module")
def service(plan: RegionPlan, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureService]:
    cloud = bring_up_anew(plan).cloud
    with serve_azure(cloud, tmp_path_factory.mktemp("azure")) as served:
        yield served


def member_id(plan: RegionPlan) -> str:
    cluster = plan.clusters[0]
    return naming.resource_id(
        cluster.subscription, cluster.resource_group, "Microsoft.Compute", "virtualMachines", cluster.etcd.members[0].name
    )


def test_a_machine_fetches_its_secrets_with_the_program_that_it_boots_with(service: AzureService, plan: RegionPlan, tmp_path: Path) -> None:
    cluster = plan.clusters[0]
    boot = boot_etcd(cluster, cluster.etcd, cluster.etcd.members[0])
    manifest = json.loads(boot.file(MANIFEST).content)
    manifest |= {"vault": service.vault_uri(manifest["vault"]), "directory": str(tmp_path), "compose": {}}
    (tmp_path / "secrets.json").write_text(json.dumps(manifest))
    program: BootFile = boot.file(FETCH_SECRETS.path)
    (tmp_path / "fetch").write_text(program.content)
    body = subprocess.run(
        [sys.executable, tmp_path / "fetch", tmp_path / "secrets.json"],
        env={**os.environ, **service.environment(member_id(plan))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert body.returncode == 0, body.stderr
    assert {path.stem for path in tmp_path.glob("*.pem")} == set(manifest["keep"])


def test_a_vault_asks_for_a_token_and_a_machine_is_told_of_itself_without_one(service: AzureService, plan: RegionPlan) -> None:
    machine = member_id(plan)
    vault = plan.clusters[0].vault("etcd")
    with urllib3.PoolManager(ca_certs=str(service.authority)) as client:
        response = client.request("GET", f"{service.vault_uri(vault.uri)}/secrets/{vault.secrets[0]}?api-version=7.4")
        assert response.status == 401
        url = f"{service.metadata_of(machine)}/metadata/instance?api-version=2021-12-13"
        result = client.request("GET", url, headers={"Metadata": "true"})
        assert result.json()["compute"]["resourceId"] == machine


def test_what_is_asked_of_the_model_is_done_between_requests_and_its_errors_are_handed_on(service: AzureService, plan: RegionPlan) -> None:
    assert service.call(lambda cloud: cloud.get(member_id(plan)).id.name) == plan.clusters[0].etcd.members[0].name
    with pytest.raises(AzureError, match="ResourceNotFound"):
        service.call(lambda cloud: cloud.get(f"{member_id(plan)}-none"))


def test_nothing_listens_once_the_context_has_ended(plan: RegionPlan, tmp_path: Path) -> None:
    with urllib3.PoolManager(retries=False) as client:
        with serve_azure(new_region_cloud(plan, Scenario()), tmp_path) as served:
            assert client.request("GET", served.metadata).status == 404
        with pytest.raises(urllib3.exceptions.NewConnectionError):
            client.request("GET", served.metadata)


def test_a_folder_that_cannot_be_made_is_an_error_of_entering(plan: RegionPlan, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError), serve_azure(new_region_cloud(plan, Scenario()), tmp_path / "file" / "azure"):
        pass


def test_a_broken_identity_is_an_error_of_entering(plan: RegionPlan, tmp_path: Path) -> None:
    (tmp_path / "identity.json").write_text("{")
    with pytest.raises(ValueError, match="Expecting"), serve_azure(new_region_cloud(plan, Scenario()), tmp_path):
        pass
