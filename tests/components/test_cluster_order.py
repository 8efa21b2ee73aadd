"""In the region's stack, resources depend on all that they need, and on nothing of another cluster."""

from __future__ import annotations

from collections import Counter
from functools import cache

import yaml
from cluster_graphs import EVERY_CLUSTER, EVERY_REGION, MACHINE, SCALE_SET, graph, of_cluster, planned

from components.kubernetes_objects import SKIP_AWAIT, logical_name, tiers, type_token
from components.manifests.objects import cluster_objects
from components.plan.model import ClusterPlan
from rehearsal.program.graph import Resource, Secret, reveal

READY = "pulumi-python:dynamic/ready:ApiServersReady"
INSIDE_HUB = "pulumi-python:dynamic/inside_hub:InsideHub"
KUBERNETES_PROVIDER = "pulumi:providers:kubernetes"
AZURE_PROVIDER = "pulumi:providers:azure-native"
WRITTEN = "azure-native:keyvault:Secret"
GRANT = "azure-native:authorization:RoleAssignment"
RECORD = "azure-native:privatedns:PrivateRecordSet"


@cache
def _waits_for(name: str, urn: str) -> frozenset[str]:
    """Return all direct and indirect dependencies of a resource, including its provider's."""
    found = graph(name).by_urn[urn]
    direct = {*found.dependencies, *([found.provider] if found.provider else [])}
    return frozenset(direct.union(*(_waits_for(name, other) for other in direct)))


def _only(resources: tuple[Resource, ...], resource_type: str) -> Resource:
    (found,) = (item for item in resources if item.type == resource_type)
    return found


@EVERY_CLUSTER
def test_a_scale_set_waits_for_its_planned_predecessor_alone(name: str, cluster: ClusterPlan) -> None:
    resources = of_cluster(name, cluster)
    names = {item.urn: str(item.inputs["vmScaleSetName"]) for item in resources if item.type == SCALE_SET}
    after = {names[item.urn]: [names[urn] for urn in item.dependencies if urn in names] for item in resources if item.type == SCALE_SET}
    expected = {plan.name: [plan.after] if plan.after else [] for pool in cluster.pools for plan in pool.scale_sets}
    assert after == {cluster.api_servers.name: [], **expected}


def test_the_rehearsed_pools_have_lanes() -> None:
    sets = [plan for cluster in planned("small").clusters for pool in cluster.pools for plan in pool.scale_sets]
    assert {plan.after is None for plan in sets} == {True, False}


@EVERY_CLUSTER
def test_every_machine_waits_for_grants_secrets_and_names(name: str, cluster: ClusterPlan) -> None:
    resources = of_cluster(name, cluster)
    needed = {item.urn for item in resources if item.type in (WRITTEN, GRANT)}
    named = {item.urn for item in resources if item.type == RECORD and item.inputs["privateZoneName"] == cluster.network.private_zone}
    assert needed
    assert named
    for machine in (item for item in resources if item.type in (MACHINE, SCALE_SET)):
        assert needed | named <= _waits_for(name, machine.urn), machine.name


@EVERY_CLUSTER
def test_api_servers_wait_for_etcd_and_nodes_for_neither(name: str, cluster: ClusterPlan) -> None:
    resources = of_cluster(name, cluster)
    etcd = {item.urn for item in resources if item.type == MACHINE}
    sets = {item.inputs["vmScaleSetName"]: item for item in resources if item.type == SCALE_SET}
    api = sets.pop(cluster.api_servers.name)
    assert etcd <= _waits_for(name, api.urn)
    for nodes in sets.values():
        assert not (etcd | {api.urn}) & _waits_for(name, nodes.urn), nodes.name


@EVERY_CLUSTER
def test_objects_wait_for_a_ready_api_server_that_the_hub_finds(name: str, cluster: ClusterPlan) -> None:
    resources = of_cluster(name, cluster)
    ready = _only(resources, READY)
    api = next(item for item in resources if item.type == SCALE_SET and item.inputs["vmScaleSetName"] == cluster.api_servers.name)
    record = next(item for item in resources if item.type == RECORD and item.inputs["privateZoneName"] == planned(name).hub.private_zone)
    assert {api.urn, record.urn} <= _waits_for(name, ready.urn)
    objects = [item for item in resources if item.type.startswith("kubernetes:")]
    assert objects
    assert all(ready.urn in _waits_for(name, item.urn) for item in objects)


@EVERY_CLUSTER
def test_the_hub_finds_the_api_servers_under_their_name(name: str, cluster: ClusterPlan) -> None:
    plan, resources, hub = cluster.api_servers, of_cluster(name, cluster), planned(name).hub
    record = next(item for item in resources if item.type == RECORD and item.inputs["privateZoneName"] == hub.private_zone)
    assert f"{record.inputs['relativeRecordSetName']}.{hub.private_zone}" == plan.dns_name
    assert record.inputs["aRecords"] == [{"ipv4Address": plan.endpoint_address or plan.address}]
    assert record.inputs["resourceGroupName"] == planned(name).base_resource_group
    services = [item for item in resources if item.type == "azure-native:network:PrivateLinkService"]
    endpoints = [item for item in resources if item.inputs.get("privateEndpointName") == (plan.endpoint_name or "none")]
    assert len(services) == len(endpoints) == (plan.private_link_name is not None)
    for service, endpoint in zip(services, endpoints, strict=True):
        assert [entry["privateIPAddress"] for entry in service.inputs["ipConfigurations"]] == list(plan.private_link_addresses)
        assert [entry["primary"] for entry in service.inputs["ipConfigurations"]] == [True, False]
        assert service.inputs["visibility"] == service.inputs["autoApproval"] == {"subscriptions": [planned(name).spec.subscription]}
        assert endpoint.inputs["ipConfigurations"] == [{"name": "api", "privateIPAddress": plan.endpoint_address}]
        assert endpoint.inputs["privateLinkServiceConnections"][0]["privateLinkServiceId"] == service.id


def test_the_rehearsed_clusters_are_reached_in_both_ways() -> None:
    assert {cluster.api_servers.private_link_name is None for name in ("dev", "small") for cluster in planned(name).clusters} == {
        True,
        False,
    }


@EVERY_CLUSTER
def test_every_kubernetes_object_is_made_once_under_the_type_of_the_typed_sdk(name: str, cluster: ClusterPlan) -> None:
    resources = [item for item in of_cluster(name, cluster) if item.type.startswith("kubernetes:")]
    made = Counter((item.type, item.name.partition("-objects-")[2]) for item in resources)
    objects = cluster_objects(planned(name), cluster)
    assert made == Counter((type_token(item), logical_name(item)) for item in objects)
    assert set(made.values()) == {1}


@EVERY_CLUSTER
def test_an_object_is_registered_as_the_manifests_say_it(name: str, cluster: ClusterPlan) -> None:
    made = {
        item.name.partition("-objects-")[2]: reveal(item.inputs)
        for item in of_cluster(name, cluster)
        if item.type.startswith("kubernetes:")
    }
    for item in cluster_objects(planned(name), cluster):
        found = dict(made[logical_name(item)])
        metadata = dict(found.pop("metadata"))
        annotations = {key: value for key, value in metadata.pop("annotations", {}).items() if key not in SKIP_AWAIT}
        expected = dict(item)
        required = dict(expected.pop("metadata"))
        assert annotations == required.pop("annotations", {})
        assert (found, metadata) == (expected, required)


@EVERY_CLUSTER
def test_what_objects_need_to_be_accepted_and_to_start_comes_before_them(name: str, cluster: ClusterPlan) -> None:
    urns = {item.name.partition("-objects-")[2]: item.urn for item in of_cluster(name, cluster) if item.type.startswith("kubernetes:")}
    spaces, rights, rest = ({urns[logical_name(item)] for item in tier} for tier in tiers(cluster_objects(planned(name), cluster)))
    assert spaces
    assert all(spaces <= _waits_for(name, urn) for urn in rights)
    assert all(spaces | rights <= _waits_for(name, urn) for urn in rest)


@EVERY_CLUSTER
def test_a_team_that_leaves_the_file_does_not_take_its_jobs_with_it(name: str, cluster: ClusterPlan) -> None:
    objects = [item for item in of_cluster(name, cluster) if item.type.startswith("kubernetes:")]
    assert sorted(item.inputs["metadata"]["name"] for item in objects if item.protect) == sorted(
        team.name for team in cluster.spec.tenancy.teams
    )
    assert {item.inputs["kind"] for item in objects if item.protect} == {"Namespace"}


@EVERY_CLUSTER
def test_pulumi_waits_for_no_pod(name: str, cluster: ClusterPlan) -> None:
    kinds = {"Deployment", "DaemonSet", "Service"}
    objects = [item for item in of_cluster(name, cluster) if item.inputs.get("kind") in kinds]
    assert {item.inputs["kind"] for item in objects} == kinds
    assert all(item.inputs["metadata"]["annotations"]["pulumi.com/skipAwait"] == "true" for item in objects)


@EVERY_REGION
def test_nothing_of_one_cluster_waits_for_anything_of_another(name: str) -> None:
    urns = {cluster.name: {item.urn for item in of_cluster(name, cluster)} for cluster in planned(name).clusters}
    for cluster, own in urns.items():
        others = frozenset().union(*(found for other, found in urns.items() if other != cluster))
        assert not any(others & _waits_for(name, urn) for urn in own)


@EVERY_REGION
def test_nothing_is_made_before_pulumi_is_known_to_run_inside_the_hub(name: str) -> None:
    inside = graph(name).of_type(INSIDE_HUB)
    assert len(inside) == 1
    cloud = [item for item in graph(name) if item.type.startswith(("azure-native:", "kubernetes:"))]
    assert all(inside[0].urn in _waits_for(name, item.urn) for item in cloud)


@EVERY_CLUSTER
def test_every_resource_is_made_in_the_subscription_of_its_group_or_scope(name: str, cluster: ClusterPlan) -> None:
    found, region = graph(name), planned(name)
    subscriptions = {item.urn: item.inputs["subscriptionId"] for item in found.of_type(AZURE_PROVIDER)}
    groups = {cluster.resource_group: cluster.subscription, region.base_resource_group: region.spec.subscription}
    for item in of_cluster(name, cluster):
        if item.type.startswith("azure-native:"):
            assert item.provider is not None, item.name
            group, scope = item.inputs.get("resourceGroupName"), str(item.inputs.get("scope"))
            expected = groups[group] if group else scope.split("/")[2]
            assert subscriptions[item.provider] == expected, item.name


def test_the_rehearsed_clusters_lie_in_more_than_one_subscription() -> None:
    assert len({cluster.subscription for cluster in planned("small").clusters}) == 2


@EVERY_REGION
def test_every_kubernetes_object_names_its_cluster(name: str) -> None:
    found = graph(name)
    providers = {item.urn for item in found.of_type(KUBERNETES_PROVIDER)}
    assert len(providers) == len(planned(name).clusters)
    assert all(item.provider in providers for item in found if item.type.startswith("kubernetes:"))


@EVERY_CLUSTER
def test_a_cluster_is_reached_with_a_secret_kubeconfig_and_outlives_a_new_one(name: str, cluster: ClusterPlan) -> None:
    provider = _only(of_cluster(name, cluster), KUBERNETES_PROVIDER)
    assert isinstance(provider.inputs["kubeconfig"], Secret)
    assert provider.inputs["clusterIdentifier"] == f"{planned(name).name}/{cluster.name}"
    assert provider.inputs["skipUpdateUnreachable"] in (True, "true")


@EVERY_REGION
def test_the_stack_exports_every_clusters_address_and_a_secret_kubeconfig(name: str) -> None:
    outputs, plan = graph(name).stack_outputs, planned(name)
    assert outputs["api_servers"] == {cluster.name: f"https://{cluster.api_servers.dns_name}:6443" for cluster in plan.clusters}
    assert {cluster.name: cluster.api_servers.url for cluster in plan.clusters} == outputs["api_servers"]
    kubeconfigs = outputs["kubeconfigs"]
    values = kubeconfigs.value if isinstance(kubeconfigs, Secret) else kubeconfigs
    assert set(values) == {cluster.name for cluster in plan.clusters}
    assert isinstance(kubeconfigs, Secret) or all(isinstance(value, Secret) for value in values.values())


@EVERY_REGION
def test_people_get_a_kubeconfig_that_asks_for_their_own_login_and_holds_no_secret(name: str) -> None:
    outputs, plan = graph(name).stack_outputs, planned(name)
    assert set(outputs["people_kubeconfigs"]) == {cluster.name for cluster in plan.clusters}
    for cluster in plan.clusters:
        text = outputs["people_kubeconfigs"][cluster.name]
        assert isinstance(text, str)
        config, administrators = yaml.safe_load(text), yaml.safe_load(reveal(outputs["kubeconfigs"])[cluster.name])
        assert config["clusters"] == administrators["clusters"]
        (user,) = config["users"]
        assert config["contexts"][0]["context"] == {"cluster": cluster.name, "user": user["name"]}
        access = plan.spec.access
        arguments = ["--login", "azurecli", "--server-id", access.client_id, "--tenant-id", access.tenant]
        assert user["user"] == {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "kubelogin",
                "args": ["get-token", *arguments],
                "interactiveMode": "Never",
            }
        }
