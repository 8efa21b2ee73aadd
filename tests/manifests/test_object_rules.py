"""Rules for all Kubernetes objects of all clusters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from planned_objects import WORKLOADS, clusters, containers, objects, of_kind

from components.manifests.objects import APPLY_ORDER
from components.manifests.owned import MANAGED_BY, PART_OF
from components.manifests.priorities import CLUSTER_CRITICAL, NODE_CRITICAL, PRIORITIES
from components.plan.access import PREFLIGHT_ACCOUNT, ROTATION_ACCOUNT
from components.spec.pool import PriorityClass

every_cluster = pytest.mark.parametrize("name", list(clusters()))
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
EXACT_IMAGE = re.compile(r"[a-z0-9.-]+(/[a-z0-9._-]+)+:v?\d+\.\d+\.\d+[a-z0-9.-]*(@sha256:[0-9a-f]{64})?")
BUILT_IN_NAMESPACES = {"kube-system", "kube-node-lease"}
STRICTEST = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "kube-proxy/init": {"privileged": True, "runAsNonRoot": False, "runAsUser": 0, "allowPrivilegeEscalation": None, "capabilities": None},
    "kube-proxy/kube-proxy": {"runAsNonRoot": False, "runAsUser": 0, "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}},
    "node-local-dns/node-cache": {
        "runAsNonRoot": False,
        "runAsUser": 0,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_BIND_SERVICE"]},
    },
    "coredns/coredns": {"runAsUser": 65_532, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}},
    "nvidia-device-plugin/nvidia-device-plugin": {"runAsNonRoot": False, "runAsUser": 0},
    "rdma-shared-device-plugin/rdma-shared-device-plugin": {
        "runAsNonRoot": False,
        "runAsUser": 0,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
    },
    "dcgm-exporter/dcgm-exporter": {"runAsNonRoot": False, "runAsUser": 0},
    "gpufleet-traffic/exporter": {
        "runAsNonRoot": False,
        "runAsUser": 0,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW"]},
    },
}
"""Exceptions of containers from the strictest security context; None means that the field is absent."""


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar, and every empty container, inside a value."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


def _pod(item: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = item["spec"]["template"]["spec"]
    return spec


@every_cluster
def test_every_container_asks_for_and_is_limited_to_some_cpu_and_memory(name: str) -> None:
    for where, container in containers(name):
        for side in ("requests", "limits"):
            assert set(container["resources"][side]) == {"cpu", "memory"}, (where, side)


@every_cluster
def test_every_image_is_of_an_exact_version(name: str) -> None:
    for where, container in containers(name):
        assert EXACT_IMAGE.fullmatch(container["image"]), (where, container["image"])


@every_cluster
def test_kube_proxy_is_of_the_clusters_own_version(name: str) -> None:
    (proxy,) = {container["image"] for where, container in containers(name) if where.startswith("kube-proxy/")}
    assert proxy.endswith(f":v{clusters()[name][1].spec.kubernetes}")


@every_cluster
def test_every_security_context_is_the_strictest_but_for_the_listed_exceptions(name: str) -> None:
    for where, container in containers(name):
        expected = {key: value for key, value in (STRICTEST | EXCEPTIONS.get(where, {})).items() if value is not None}
        assert container["securityContext"] == expected, where


@every_cluster
def test_every_pod_runs_under_the_runtimes_default_seccomp_profile(name: str) -> None:
    for item in of_kind(name, *WORKLOADS):
        assert _pod(item)["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}


@every_cluster
def test_no_role_has_a_wildcard(name: str) -> None:
    for item in of_kind(name, "Role", "ClusterRole"):
        for rule in item["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]], item["metadata"]["name"]


@every_cluster
def test_every_service_account_that_is_used_is_one_of_ours(name: str) -> None:
    accounts = {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in of_kind(name, "ServiceAccount")}
    used = {(item["metadata"]["namespace"], _pod(item)["serviceAccountName"]) for item in of_kind(name, *WORKLOADS)}
    bound = {
        (subject["namespace"], subject["name"])
        for item in of_kind(name, "RoleBinding", "ClusterRoleBinding")
        for subject in item["subjects"]
        if subject["kind"] == "ServiceAccount"
    }
    # Nobody runs as the rotation, which acts from outside; nodes are not tested yet.
    assert accounts - used == {("gpufleet-system", ROTATION_ACCOUNT), ("gpufleet-system", PREFLIGHT_ACCOUNT)}
    assert used <= accounts
    assert bound <= accounts


@every_cluster
def test_every_role_of_ours_that_is_bound_exists(name: str) -> None:
    ours = {(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in of_kind(name, "Role", "ClusterRole")}
    for item in of_kind(name, "RoleBinding", "ClusterRoleBinding"):
        ref, namespace = item["roleRef"], item["metadata"].get("namespace")
        if ref["kind"] == "Role" or ref["name"].startswith("gpufleet"):
            assert (ref["kind"], namespace if ref["kind"] == "Role" else None, ref["name"]) in ours


@every_cluster
def test_only_kube_proxy_and_what_asks_its_kubelet_hold_a_token_among_the_daemon_sets(name: str) -> None:
    for item in of_kind(name, "DaemonSet"):
        daemon = item["metadata"]["name"]
        assert _pod(item)["automountServiceAccountToken"] is (daemon == "kube-proxy")
        assert any("projected" in volume for volume in _pod(item)["volumes"]) is (daemon == "gpufleet-traffic")


@every_cluster
def test_no_daemon_takes_a_pod_address_from_the_network(name: str) -> None:
    assert all(_pod(item)["hostNetwork"] for item in of_kind(name, "DaemonSet"))


@every_cluster
def test_every_name_is_a_dns_name(name: str) -> None:
    for item in objects(name):
        assert SUBDOMAIN.fullmatch(item["metadata"]["name"]), item["metadata"]["name"]
        assert len(item["metadata"]["name"]) <= 63


@every_cluster
def test_every_object_and_every_pod_says_whose_it_is(name: str) -> None:
    for item in objects(name):
        labels = [item["metadata"]["labels"]] + ([item["spec"]["template"]["metadata"]["labels"]] if item["kind"] in WORKLOADS else [])
        for marks in labels:
            assert marks[MANAGED_BY] == "gpufleet"
            assert marks[PART_OF] == item["metadata"]["labels"][PART_OF] != ""


@every_cluster
def test_every_namespace_that_is_named_is_built_in_or_created(name: str) -> None:
    known = BUILT_IN_NAMESPACES | {item["metadata"]["name"] for item in of_kind(name, "Namespace")}
    for item in objects(name):
        assert item["metadata"].get("namespace", "kube-system") in known
        assert {subject.get("namespace", "kube-system") for subject in item.get("subjects", [])} <= known


@every_cluster
def test_no_object_holds_a_null_or_an_empty_value_that_server_side_apply_would_own(name: str) -> None:
    for item in objects(name):
        empty = [path for path, value in _leaves(item) if value is None or value in ({}, [], "")]
        # The core group's name is the empty text.
        assert [path for path in empty if not path.endswith(".apiGroups[0]")] == [], item["metadata"]["name"]


@every_cluster
def test_every_list_that_server_side_apply_merges_by_key_has_unique_keys(name: str) -> None:
    rows: list[tuple[str, Any]] = []
    for where, container in containers(name):
        rows += [(f"{where} port name", port["name"]) for port in container.get("ports", [])]
        rows += [(f"{where} port", (port["containerPort"], port["protocol"])) for port in container.get("ports", [])]
        rows += [(f"{where} env", variable["name"]) for variable in container.get("env", [])]
        rows += [(f"{where} mount", mount["mountPath"]) for mount in container.get("volumeMounts", [])]
    for item in of_kind(name, "Service"):
        rows += [(f"{item['metadata']['name']} port name", port["name"]) for port in item["spec"]["ports"]]
        rows += [(f"{item['metadata']['name']} port", (port["port"], port["protocol"])) for port in item["spec"]["ports"]]
    for item in of_kind(name, *WORKLOADS):
        rows += [(f"{item['metadata']['name']} volume", volume["name"]) for volume in _pod(item)["volumes"]]
    assert [row for row, count in Counter(rows).items() if count > 1] == []


@every_cluster
def test_no_two_daemons_listen_on_the_same_port_of_a_node(name: str) -> None:
    listening = [
        (port["containerPort"], port["protocol"])
        for item in of_kind(name, "DaemonSet")
        for container in _pod(item)["containers"]
        for port in container.get("ports", [])
    ]
    assert len(listening) == len(set(listening))


@every_cluster
def test_every_mount_has_its_volume_and_every_config_map_exists_and_never_changes(name: str) -> None:
    maps = {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in of_kind(name, "ConfigMap")}
    assert all(item["immutable"] for item in maps.values())
    for item in of_kind(name, *WORKLOADS):
        volumes = {volume["name"]: volume for volume in _pod(item)["volumes"]}
        mounted = {mount["name"] for container in _pod(item)["containers"] for mount in container["volumeMounts"]}
        assert mounted == set(volumes), item["metadata"]["name"]
        for volume in volumes.values():
            if "configMap" in volume:
                source = maps.pop((item["metadata"]["namespace"], volume["configMap"]["name"]))
                assert {row["key"] for row in volume["configMap"].get("items", [])} <= set(source["data"])
    assert maps == {}, "a ConfigMap that no pod mounts"


@every_cluster
def test_every_priority_class_of_a_pod_is_built_in_or_ours(name: str) -> None:
    known = {NODE_CRITICAL, CLUSTER_CRITICAL} | {item["metadata"]["name"] for item in of_kind(name, "PriorityClass")}
    assert {_pod(item)["priorityClassName"] for item in of_kind(name, *WORKLOADS)} <= known


def test_the_priorities_of_jobs_rise_in_the_order_of_the_region_file() -> None:
    values = {row.name: row.value for row in PRIORITIES}
    rising = [values[item.value] for item in PriorityClass]
    assert rising == sorted(set(rising))
    assert [row.name for row in PRIORITIES if row.default] == [PriorityClass.NORMAL.value]


@every_cluster
def test_what_others_refer_to_is_applied_before_them_and_nothing_twice(name: str) -> None:
    places = [APPLY_ORDER.index(item["kind"]) for item in objects(name)]
    assert places == sorted(places)
    identities = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in objects(name)]
    assert len(identities) == len(set(identities))


@every_cluster
def test_gpu_and_infiniband_daemons_exist_exactly_where_pools_have_the_hardware(name: str) -> None:
    cluster = clusters()[name][1]
    daemons = {item["metadata"]["name"] for item in of_kind(name, "DaemonSet")}
    has_gpus = any(pool.size.gpus for pool in cluster.pools)
    assert ({"nvidia-device-plugin", "dcgm-exporter"} <= daemons) is has_gpus
    assert ("rdma-shared-device-plugin" in daemons) is any(pool.spec.interconnect.value == "infiniband" for pool in cluster.pools)


@every_cluster
def test_gpu_daemons_select_by_labels_that_the_plan_gives_to_gpu_pools_alone(name: str) -> None:
    pools = clusters()[name][1].pools
    for item in of_kind(name, "DaemonSet"):
        affinity = _pod(item).get("affinity")
        if affinity:
            (term,) = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            (expression,) = term["matchExpressions"]
            assert expression["operator"] == "Exists"
            assert {pool.name for pool in pools if expression["key"] in pool.labels} == {pool.name for pool in pools if pool.size.gpus}
        selector = _pod(item).get("nodeSelector", {})
        chosen = {pool.name for pool in pools if selector.items() <= pool.labels.items()}
        assert chosen, item["metadata"]["name"]
        if "rdma" in item["metadata"]["name"]:
            assert chosen == {pool.name for pool in pools if pool.size.infiniband_ports and pool.spec.interconnect.value == "infiniband"}
