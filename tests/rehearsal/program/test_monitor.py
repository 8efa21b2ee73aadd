"""The monitor gives a program the URNs, parents, dependencies and refusals of Pulumi's engine."""

from typing import Any

import pulumi
import pulumi_azure_native as azure_native
import pytest
from programs import OTHER_SUBSCRIPTION, SUBSCRIPTION, Group, RecordingBackend
from pulumi_azure_native import managedidentity, network, resources

from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.graph import Graph, Resource, Secret
from rehearsal.program.run import ProgramError, run_program

BACKEND = AcceptingCloud(subscription=SUBSCRIPTION)
URN = "urn:pulumi:dev::gpufleet::"
STACK = f"{URN}pulumi:pulumi:Stack::gpufleet-dev"
GROUP_TYPE = "azure-native:resources:ResourceGroup"


def resource_group(name: str, opts: pulumi.ResourceOptions | None = None) -> resources.ResourceGroup:
    return resources.ResourceGroup(name, resource_group_name=name, location="swedencentral", opts=opts)


def named(graph: Graph, name: str) -> Resource:
    (found,) = (resource for resource in graph if resource.name == name)
    return found


def test_a_urn_chains_the_types_of_nested_components_and_leaves_the_stack_out() -> None:
    def program() -> None:
        region = Group("region")
        cluster = Group("cluster", pulumi.ResourceOptions(parent=region))
        leaf = resource_group("rg", pulumi.ResourceOptions(parent=cluster))
        resource_group("below", pulumi.ResourceOptions(parent=leaf))

    graph = run_program(program, "gpufleet", "dev", backend=BACKEND)
    chain = "gpufleet:test:Group$gpufleet:test:Group"
    assert {resource.urn: resource.parent for resource in graph} == {
        STACK: None,
        f"{URN}gpufleet:test:Group::region": STACK,
        f"{URN}{chain}::cluster": f"{URN}gpufleet:test:Group::region",
        f"{URN}{chain}${GROUP_TYPE}::rg": f"{URN}{chain}::cluster",
        f"{URN}{chain}${GROUP_TYPE}${GROUP_TYPE}::below": f"{URN}{chain}${GROUP_TYPE}::rg",
    }
    assert [child.name for child in graph.children(STACK)] == ["region"]
    assert [below.name for below in graph.descendants(STACK)] == ["region", "cluster", "rg", "below"]


def test_depending_on_a_component_is_depending_on_its_nested_custom_children() -> None:
    def program() -> None:
        outer = Group("outer")
        inner = Group("inner", pulumi.ResourceOptions(parent=outer))
        resource_group("a", pulumi.ResourceOptions(parent=outer))
        resource_group("b", pulumi.ResourceOptions(parent=inner))
        resource_group("after", pulumi.ResourceOptions(depends_on=[outer]))

    graph = run_program(program, "gpufleet", "dev", backend=BACKEND)
    after = named(graph, "after")
    assert after.dependencies == (
        f"{URN}gpufleet:test:Group${GROUP_TYPE}::a",
        f"{URN}gpufleet:test:Group$gpufleet:test:Group${GROUP_TYPE}::b",
    )
    assert after.property_dependencies == {}


def test_an_input_from_another_resource_is_a_dependency_of_that_property() -> None:
    def program() -> None:
        group = resource_group("rg")
        managedidentity.UserAssignedIdentity("id", resource_group_name=group.name, resource_name_="api", tags={"group": group.id})

    (identity,) = run_program(program, "gpufleet", "dev", backend=BACKEND).of_type("azure-native:managedidentity:UserAssignedIdentity")
    group = (f"{URN}{GROUP_TYPE}::rg",)
    assert identity.dependencies == group
    assert identity.property_dependencies == {"resourceGroupName": group, "tags": group}
    assert identity.inputs["resourceGroupName"] == "rg"


def test_an_explicit_provider_is_recorded_and_its_inputs_reach_the_face() -> None:
    backend = RecordingBackend()

    def program() -> None:
        provider = azure_native.Provider("other", subscription_id=OTHER_SUBSCRIPTION)
        cluster = Group("cluster", pulumi.ResourceOptions(providers=[provider]))
        resource_group("inherited", pulumi.ResourceOptions(parent=cluster))
        resource_group("default")

    graph = run_program(program, "gpufleet", "dev", backend=backend)
    inherited, default = (named(graph, name) for name in ("inherited", "default"))
    (provider,) = graph.of_type("pulumi:providers:azure-native")
    assert (inherited.provider, default.provider) == (provider.urn, None)
    assert inherited.id == f"/subscriptions/{OTHER_SUBSCRIPTION}/resourceGroups/inherited"
    assert default.id == f"/subscriptions/{SUBSCRIPTION}/resourceGroups/default"
    assert {name: given.get("subscriptionId") for _, name, _, given in backend.requests} == {
        "inherited": OTHER_SUBSCRIPTION,
        "default": None,
    }


def test_two_providers_of_one_name_under_different_parents_stay_apart() -> None:
    def program() -> None:
        for subscription in (SUBSCRIPTION, OTHER_SUBSCRIPTION):
            parent = Group(subscription[:1]) if subscription == SUBSCRIPTION else None
            provider = azure_native.Provider("same", subscription_id=subscription, opts=pulumi.ResourceOptions(parent=parent))
            resource_group(f"rg-{subscription[:1]}", pulumi.ResourceOptions(provider=provider))

    graph = run_program(program, "gpufleet", "dev", backend=AcceptingCloud())
    assert named(graph, "rg-1").id == f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-1"
    assert named(graph, "rg-2").id == f"/subscriptions/{OTHER_SUBSCRIPTION}/resourceGroups/rg-2"


def test_a_secret_stays_secret_from_input_to_input_while_the_cloud_sees_it() -> None:
    backend = RecordingBackend()

    def program() -> None:
        first = resources.ResourceGroup("first", resource_group_name="first", tags={"token": pulumi.Output.secret("s3cret")})
        resources.ResourceGroup("second", resource_group_name="second", tags=first.tags)

    graph = run_program(program, "gpufleet", "dev", backend=backend)
    first, second = graph.of_type(GROUP_TYPE)
    assert first.inputs["tags"] == {"token": Secret("s3cret")}
    # Pulumi lifts secretness to the whole property when an output is passed on.
    assert second.inputs["tags"] == Secret({"token": "s3cret"})
    assert [request[2]["tags"] for request in backend.requests] == [{"token": "s3cret"}] * 2
    assert "s3cret" not in graph.to_json()


def test_outputs_named_secret_by_the_program_are_secret() -> None:
    def program() -> None:
        opts = pulumi.ResourceOptions(additional_secret_outputs=["principal_id", "tags"])
        identity = managedidentity.UserAssignedIdentity("id", resource_group_name="rg", resource_name_="api", tags={"a": "b"}, opts=opts)
        pulumi.export("principal", identity.principal_id)
        pulumi.export("tags", identity.tags)
        pulumi.export("client", identity.client_id)

    graph = run_program(program, "gpufleet", "dev", backend=BACKEND)
    (identity,) = graph.of_type("azure-native:managedidentity:UserAssignedIdentity")
    assert identity.additional_secret_outputs == ("principalId", "tags")
    assert graph.stack_outputs["tags"] == Secret({"a": "b"})
    assert isinstance(graph.stack_outputs["principal"], Secret)
    assert isinstance(graph.stack_outputs["client"], str)


def test_options_are_recorded_with_what_a_parent_hands_down() -> None:
    def program() -> None:
        vaults = Group("vaults", pulumi.ResourceOptions(protect=True))
        opts = pulumi.ResourceOptions(parent=vaults, ignore_changes=["addressSpace", "tags.owner"])
        network.VirtualNetwork("net", resource_group_name="rg", virtual_network_name="net", opts=opts)

    (net,) = run_program(program, "gpufleet", "dev", backend=BACKEND).of_type("azure-native:network:VirtualNetwork")
    assert (net.protect, net.ignore_changes) == (True, ("addressSpace", "tags.owner"))


def test_a_component_keeps_the_outputs_that_it_registers() -> None:
    def program() -> None:
        group = Group("group")
        group.register_outputs({"id": resource_group("rg", pulumi.ResourceOptions(parent=group)).id})

    (group,) = run_program(program, "gpufleet", "dev", backend=BACKEND).of_type("gpufleet:test:Group")
    assert (group.custom, group.id) == (False, None)
    assert group.outputs == {"id": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg"}


def test_whole_numbers_are_ints_and_an_absent_value_is_no_input() -> None:
    def program() -> None:
        pulumi.CustomResource("kubernetes:core/v1:ConfigMap", "map", {"count": 7500, "share": 0.5, "none": None, "metadata": {"name": "m"}})

    (config_map,) = run_program(program, "gpufleet", "dev", backend=BACKEND).of_type("kubernetes:core/v1:ConfigMap")
    assert config_map.inputs == {"count": 7500, "share": 0.5, "metadata": {"name": "m"}}
    assert isinstance(config_map.inputs["count"], int)


def twice() -> None:
    resource_group("rg")
    resource_group("rg")


def remote() -> None:
    pulumi.ComponentResource("kubernetes:yaml/v2:ConfigGroup", "manifests", {}, remote=True)


def read() -> None:
    resources.ResourceGroup.get("rg", "/subscriptions/x/resourceGroups/rg")


def transform() -> None:
    pulumi.runtime.register_resource_transform(lambda _args: None)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (twice, f"{GROUP_TYPE} 'rg': duplicate resource URN {URN}{GROUP_TYPE}::rg; give one of the two another name"),
        (remote, "kubernetes:yaml/v2:ConfigGroup 'manifests': is a remote component"),
        (read, f"{GROUP_TYPE} 'rg': reads existing resource /subscriptions/x/resourceGroups/rg"),
        (transform, "The Pulumi CLI does not support transforms"),
    ],
)
def test_what_a_rehearsal_cannot_do_faithfully_it_refuses(program: Any, reason: str) -> None:
    with pytest.raises(ProgramError) as caught:
        run_program(program, "gpufleet", "dev", backend=BACKEND)
    assert caught.value.reason.startswith(reason)
