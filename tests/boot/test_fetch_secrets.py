"""The program that reads a machine's secrets, run against a metadata service and a vault on loopback."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from azure_on_loopback import ACCESS, Azure, azure_on_loopback, certificate
from boot_machines import machines

PROGRAM = Path(__file__).parents[2] / "components/boot/files/fetch_secrets.py"
KEY32 = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
BOOTSTRAP = "abcdef.0123456789abcdef"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def azure(tmp_path: Path) -> Iterator[Azure]:
    """Both services, with a sound set of secrets."""
    with azure_on_loopback(tmp_path) as services:
        services.secrets["server-cert"], services.secrets["server-key"] = certificate()
        services.secrets |= {"encryption-key": KEY32, "bootstrap-token": BOOTSTRAP}
        yield services


@pytest.fixture
def run(azure: Azure, tmp_path: Path) -> Run:
    """Run the program for a machine with all four secrets; keyword arguments change its manifest."""

    def call(deadline: float = 20, **changes: Any) -> subprocess.CompletedProcess[str]:
        manifest = {
            "vault": azure.vault,
            "identity": "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i",
            "directory": str(tmp_path / "pki"),
            "secrets": {"server-cert": "certificate", "server-key": "private-key", "encryption-key": "key32", "bootstrap-token": "token"},
            "keep": ["server-cert", "server-key"],
            "compose": {str(tmp_path / "config/encryption.yaml"): ["key: {{encryption-key}}", "token: {{bootstrap-token}}"]},
        }
        path = tmp_path / "secrets.json"
        path.write_text(json.dumps(manifest | changes))
        environment = {"GPUFLEET_IMDS": azure.imds, "GPUFLEET_DEADLINE_SECONDS": str(deadline), "SSL_CERT_FILE": azure.authority}
        # A proxy in the environment must not be asked for either service.
        environment |= {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "PATH": os.environ["PATH"]}
        command = (sys.executable, str(PROGRAM), str(path))
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    return call


def journal_lines(done: subprocess.CompletedProcess[str], azure: Azure) -> str:
    """Return the output of the program, after a check that it contains no secret."""
    said = done.stdout + done.stderr
    values = [value for value in azure.secrets.values() if isinstance(value, str)]
    lines = [line for value in values for line in value.splitlines() if len(line) > 10 and not line.startswith("-----")]
    assert not [line for line in [*lines, ACCESS] if line in said]
    assert "Traceback" not in said
    return said


def files(folder: Path) -> dict[str, str]:
    """Files that the program left, by name."""
    return {path.name: path.read_text() for part in ("pki", "config") for path in (folder / part).glob("*")}


def test_every_secret_lands_in_place_for_root_alone(run: Run, azure: Azure, tmp_path: Path) -> None:
    done = run()
    assert (done.returncode, journal_lines(done, azure)) == (0, "gpufleet-fetch-secrets: 3 files in place\n")
    assert files(tmp_path) == {
        "server-cert.pem": azure.secrets["server-cert"],
        "server-key.pem": azure.secrets["server-key"],
        "encryption.yaml": f"key: {KEY32}\ntoken: {BOOTSTRAP}\n",
    }
    made = [*(tmp_path / "pki").glob("*"), *(tmp_path / "config").glob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o600}
    assert {stat.S_IMODE((tmp_path / part).stat().st_mode) for part in ("pki", "config")} == {0o700}


def test_the_manifest_of_every_role_is_one_that_the_program_reads(run: Run, azure: Azure, tmp_path: Path) -> None:
    values = {
        "certificate": azure.secrets["server-cert"],
        "private-key": azure.secrets["server-key"],
        "public-key": "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n",
        "key32": KEY32,
        "token": BOOTSTRAP,
    }
    for name in ("dev/dev/etcd", "dev/dev/events", "dev/dev/api", "dev/dev/cpu"):
        manifest = json.loads(machines()[name].file("/etc/gpufleet/secrets.json").content)
        azure.secrets |= {secret: values[kind] for secret, kind in manifest["secrets"].items()}
        folder = tmp_path / name
        places = {"directory": f"{folder}/pki", "compose": {f"{folder}{path}": lines for path, lines in manifest["compose"].items()}}
        done = run(**manifest | places | {"vault": azure.vault})
        assert done.returncode == 0, journal_lines(done, azure)
        assert len([path for path in folder.rglob("*") if path.is_file()]) == len(manifest["keep"]) + len(manifest["compose"])


def test_the_vault_is_asked_only_with_the_machines_token_and_the_metadata_service_with_its_header(run: Run, azure: Azure) -> None:
    assert run().returncode == 0
    tokens = [headers for target, headers in azure.requests if "oauth2" in target]
    assert [headers["Metadata"] for headers in tokens] == ["true"]
    assert {headers["Authorization"] for target, headers in azure.requests if "/secrets/" in target} == {f"Bearer {ACCESS}"}


def test_failures_that_pass_are_waited_out_with_one_line_each(run: Run, azure: Azure) -> None:
    azure.failures = {"/metadata/identity/oauth2/token": [500], "/secrets/server-key": [429, 403]}
    done = run()
    lines = journal_lines(done, azure).splitlines()
    assert done.returncode == 0
    assert [line.partition("; next try in")[0] for line in lines] == [
        "gpufleet-fetch-secrets: secret server-cert: no token from the metadata service: HTTP 500",
        "gpufleet-fetch-secrets: secret server-key: HTTP 429",
        "gpufleet-fetch-secrets: secret server-key: HTTP 403",
        "gpufleet-fetch-secrets: 3 files in place",
    ]


def test_a_token_that_the_vault_refuses_is_replaced(run: Run, azure: Azure) -> None:
    azure.failures = {"/secrets/server-cert": [401]}
    assert run().returncode == 0
    assert len([target for target, _ in azure.requests if "oauth2" in target]) == 2


def test_after_the_deadline_it_ends_with_what_was_missing_and_leaves_nothing(run: Run, azure: Azure, tmp_path: Path) -> None:
    del azure.secrets["bootstrap-token"]
    began = time.monotonic()
    done = run(deadline=4)
    assert time.monotonic() - began < 10
    assert done.returncode == 1
    assert "secret bootstrap-token: HTTP 404; the deadline has passed after" in journal_lines(done, azure).splitlines()[-1]
    assert journal_lines(done, azure).endswith("nothing was written\n")
    assert files(tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "server-cert",
            "-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n",
            "secret server-cert is no PEM certificate",
        ),
        ("server-key", "not a key at all, but quite secret", "secret server-key is no private-key"),
        ("server-key", certificate()[1], "server-cert.pem does not belong to the key beside it"),
        ("encryption-key", base64.b64encode(b"too short to be a key").decode(), "secret encryption-key is not 32 bytes in base64"),
        ("encryption-key", "no base64: a sécret", "secret encryption-key is not 32 bytes in base64"),
        ("bootstrap-token", "ABCDEF.0123456789abcdef", "secret bootstrap-token is no token"),
    ],
    ids=["certificate", "text for a key", "another key", "short key", "no base64", "token"],
)
def test_a_value_of_the_wrong_kind_is_refused_without_being_shown(
    name: str, value: str, reason: str, run: Run, azure: Azure, tmp_path: Path
) -> None:
    azure.secrets[name] = value
    done = run()
    assert done.returncode == 1
    assert journal_lines(done, azure) == f"gpufleet-fetch-secrets: {reason}; nothing was written\n"
    assert files(tmp_path) == {}


def test_files_of_an_earlier_run_stay_and_serve_when_the_vault_is_out_of_reach(run: Run, azure: Azure, tmp_path: Path) -> None:
    assert run().returncode == 0
    before = files(tmp_path)
    azure.failures = {"/secrets/server-cert": [503] * 100}
    done = run(deadline=2)
    assert done.returncode == 0
    assert journal_lines(done, azure).endswith("the files of the last successful run stay\n")
    assert files(tmp_path) == before


def test_a_new_value_replaces_the_old_one_whole(run: Run, azure: Azure, tmp_path: Path) -> None:
    assert run().returncode == 0
    azure.secrets["server-cert"], azure.secrets["server-key"] = certificate()
    assert run().returncode == 0
    assert files(tmp_path)["server-key.pem"] == azure.secrets["server-key"]
    assert not list(tmp_path.rglob("*.next"))


def test_a_redirect_is_not_followed_for_it_would_carry_the_token_away(run: Run, azure: Azure) -> None:
    azure.redirects = {"/secrets/server-cert": f"{azure.imds}/elsewhere"}
    done = run(deadline=2)
    assert done.returncode == 1
    assert "secret server-cert: HTTP 302" in journal_lines(done, azure)
    assert not [target for target, _ in azure.requests if "elsewhere" in target]


def test_a_vault_whose_certificate_nobody_vouches_for_is_not_believed(run: Run, azure: Azure, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_text(certificate()[0])
    azure.authority = str(other)
    done = run(deadline=2)
    assert done.returncode == 1
    assert "SSLCertVerificationError" in journal_lines(done, azure)
    assert not [target for target, _ in azure.requests if "/secrets/" in target]


def test_a_vault_without_tls_is_refused(run: Run, azure: Azure) -> None:
    done = run(vault=azure.imds)
    assert done.returncode == 1
    assert "is not https" in journal_lines(done, azure)
    assert azure.requests == []
