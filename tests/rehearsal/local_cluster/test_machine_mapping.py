"""Paths and addresses of a machine have one place here each; what only looks like an address stays, and what was forgotten is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from components.boot.kubeconfig import document
from rehearsal.local_cluster.machine_mapping import MachineMapping, UnmappedValueError

PORTS = {"dev-etcd-0/2379": 20_001, "dev-etcd-1/2379": 20_002, "dev-api-0/6443": 20_003, "dev-api-lb/6443": 20_004}
HOSTS = {"etcd-0.dev.internal": "dev-etcd-0", "10.0.0.10": "dev-etcd-0", "10.0.0.11": "dev-etcd-1", "api.dev.internal": "dev-api-lb"}


@pytest.fixture
def mapping(tmp_path: Path) -> MachineMapping:
    return MachineMapping("dev-api-0", tmp_path, HOSTS, PORTS.__getitem__, lambda uri: uri.replace("vault.azure.net", "here"))


def test_paths_lie_below_the_machines_folder(mapping: MachineMapping, tmp_path: Path) -> None:
    assert mapping.path("/etc/kubernetes/pki") == tmp_path / "etc/kubernetes/pki"
    for wrong in ("/usr/bin/env", "etc/x", "/etc/../x", "/"):
        with pytest.raises(UnmappedValueError, match="own paths"):
            mapping.path(wrong)


def test_names_addresses_the_balancer_and_loopback_of_a_machine_become_ports(mapping: MachineMapping) -> None:
    assert mapping.addresses("https://etcd-0.dev.internal:2379,https://10.0.0.11:2379") == "https://127.0.0.1:20001,https://127.0.0.1:20002"
    assert (
        mapping.addresses("/events#https://10.0.0.10:2379;https://10.0.0.11:2379")
        == "/events#https://127.0.0.1:20001;https://127.0.0.1:20002"
    )
    assert mapping.addresses("https://127.0.0.1:6443") == "https://127.0.0.1:20003"
    assert mapping.addresses("https://api.dev.internal:6443") == "https://127.0.0.1:20004"


@pytest.mark.parametrize("text", ["https://10.9.9.9:2379", "https://etcd-0.dev.internal", "10.0.0.10:2379"])
def test_an_address_that_nobody_has_or_that_lacks_a_port_is_refused(mapping: MachineMapping, text: str) -> None:
    with pytest.raises(UnmappedValueError):
        mapping.addresses(text)


def test_identifiers_that_look_like_addresses_stay(mapping: MachineMapping) -> None:
    for word in ("--service-account-issuer=https://api.dev.internal:6443", "--external-hostname=api.dev.internal"):
        assert mapping.argument("kube-apiserver", word) == word


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("kube-apiserver", "--some-new-file=/etc/kubernetes/x"),
        ("kube-apiserver", "--some-new-url=https://etcd-0.dev.internal:2379"),
        ("kube-scheduler", "--some-new-list=a,10.0.0.11"),
        ("etcd", "/var/lib/etcd"),
    ],
)
def test_a_path_or_address_in_a_flag_that_no_table_names_is_noticed(mapping: MachineMapping, program: str, word: str) -> None:
    with pytest.raises(UnmappedValueError, match=r"fields\.py"):
        mapping.argument(program, word)


def test_a_kubeconfigs_server_and_files_are_placed_and_its_server_name_stays(mapping: MachineMapping, tmp_path: Path) -> None:
    server = {
        "server": "https://127.0.0.1:6443",
        "tls-server-name": "api.dev.internal",
        "certificate-authority": "/etc/kubernetes/pki/ca.pem",
    }
    text = document(server, {"client-certificate": "/etc/kubernetes/pki/a.pem", "client-key": "/etc/kubernetes/pki/k.pem"})
    found = yaml.safe_load(mapping.content("/etc/kubernetes/x.kubeconfig", text))
    assert found["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:20003",
        "tls-server-name": "api.dev.internal",
        "certificate-authority": f"{tmp_path}/etc/kubernetes/pki/ca.pem",
    }
    assert found["users"][0]["user"]["client-key"] == f"{tmp_path}/etc/kubernetes/pki/k.pem"


def test_a_field_that_no_table_names_is_noticed(mapping: MachineMapping) -> None:
    with pytest.raises(UnmappedValueError, match=r"scheduler\.yaml of dev-api-0, extra\.file"):
        mapping.content("/etc/kubernetes/scheduler.yaml", "extra: {file: /etc/kubernetes/y}\n")


def test_the_manifest_of_secrets_names_the_vault_and_the_folders_here(mapping: MachineMapping, tmp_path: Path) -> None:
    flags = {
        "vault": "https://v.vault.azure.net",
        "identity": "/subscriptions/s/x",
        "directory": "/etc/etcd",
        "compose": {"/etc/etcd/a.pem": ["{{a}}"]},
    }
    found = json.loads(mapping.content("/etc/gpufleet/secrets.json", json.dumps(flags)))
    assert found == {
        "vault": "https://v.here",
        "identity": "/subscriptions/s/x",
        "directory": f"{tmp_path}/etc/etcd",
        "compose": {f"{tmp_path}/etc/etcd/a.pem": ["{{a}}"]},
    }
    flags["compose"] = {"/etc/etcd/a.pem": ["file: /etc/etcd/other"]}
    with pytest.raises(UnmappedValueError, match="path of the machine"):
        mapping.content("/etc/gpufleet/secrets.json", json.dumps(flags))


def test_files_that_only_a_whole_machine_reads_stay_as_they_are(mapping: MachineMapping) -> None:
    assert mapping.content("/etc/sysctl.d/x.conf", "a = /etc/b\n") == "a = /etc/b\n"


def test_the_founding_members_in_the_environment_are_placed(mapping: MachineMapping) -> None:
    found = mapping.environment({"ETCD_INITIAL_CLUSTER": "a=https://10.0.0.10:2379,b=https://10.0.0.11:2379", "GOMEMLIMIT": "5"})
    assert found == {"ETCD_INITIAL_CLUSTER": "a=https://127.0.0.1:20001,b=https://127.0.0.1:20002", "GOMEMLIMIT": "5"}
    with pytest.raises(UnmappedValueError, match="OTHER of dev-api-0"):
        mapping.environment({"OTHER": "https://10.0.0.10:2379"})
