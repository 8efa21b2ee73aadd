"""The report of certificates: all of a region, from kept and from served vaults, in any terminal, with exit statuses for a schedule."""

from __future__ import annotations

import importlib
import json
import shlex
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.identity import ClientSecretCredential
from azure.keyvault.secrets import SecretClient
from rich.console import Console

from components.pki_certificates import AUTHORITIES, certificates_of
from components.pki_provider import AUTHORITY_LIFETIME, LEAF_LIFETIME
from components.plan.model import VaultPlan
from components.x509 import Authority, Subject, issue_authority, issue_leaf, renewal_due
from gpufleet.certificate_report import CertificateInvalidError, holders, report
from gpufleet.certificate_vaults import VaultReadError, read_embedded, read_key_vaults
from gpufleet.certificates import draw
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.persistence import save
from rehearsal.azure.region_cloud import open_region_cloud
from rehearsal.azure.scenario import Scenario
from rehearsal.azure.state_directory import StateDirectory
from rehearsal.local_cluster.azure_service import serve_azure
from rehearsal.local_up.up import bring_up
from rehearsal.local_up.update_state import Approvals
from stacks.load import load_plan

certificates = importlib.import_module("gpufleet.certificates")
ROOT = Path(__file__).parents[2]
GPUFLEET = Path(sys.executable).with_name("gpufleet")
REGIONS = ("dev", "southcentralus", "swedencentral")
DEV = load_plan("dev")
WANTED = holders(DEV.clusters[0])
NAMES = {leaf.name for leaf in certificates_of(DEV.clusters[0])} | {f"{role}-ca" for role in AUTHORITIES}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Cloud]:
    """A directory with the embedded Azure of dev after an up, and that Azure."""
    folder = tmp_path_factory.mktemp("certificates") / "state"
    with StateDirectory(folder) as directory:
        outcome = bring_up(DEV, open_region_cloud(directory, DEV, Scenario()), Approvals(), lambda *_: None)
        assert outcome.complete
        save(directory, outcome.cloud)
    return folder, outcome.cloud


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([GPUFLEET, "certificates", *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("region", REGIONS)
def test_every_certificate_of_every_cluster_is_explained_and_placed(region: str) -> None:
    for cluster in load_plan(region).clusters:
        listed = holders(cluster)
        assert {one.name for one in listed} == {leaf.name for leaf in certificates_of(cluster)} | {f"{role}-ca" for role in AUTHORITIES}
        assert {one.name for one in listed if not one.machines} == {"events-client"}
        for ring in (cluster.etcd, cluster.events_etcd):
            for member in ring.members:
                (own,) = [one for one in listed if one.name == f"{ring.role}-{member.member}"]
                assert own.machines == (member.name,)


def test_the_command_lists_all_and_changes_nothing(kept: tuple[Path, Cloud]) -> None:
    folder, _ = kept
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = run("dev", "--state", folder)
    assert result.returncode == 0, result.stderr
    assert all(f" {name} " in result.stdout for name in NAMES)
    assert result.stdout.splitlines()[-1] == (
        f"dev: 19 certificates of 1 cluster; the first ends in 365 days; read from the embedded Azure in {folder}"
    )
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_schedule_is_told_by_the_exit_status(kept: tuple[Path, Cloud]) -> None:
    assert run("dev", "--state", kept[0], "--within", "30").returncode == 0
    result = run("dev", "--state", kept[0], "--within", "400", "--json")
    assert result.returncode == 1
    document = json.loads(result.stdout)
    assert document["source"] == f"the embedded Azure in {kept[0]}"
    rows = document["certificates"]
    assert {row["name"] for row in rows} == NAMES
    assert [row["ends"] for row in rows] == sorted(row["ends"] for row in rows)
    assert sum(row["days_left"] < 400 for row in rows) == len(NAMES) - len(AUTHORITIES)


def test_a_directory_without_an_azure_is_refused_in_one_line(tmp_path: Path) -> None:
    result = run("dev", "--state", tmp_path / "none")
    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        f"{tmp_path}/none: contains no embedded Azure; create the region first: gpufleet up dev --state {tmp_path}/none"
    ]
    assert not (tmp_path / "none").exists()


def test_a_failed_read_of_azure_names_the_command_that_reads_the_local_model(
    kept: tuple[Path, Cloud], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "OUT", tmp_path)
    assert certificates._local_hint("dev", DEV) == ""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "azure").symlink_to(kept[0])
    hint = certificates._local_hint("dev", DEV)
    assert hint.startswith("; these are the key vaults of Azure: to read your embedded Azure, run gpufleet certificates dev --state ")
    assert run(*shlex.split(hint.partition("gpufleet certificates ")[2])).returncode == 0


def test_vaults_over_https_hold_what_the_kept_ones_hold(kept: tuple[Path, Cloud], tmp_path: Path) -> None:
    folder, cloud = kept
    with serve_azure(cloud, tmp_path / "served") as azure:
        closing = ExitStack()
        who = closing.enter_context(
            ClientSecretCredential(
                DEV.spec.access.tenant,
                azure.identity.client,
                azure.identity.secret,
                authority=azure.base,
                disable_instance_discovery=True,
                connection_verify=str(azure.authority),
            )
        )

        def client(vault: VaultPlan) -> SecretClient:
            address = azure.vault_uri(vault.uri)
            return SecretClient(address, who, verify_challenge_resource=False, connection_verify=str(azure.authority))

        assert read_key_vaults(WANTED, client) == read_embedded(WANTED, DEV, folder)
        lost = replace(WANTED[0], secret="nothing-cert")  # noqa: S106 a secret's name
        with pytest.raises(VaultReadError, match="nothing-cert: is not in the vault; run pulumi refresh, then pulumi up"):
            read_key_vaults([lost], client)
        closing.close()


@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_no_line_is_wider_than_the_terminal(kept: tuple[Path, Cloud], width: int, capsys: pytest.CaptureFixture[str]) -> None:
    rows = report(read_embedded(WANTED, DEV, kept[0]), datetime.now(UTC))
    draw(Console(width=width, highlight=False), rows, frozenset())
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    joined = " ".join(" ".join(lines).split())
    assert all(row.name in joined and row.purpose in joined for row in rows)


@pytest.mark.parametrize(
    ("days", "todo"),
    [(0, "pulumi up renews it from"), (250, "pulumi up renews it now"), (366, "ended: pulumi up, then restart what holds it")],
)
def test_a_leaf_is_due_when_the_update_would_renew_it(days: int, todo: str) -> None:
    now = datetime.now(UTC)
    begun = now - timedelta(days=days)
    authority = issue_authority("dev cluster CA", AUTHORITY_LIFETIME, begun)
    subject = Subject("kube-apiserver", (), ("localhost",), (), ("server",))
    leaf = issue_leaf(subject, Authority(authority.certificate, authority.private_key), LEAF_LIFETIME, begun)
    (holder,) = [one for one in WANTED if one.name == "apiserver"]
    (row,) = report([(holder, leaf.certificate)], now)
    assert row.todo.startswith(todo)
    assert (row.due < now) == renewal_due(leaf.issued_at, leaf.not_after, now)
    assert row.ends == datetime.fromisoformat(leaf.not_after)


def test_an_authority_is_a_persons_decision() -> None:
    now = datetime.now(UTC)
    old = issue_authority("dev etcd CA", AUTHORITY_LIFETIME, now - timedelta(days=3_000))
    holder = next(one for one in WANTED if one.name == "etcd-ca")
    (row,) = report([(holder, old.certificate)], now)
    assert row.todo == "plan its replacement: raise the cluster's ca_generation"


def test_two_certificates_under_one_name_are_two_rows() -> None:
    now = datetime.now(UTC)
    authorities = [issue_authority("dev etcd CA", AUTHORITY_LIFETIME, now).certificate for _ in range(2)]
    both = [one for one in WANTED if one.name == "etcd-ca"]
    assert len(report(zip(both, authorities, strict=True), now)) == 2
    (one,) = report(((holder, authorities[0]) for holder in both), now)
    assert len(one.vaults) == 2


def test_what_is_no_certificate_is_named() -> None:
    with pytest.raises(CertificateInvalidError, match=f"{WANTED[0].vault.name}/{WANTED[0].secret} does not contain a PEM certificate"):
        report([(WANTED[0], "gone")], datetime.now(UTC))
