"""Check rejects wrong inputs, and adds generated names and defaults."""

from __future__ import annotations

import re
from typing import Any

import pytest
from azure_served import NATIVE, Served, provider_without_location, stack
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from provider_process import Client, ProviderCallError
from pulumi.runtime.proto import provider_pb2

from rehearsal.program.graph import Secret
from rehearsal.program.pulumi_values import UNKNOWN, Json, encode

GROUP: Json = {"resourceGroupName": "gf"}
SET = NATIVE + "compute:VirtualMachineScaleSet"
NETWORK = NATIVE + "network:VirtualNetwork"
SUBNET = NATIVE + "network:Subnet"

NIC: Json = {"name": "nic", "ipConfigurations": [{"name": "a", "subnt": {"id": "/x"}}]}
WRONG: list[tuple[str, Json, str]] = [
    (NETWORK, {"adressSpace": {}}, "'adressSpace' is not a property of network:VirtualNetwork; did you mean 'addressSpace'?"),
    (NETWORK, {"addressSpace": {"prefixes": []}}, "'addressSpace.prefixes' is not a property of addressSpace; did you mean"),
    (
        SET,
        {"virtualMachineProfile": {"networkProfile": {"networkInterfaceConfigurations": [NIC]}}},
        "'virtualMachineProfile.networkProfile.networkInterfaceConfigurations[0].ipConfigurations[0].subnt' is not a property of",
    ),
    (SET, {"sku": {"capacity": "3"}}, "'sku.capacity' should be of type 'integer' but got a string"),
    (SET, {"overprovision": "yes"}, "'overprovision' should be of type 'boolean' but got a string"),
    (SET, {"sku": {"capacity": True}}, "'sku.capacity' should be of type 'integer' but got a boolean"),
    (SET, {"zones": "1"}, "'zones' should be of type 'array' but got a string"),
    (SET, {"tags": ["a"]}, "'tags' should be of type 'object' but got an array"),
    (SET, {"tags": {"a": {"b": 1}}}, "'tags.a' should be of type 'string' but got an object"),
    (SET, {"provisioningState": "Succeeded"}, "'provisioningState' is set by Azure; leave it out"),
    (SET, {"vmScaleSetName": 7}, "'vmScaleSetName' should be of type 'string' but got a number"),
    (SET, {"vmScaleSetName": ""}, "'vmScaleSetName' is empty; a name in an Azure id is not"),
    (
        SET,
        {"identity": {"userAssignedIdentities": [3]}},
        "'identity.userAssignedIdentities[0]' should be of type 'string' but got a number",
    ),
    (SUBNET, {}, "missing required property 'virtualNetworkName'"),
    (NATIVE + "keyvault:Vault", {}, "missing required property 'properties'"),
    (NATIVE + "keyvault:Vault", {"properties": {"sku": {"family": "A"}}}, "missing required property 'properties.sku.name'"),
]


@pytest.mark.parametrize(("token", "inputs", "sentence"), WRONG)
def test_what_a_type_does_not_take_is_refused_with_its_path(provider: Client, token: str, inputs: Json, sentence: str) -> None:
    _, wrong = provider.check(token, {**GROUP, **inputs})
    assert any(one.startswith(sentence) for one in wrong), wrong


def test_unknown_and_secret_values_are_taken_as_they_will_be_and_kept(provider: Client) -> None:
    inputs = {"resourceGroupName": UNKNOWN, "addressSpace": Secret({"addressPrefixes": [UNKNOWN]}), "tags": UNKNOWN, "location": "eastus"}
    checked, wrong = provider.check(NETWORK, inputs)
    assert not wrong
    assert {key: checked[key] for key in inputs} == inputs
    _, wrong = provider.check(NETWORK, {**inputs, "addressSpace": Secret({"addresPrefixes": []})})
    assert len(wrong) == 1
    assert wrong[0].startswith("'addressSpace.addresPrefixes' is not a property")


def test_a_resource_goes_where_it_is_where_the_provider_says_or_where_its_group_is(provider: Client, azure: Served) -> None:
    assert provider.check(NETWORK, GROUP)[0]["location"] == azure.location, "the provider's"
    assert provider.check(NETWORK, GROUP, old={**GROUP, "location": "eastus"})[0]["location"] == "eastus"
    assert provider.check(NETWORK, {**GROUP, "location": "westus"}, old={**GROUP, "location": "eastus"})[0]["location"] == "westus"
    assert "location" not in provider.check(SUBNET, {**GROUP, "virtualNetworkName": "net"})[0]


def test_a_name_is_made_of_the_logical_one_and_stays(provider: Client) -> None:
    first, _ = provider.check(NETWORK, GROUP, name="hub")
    assert re.fullmatch(r"hub[0-9a-f]{8}", first["virtualNetworkName"])
    assert provider.check(NETWORK, GROUP, name="hub")[0] == first, "the engine's seed makes it the same again"
    assert provider.check(NETWORK, GROUP, name="hub", randomSeed=b"other")[0] != first
    later, _ = provider.check(NETWORK, {**GROUP, "tags": {"a": "b"}}, old=first, name="hub", randomSeed=b"other")
    assert later == {**first, "tags": {"a": "b"}}
    assert provider.check(SUBNET, {**GROUP, "virtualNetworkName": "net"}, name="pods")[0]["subnetName"] == "pods"
    group, _ = provider.check(NATIVE + "resources:ResourceGroup", {}, name="rg")
    assert re.fullmatch(r"rg[0-9a-f]{8}", group["resourceGroupName"])
    role, _ = provider.check(NATIVE + "authorization:RoleAssignment", {"scope": "/s", "principalId": "p", "roleDefinitionId": "r"})
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", role["roleAssignmentName"])


def test_the_engines_naming_is_followed(provider: Client) -> None:
    options = provider_pb2.CheckRequest.AutonamingOptions

    def named(mode: Any, token: str = NETWORK, **more: Any) -> tuple[Json, list[str]]:
        return provider.check(token, {**GROUP, **more}, autonaming=options(proposed_name="mine", mode=mode), name="hub")

    assert named(options.PROPOSE)[0]["virtualNetworkName"] == "mine"
    assert named(options.ENFORCE, SUBNET, virtualNetworkName="net")[0]["subnetName"] == "mine"
    assert named(options.DISABLE)[1] == ["missing required property 'virtualNetworkName'"]
    assert named(options.ENFORCE, virtualNetworkName="given")[0]["virtualNetworkName"] == "given"


def test_a_type_that_there_is_not_is_told_in_a_sentence(provider: Client) -> None:
    with pytest.raises(ProviderCallError, match="azure-native:sql:Server is not a type of the rehearsal's azure-native"):
        provider.check(NATIVE + "sql:Server", {})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=6) | st.sampled_from([UNKNOWN, Secret("x"), Secret([1])]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "name", "sku", "capacity", "zones", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["sku", "tags", "zones", "identity", "virtualMachineProfile", "location", "resourceGroupName", "vmScaleSetName", "x"]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(inputs=st.dictionaries(KEYS, VALUES, max_size=4), token=st.sampled_from([SET, SUBNET, NATIVE + "keyvault:Vault"]))
def test_whatever_is_in_the_inputs_gets_an_answer(provider: Client, inputs: Json, token: str) -> None:
    request = provider_pb2.CheckRequest(urn=f"urn:pulumi:a::b::{token}::c", news=encode(inputs))
    answer = provider.call("Check", request)
    assert all("\n" not in one.reason for one in answer.failures)
    assert provider.diff(token, inputs, inputs).changes == 1


def test_the_group_tells_the_location_where_the_provider_has_none(azure: Served, provider: Client) -> None:
    stack(provider, "located")
    with provider_without_location(azure) as client:
        assert client.check(NETWORK, {"resourceGroupName": "located"})[0]["location"] == azure.location
        assert "location" not in client.check(NETWORK, {"resourceGroupName": "nowhere"})[0]
        assert client.check(NETWORK, {"resourceGroupName": UNKNOWN})[0]["location"] == UNKNOWN
