"""The approver's command teaches what it does, and says in one line what is wrong with what it was given."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from services.csr_approver.cli import RESOURCE_MANAGER_VARIABLE, main, resource_manager
from services.csr_approver.leadership import LONGEST_PAUSE_SECONDS, pause_after

AZURE = ["--subscription", "sub", "--resource-group", "gf-southcentralus-frontier", "--scale-set-prefix", "frontier-"]
AZURE += ["--node-vault", "https://nodes.vault.azure.net/"]


def test_the_help_says_what_is_approved_what_waits_and_how_to_look() -> None:
    text = CliRunner().invoke(main, ["--help"]).output
    for word in (
        "--kubeconfig",
        "--subscription",
        "--resource-group",
        "--scale-set-prefix",
        "Lease",
        "kubectl get csr",
        "status 1",
        "stays pending",
        "GPUFLEET_RESOURCE_MANAGER",
        "AZURE_POD_IDENTITY_AUTHORITY_HOST",
    ):
        assert word in text


@pytest.mark.parametrize("content", ["", "nonsense", "[1, 2]", "a: [", "apiVersion: v1\nkind: Config\n", "current-context: x\n"])
def test_a_file_that_is_no_kubeconfig_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(content)
    done = CliRunner().invoke(main, ["--kubeconfig", str(kubeconfig), *AZURE])
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    (line,) = done.output.strip().splitlines()
    assert "is not a usable kubeconfig" in line
    assert "current-context" in line


def test_a_missing_option_or_file_is_a_usage_error(tmp_path: Path) -> None:
    assert CliRunner().invoke(main, ["--kubeconfig", str(tmp_path / "none"), *AZURE]).exit_code == 2
    assert CliRunner().invoke(main, AZURE).exit_code == 2


def test_a_renewed_kubeconfig_ends_it_so_that_it_is_read_at_the_next_start(tmp_path: Path) -> None:
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "approver"}}],
        "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "approver", "user": {"token": "old"}}],
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(document))
    script = "from services.csr_approver import cli; cli.KUBECONFIG_CHECK_SECONDS = 0.2; cli.main()"
    argv = [sys.executable, "-u", "-c", script, "--kubeconfig", str(kubeconfig), *AZURE]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as approver:
        assert approver.stdout is not None
        assert "the API server does not answer" in approver.stdout.readline()
        # As every writer of secrets does: a half-written file is never seen, an empty one is none.
        part = tmp_path / "part"
        part.write_text(json.dumps({**document, "users": [{"name": "approver", "user": {"token": "new"}}]}))
        part.replace(kubeconfig)
        assert approver.wait(60) == 0
        assert "was renewed" in approver.stdout.read()


def test_the_pause_after_a_failure_doubles_up_to_a_minute() -> None:
    assert [pause_after(failures) for failures in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert pause_after(10_000) == LONGEST_PAUSE_SECONDS


def test_azure_is_asked_where_the_environment_says_and_at_its_public_address_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RESOURCE_MANAGER_VARIABLE, raising=False)
    assert resource_manager() == "https://management.azure.com"
    monkeypatch.setenv(RESOURCE_MANAGER_VARIABLE, "https://127.0.0.1:4430/")
    assert resource_manager() == "https://127.0.0.1:4430"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1", "127.0.0.1:443", "https://", "https://a/b", "https://a?b", "https://u@a", "https://a:0", "https://a:x"]
)
def test_an_address_to_which_a_token_should_not_go_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv(RESOURCE_MANAGER_VARIABLE, url)
    with pytest.raises(click.ClickException, match="give https://HOST"):
        resource_manager()
