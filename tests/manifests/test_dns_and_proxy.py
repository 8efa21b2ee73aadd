"""DNS and service proxy match the size of the cluster and the plan's addresses."""

from __future__ import annotations

import ipaddress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from planned_objects import clusters, objects, of_kind

from components.manifests.coredns import memory_mib, replicas
from components.manifests.kube_proxy import kubeconfig, proxy_configuration
from components.plan.addresses import AZURE_DNS_ADDRESS, NODE_LOCAL_DNS_ADDRESS

every_cluster = pytest.mark.parametrize("name", list(clusters()))


def _named(name: str, kind: str, item: str) -> dict[str, dict[str, object]]:
    (found,) = [one for one in of_kind(name, kind) if one["metadata"]["name"] == item]
    return found


@every_cluster
def test_there_is_a_node_of_its_own_for_every_coredns_replica(name: str) -> None:
    spec = _named(name, "Deployment", "coredns")["spec"]
    assert 2 <= spec["replicas"] <= clusters()[name][1].nodes
    (term,) = spec["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


@every_cluster
def test_the_disruption_budget_of_coredns_lets_a_drain_go_on_and_never_stops_dns(name: str) -> None:
    budget = _named(name, "PodDisruptionBudget", "coredns")["spec"]
    assert 0 < budget["maxUnavailable"] < _named(name, "Deployment", "coredns")["spec"]["replicas"]
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@given(st.integers(0, 100_000), st.integers(0, 100_000))
def test_a_larger_cluster_never_gets_fewer_replicas_or_less_memory(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert replicas(small) <= replicas(large)
    assert memory_mib(small) <= memory_mib(large)
    assert memory_mib(large)[0] < memory_mib(large)[1]


@every_cluster
def test_the_dns_service_has_its_planned_address_in_the_clusters_own_service_range(name: str) -> None:
    network = clusters()[name][1].network
    (service,) = of_kind(name, "Service")
    assert service["spec"]["clusterIP"] == network.dns_service_address != network.kubernetes_service_address
    assert ipaddress.IPv4Address(service["spec"]["clusterIP"]) in ipaddress.IPv4Network(network.service_cidr)


@every_cluster
def test_the_node_cache_asks_coredns_at_an_address_that_it_does_not_itself_answer(name: str) -> None:
    network = clusters()[name][1].network
    (cache,) = [item for item in of_kind(name, "ConfigMap") if item["metadata"]["name"].startswith("node-local-dns-")]
    lines = [line.split() for line in cache["data"]["Corefile"].splitlines()]
    bound = {address for line in lines if line[0] == "bind" for address in line[1:]}
    forwarded = [line[2] for line in lines if line[0] == "forward"]
    assert bound == {NODE_LOCAL_DNS_ADDRESS}
    assert forwarded == [network.dns_service_address, AZURE_DNS_ADDRESS]


@every_cluster
def test_kube_proxy_calls_the_api_servers_by_the_planned_name_and_takes_the_clusters_block_for_local(name: str) -> None:
    cluster = clusters()[name][1]
    (entry,) = kubeconfig(cluster)["clusters"]
    assert entry["cluster"]["server"] == f"https://{cluster.api_servers.dns_name}:6443"
    assert proxy_configuration(cluster)["clusterCIDR"] == cluster.network.block


@every_cluster
def test_kube_proxy_gets_its_configuration_whole_through_yaml(name: str) -> None:
    cluster = clusters()[name][1]
    (config,) = [item for item in of_kind(name, "ConfigMap") if item["metadata"]["name"].startswith("kube-proxy-")]
    assert yaml.safe_load(config["data"]["config.yaml"]) == proxy_configuration(cluster)
    assert yaml.safe_load(config["data"]["kubeconfig"]) == kubeconfig(cluster)


def test_a_changed_configuration_is_a_new_config_map_and_an_unchanged_one_is_not() -> None:
    dev, frontier = (
        {item["metadata"]["name"] for item in objects(name) if item["kind"] == "ConfigMap"}
        for name in ("dev/dev", "southcentralus/frontier")
    )
    assert {name for name in dev if name.startswith("coredns-")} == {name for name in frontier if name.startswith("coredns-")}
    assert not {name for name in dev if name.startswith("kube-proxy-")} & frontier
