"""Flags and configuration of services match the programs' versions, the plan and each other, and contain no secret."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from boot_machines import flags_of, machines, regions

from cni import conflists
from cni import settings as network_settings
from components.api_servers import PROBE_FAILURES, PROBE_SECONDS
from components.boot import etcd_flags, kube_apiserver, kubelet
from components.boot.machine import MachineBoot, cloud_config
from components.boot.shared_settings import FEATURE_GATES, LEASE_SECONDS
from components.manifests.gpu import RUNTIME_CLASS
from components.plan.model import ClusterPlan
from components.plan.vm_sizes import VM_SIZES, VmSize

KNOWN_FLAGS: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "known_flags.json").read_text())
"""Flags that each program's --help lists in the version named."""
BOOT = Path(kubelet.__file__).parent
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
WRITTEN_BY_PROGRAMS = {"/etc/kubernetes/kubelet.kubeconfig", "/var/log/kubernetes/audit.log"}
CLUSTERS: dict[str, ClusterPlan] = {f"{region.name}/{cluster.name}": cluster for region in regions() for cluster in region.clusters}


def units(boot: MachineBoot) -> dict[str, dict[str, str]]:
    """Flags of each of the machine's services, by program."""
    services = [item.content for item in boot.files if "\nExecStart=/usr/local/bin/" in item.content]
    return {re.findall(r"^ExecStart=/usr/local/bin/(\S+)", text, re.MULTILINE)[0]: flags_of(text) for text in services}


def manifest(boot: MachineBoot) -> dict[str, Any]:
    """Return the manifest of secrets that the machine fetches."""
    found: dict[str, Any] = json.loads(boot.file("/etc/gpufleet/secrets.json").content)
    return found


def secret_paths(boot: MachineBoot) -> set[str]:
    """Files that the machine makes of its secrets."""
    found = manifest(boot)
    return {f"{found['directory']}/{name}.pem" for name in found["keep"]} | set(found["compose"])


@pytest.mark.parametrize("name", machines())
def test_every_flag_exists_in_the_programs_version(name: str) -> None:
    for program, flags in units(machines()[name]).items():
        if program in KNOWN_FLAGS:
            assert set(flags) <= set(KNOWN_FLAGS[program]["flags"].split()), program


def test_the_known_flags_are_those_of_the_versions_that_the_images_carry() -> None:
    packages = [image.definition.packages for region in regions() for image in region.gallery.images]
    versions = {version for item in packages for version in (item.kubernetes, item.kubelet) if version}
    assert versions == {KNOWN_FLAGS[program]["version"] for program in KNOWN_FLAGS if program.startswith("kube")}
    assert {item.etcd for item in packages if item.etcd} == {KNOWN_FLAGS["etcd"]["version"]}


@pytest.mark.parametrize("name", machines())
def test_every_file_that_a_service_or_a_kubeconfig_names_is_written_at_boot(name: str) -> None:
    boot = machines()[name]
    texts = [item.content for item in boot.files if item.path.endswith((".service", ".kubeconfig", ".yaml"))]
    composed = [line for lines in manifest(boot)["compose"].values() for line in lines]
    named = set(re.findall(r"/etc/(?:kubernetes|etcd)/[\w/.-]+|/var/log/kubernetes/[\w.-]+", "\n".join(texts + composed)))
    assert named
    assert named <= {item.path for item in boot.files} | secret_paths(boot) | WRITTEN_BY_PROGRAMS


@pytest.mark.parametrize("name", machines())
def test_a_machine_reads_only_secrets_that_the_plan_puts_into_its_vault(name: str) -> None:
    boot = machines()[name]
    cluster = CLUSTERS[name.rpartition("/")[0]]
    role = {"api-server": "control", "etcd": "etcd", "events": "etcd", "node": "node"}[boot.role]
    found = manifest(boot)
    assert set(found["secrets"]) <= set(cluster.vault(role).secrets)
    assert found["vault"] == cluster.vault(role).uri
    placeholders = {name for lines in found["compose"].values() for line in lines for name in re.findall(r"\{\{(.*?)\}\}", line)}
    assert set(found["keep"]) | placeholders == set(found["secrets"])


def test_an_etcd_member_reads_its_own_key_and_no_other_members() -> None:
    for cluster in CLUSTERS.values():
        for ring in (cluster.etcd, cluster.events_etcd):
            for member in ring.members:
                keys = [name for name in etcd_flags.secrets_of(ring, member).stored if name.endswith("-key")]
                assert keys == [f"{ring.role}-{member.member}-key"]


@pytest.mark.parametrize("name", machines())
def test_no_key_token_or_certificate_stands_in_a_document(name: str) -> None:
    document = cloud_config(machines()[name])
    assert not re.findall(r"-----BEGIN [A-Z ]+-----\s+[A-Za-z0-9+/=]{16,}", document)
    assert all("{{bootstrap-token}}" in found for found in re.findall(r"^ .*\btoken: .*", document, re.MULTILINE))
    assert not re.findall(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b", document)
    assert not re.findall(r"(?<![A-Za-z0-9+/=_.-])[A-Za-z0-9+/]{43}=", document)


def test_what_writes_boot_documents_never_sees_a_secret() -> None:
    imported: set[str] = set()
    for path in (*BOOT.glob("*.py"), *map(Path, (conflists.__file__, network_settings.__file__))):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
    ours = {module for module in imported if module.startswith(("components.", "cni"))}
    assert {".".join(module.split(".")[:2]) for module in ours} == {"cni", "components.boot", "components.plan", "components.spec"}
    assert imported - ours <= {"__future__", "base64", "collections.abc", "dataclasses", "functools", "hashlib", "json", "pathlib", "yaml"}


@pytest.mark.parametrize("name", machines())
def test_every_configuration_file_parses(name: str) -> None:
    boot = machines()[name]
    for item in boot.files:
        if item.path.endswith((".yaml", ".kubeconfig", ".cfg")):
            assert isinstance(yaml.safe_load(item.content), dict), item.path
        elif item.path.endswith(".toml"):
            assert tomllib.loads(item.content)["version"] == 3
    for path, lines in manifest(boot)["compose"].items():
        if not path.endswith(".pem"):
            assert {"apiVersion", "kind"} <= set(yaml.safe_load("\n".join(lines)))


@pytest.mark.parametrize("name", CLUSTERS)
def test_events_have_a_ring_of_their_own_whose_servers_are_separated_by_semicolons(name: str) -> None:
    cluster = CLUSTERS[name]
    flags = units(machines()[f"{name}/api"])["kube-apiserver"]
    assert flags["etcd-servers"].split(",") == list(cluster.etcd.client_urls)
    group, _, servers = flags["etcd-servers-overrides"].partition("#")
    assert (group, servers.split(";")) == ("/events", list(cluster.events_etcd.client_urls))


def test_no_etcd_member_is_started_with_a_flag_that_risks_its_data() -> None:
    risky = {"unsafe-no-fsync", "force-new-cluster", "auto-tls", "peer-auto-tls", "initial-cluster-state"}
    for name, boot in machines().items():
        flags = units(boot).get("etcd", {})
        assert not risky & set(flags), name
        assert all(flag not in flags or flags[flag] == "true" for flag in ("client-cert-auth", "peer-client-cert-auth"))


def test_gangs_are_switched_on_in_all_three_programs_or_in_none() -> None:
    for name in CLUSTERS:
        programs = units(machines()[f"{name}/api"])
        gates = {programs[program]["feature-gates"] for program in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")}
        assert gates == {",".join(FEATURE_GATES)}
        assert "WorkloadAwarePreemption" not in gates.pop()
        assert programs["kube-apiserver"]["runtime-config"] == "scheduling.k8s.io/v1alpha2=true"


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_node_counts_as_lost_only_after_five_missed_renewals_of_its_lease(name: str) -> None:
    grace = units(machines()[f"{name}/api"])["kube-controller-manager"]["node-monitor-grace-period"]
    nodes = [boot for key, boot in machines().items() if key.startswith(f"{name}/") and boot.role == "node"]
    leases = {yaml.safe_load(boot.file("/etc/kubernetes/kubelet.yaml").content)["nodeLeaseDurationSeconds"] for boot in nodes}
    assert leases == {LEASE_SECONDS}
    assert int(grace.removesuffix("s")) >= 5 * LEASE_SECONDS / 4


def test_an_api_server_that_stops_stays_up_until_the_load_balancer_has_seen_it_and_its_clients_have_gone() -> None:
    assert kube_apiserver.SHUTDOWN_DELAY_SECONDS > PROBE_SECONDS * PROBE_FAILURES
    unit = machines()["dev/dev/api"].file("/etc/systemd/system/kube-apiserver.service").content
    stop = int(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[0])
    assert stop > kube_apiserver.SHUTDOWN_DELAY_SECONDS + kube_apiserver.REQUEST_TIMEOUT_SECONDS + kube_apiserver.WATCH_DRAIN_SECONDS


def test_only_health_is_answered_without_a_name() -> None:
    document = yaml.safe_load(machines()["dev/dev/api"].file("/etc/kubernetes/authentication.yaml").content)
    assert [item["path"] for item in document["anonymous"]["conditions"]] == ["/livez", "/readyz", "/healthz"]
    assert "anonymous-auth" not in units(machines()["dev/dev/api"])["kube-apiserver"]


def test_the_audit_log_never_holds_a_body_of_a_resource_with_credentials() -> None:
    rules = yaml.safe_load(machines()["dev/dev/api"].file("/etc/kubernetes/audit.yaml").content)["rules"]
    bodies = next(place for place, rule in enumerate(rules) if rule["level"] in {"Request", "RequestResponse"})
    covered = {
        resource
        for rule in rules[:bodies]
        if rule["level"] == "Metadata"
        for group in rule.get("resources", [])
        for resource in group["resources"]
    }
    assert {"secrets", "configmaps", "serviceaccounts/token", "tokenreviews"} <= covered


def test_every_read_of_a_secret_leaves_a_trace_whoever_reads() -> None:
    rules = yaml.safe_load(machines()["dev/dev/api"].file("/etc/kubernetes/audit.yaml").content)["rules"]
    first = next(rule for rule in rules if "secrets" in {name for group in rule.get("resources", []) for name in group["resources"]})
    assert set(first) == {"level", "resources"}
    assert first["level"] == "Metadata"
    silent = [rule for rule in rules[: rules.index(first)] if rule["level"] == "None"]
    assert all(rule.get("resources") for rule in silent)


def test_an_api_server_reads_all_of_its_vault_but_the_key_of_the_people_who_look_into_events() -> None:
    for name, cluster in CLUSTERS.items():
        unread = set(cluster.vault("control").secrets) - set(manifest(machines()[f"{name}/api"])["secrets"])
        assert unread == {"events-client-cert", "events-client-key"}


@pytest.mark.parametrize("name", machines())
def test_secrets_are_read_again_every_six_hours_by_a_unit_that_nothing_depends_on(name: str) -> None:
    boot = machines()[name]
    units = {item.path.rpartition("/")[2]: item.content.splitlines() for item in boot.files if item.path.startswith("/etc/systemd/system/")}
    refresh = units["gpufleet-secrets-refresh.service"]
    assert [line for line in refresh if line.startswith("ExecStart=")] == ["ExecStart=/usr/local/sbin/gpufleet-fetch-secrets"]
    assert "RemainAfterExit=yes" not in refresh
    assert not [line for line in refresh if line.startswith(("Requires=", "PartOf=", "BindsTo=", "OnFailure="))]
    others = [line for unit, lines in units.items() if not unit.startswith("gpufleet-secrets-refresh") for line in lines]
    assert not [line for line in others if "gpufleet-secrets-refresh" in line]
    timer = units["gpufleet-secrets-refresh.timer"]
    assert {"OnActiveSec=6h", "OnUnitActiveSec=6h", "RandomizedDelaySec=1h", "WantedBy=timers.target"} <= set(timer)
    assert "gpufleet-secrets-refresh.timer" in boot.enable


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_certificate_approver_knows_every_scale_set_of_every_pool_by_its_prefix(name: str) -> None:
    prefix = units(machines()[f"{name}/api"])["gpufleet-csr-approver"]["scale-set-prefix"]
    assert all(item.name.startswith(prefix) for pool in CLUSTERS[name].pools for item in pool.scale_sets)


def test_every_label_of_every_node_is_one_that_kubernetes_takes() -> None:
    for region in regions():
        for cluster in region.clusters:
            for pool in cluster.pools:
                for scale_set in pool.scale_sets:
                    labels = kubelet.labels(region, pool, scale_set)
                    assert all(LABEL_VALUE.fullmatch(value) for value in labels.values()), labels
                    assert labels.get("gpufleet.io/ib-domain") == scale_set.infiniband_domain


def test_a_spot_node_registers_with_the_plans_taint() -> None:
    configuration = yaml.safe_load(machines()["swedencentral/nordic/h100-spot"].file("/etc/kubernetes/kubelet.yaml").content)
    assert configuration["registerWithTaints"] == [{"key": "gpufleet.io/spot", "value": "true", "effect": "NoSchedule"}]


@pytest.mark.parametrize("size", VM_SIZES.values(), ids=VM_SIZES)
def test_every_vm_size_keeps_most_of_its_cpus_and_memory_for_pods(size: VmSize) -> None:
    cluster = regions()[0].clusters[0]
    configuration = yaml.safe_load(kubelet.configuration(cluster, dataclasses.replace(cluster.pools[0], size=size)))
    reserved = configuration["systemReserved"]
    assert int(reserved["memory"].removesuffix("Mi")) < size.memory_gib * 1024 / 5
    numbers = re.findall(r"\d+", configuration.get("reservedSystemCPUs", ""))
    assert all(int(number) < size.vcpus for number in numbers)
    assert ("cpu" in reserved) != bool(numbers)


@pytest.mark.parametrize("name", [name for name, boot in machines().items() if boot.role == "node"])
def test_nvidias_runtime_is_there_by_the_name_that_pods_use_and_never_the_default(name: str) -> None:
    boot = machines()[name]
    runtime = tomllib.loads(boot.file("/etc/containerd/config.toml").content)["plugins"]["io.containerd.cri.v1.runtime"]["containerd"]
    has_gpus = any(item.path.endswith("gpufleet-gpu-persistence.service") for item in boot.files)
    assert runtime["default_runtime_name"] == "runc"
    assert (RUNTIME_CLASS in runtime["runtimes"]) == has_gpus
