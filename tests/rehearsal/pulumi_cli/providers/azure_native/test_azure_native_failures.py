"""Failures: rejected, incomplete, throttled, unreachable, cancelled and expired calls."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from azure_served import FREE, NATIVE, Served, Stack, scale_set, served, stack
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from provider_process import Client, ProviderCallError, provider_process
from waiting import until

from rehearsal.arm import tokens
from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Request
from rehearsal.program.pulumi_values import Json, decode
from rehearsal.pulumi_cli.providers.azure_native.sign_in import FROM_ENVIRONMENT

MODULE = "rehearsal.pulumi_cli.providers.azure_native"
SET = NATIVE + "compute:VirtualMachineScaleSet"
NETWORK = NATIVE + "network:VirtualNetwork"
ALLOCATION_FAILS = FREE + "allocation_failures: [{rate: 1.0}]\n"
NOWHERE = dict.fromkeys(FROM_ENVIRONMENT.values(), "")
SPACE = {"addressPrefixes": ["10.9.0.0/16"]}


def checked(made: Stack, capacity: int, name: str = "pool") -> Json:
    inputs, wrong = made.client.check(SET, made.within("", scale_set(made.network()[1], capacity, name)))
    assert not wrong
    return inputs


def test_a_scale_set_whose_machines_cannot_be_allocated_is_kept_and_finished_later(folder: Path) -> None:
    with served(folder, ALLOCATION_FAILS) as azure, provider_process(MODULE, azure.environment) as running:
        client = running.client
        client.configure(location=azure.location)
        inputs = checked(stack(client, "short"), 2)
        with pytest.raises(ProviderCallError) as failed:
            client.create(SET, inputs)
        half_made = failed.value.half_made
        assert half_made is not None, failed.value.sentence
        assert azure.has(half_made.id)
        assert decode(half_made.inputs) == inputs
        outputs = decode(half_made.properties)
        assert outputs["sku"]["capacity"] == 2
        (reason,) = half_made.reasons
        assert reason.startswith(f"creating {half_made.id}: ")
        assert "Allocation" in reason
        assert "\n" not in reason

        again = {**inputs, "tags": {"try": "again"}}
        with pytest.raises(ProviderCallError) as failed:
            client.update(SET, half_made.id, inputs, outputs, {**again, "sku": {**inputs["sku"], "capacity": 3}})
        assert failed.value.half_made is not None
        assert client.update(SET, half_made.id, inputs, outputs, {**again, "sku": {**inputs["sku"], "capacity": 0}})["sku"]["capacity"] == 0
        client.delete(SET, half_made.id, inputs, outputs)


def test_what_azure_refuses_is_told_with_its_code_and_leaves_nothing(azure: Served, provider: Client) -> None:
    made = stack(provider, "refused")
    inputs, _ = provider.check(NATIVE + "network:Subnet", made.within("", {"virtualNetworkName": "none", "addressPrefix": "10.0.0.0/24"}))
    with pytest.raises(ProviderCallError) as failed:
        provider.create(NATIVE + "network:Subnet", inputs)
    assert failed.value.half_made is None
    assert "/virtualNetworks/none/subnets/it: ParentResourceNotFound: " in failed.value.sentence
    assert "\n" not in failed.value.sentence
    network, _ = made.network()
    old = made.within("", {"virtualNetworkName": "net", "location": azure.location, "addressSpace": SPACE})
    with pytest.raises(ProviderCallError, match=r"updating .*: "):
        provider.update(NETWORK, network, old, {}, {**old, "addressSpace": {"addressPrefixes": ["10.200.0.0/24"]}})
    made.interface(f"{network}/subnets/nodes")
    with pytest.raises(ProviderCallError, match=r"deleting .*/virtualNetworks/net: "):
        provider.delete(NETWORK, network, old, {})
    assert azure.has(network)


def test_an_id_that_is_none_of_the_types_is_refused(provider: Client) -> None:
    with pytest.raises(
        ProviderCallError, match="'nonsense' is not an id of azure-native:network:VirtualNetwork; the format is /subscriptions/"
    ):
        provider.read(NETWORK, "nonsense")
    with pytest.raises(ProviderCallError, match="is not an id of"):
        provider.delete(NETWORK, "/subscriptions/a/resourceGroups/b", {}, {})
    with pytest.raises(ProviderCallError, match="virtualNetworkName is missing, so network:VirtualNetwork has no id"):
        provider.create(NETWORK, {"resourceGroupName": "a"})
    with pytest.raises(ProviderCallError, match="function azure-native:network:getSubnet is not supported"):
        provider.invoke("azure-native:network:getSubnet", {})


def test_who_is_signed_in_can_be_asked(azure: Served, provider: Client) -> None:
    result = provider.invoke("azure-native:authorization:getClientConfig", {})
    assert result["subscriptionId"] == azure.subscription
    assert result["clientId"] == azure.environment["ARM_CLIENT_ID"]
    assert result["tenantId"] == azure.environment["ARM_TENANT_ID"]
    assert len(result["objectId"]) == 36
    assert set(provider.invoke("azure-native:authorization:getClientToken", {})) == {"token"}


def _refused(cloud: Cloud, group: ArmId, principal: str) -> AzureError | None:
    """Return the error of a read of a missing resource."""
    try:
        cloud.handle(Request("GET", group, principal=principal))
    except AzureError as error:
        return error
    return None


def test_a_throttled_call_is_sent_again_when_azure_says_so(folder: Path) -> None:
    # One write is added each second of Azure's, which is a second here too.
    scenario = "seed: 1\nduration_factor: 0.01\nthrottling: {arm: 0.02}\n"
    with served(folder, scenario, factor=1.0) as azure, provider_process(MODULE, azure.environment) as running:
        running.client.configure(location=azure.location)
        who = running.client.invoke("azure-native:authorization:getClientConfig", {})["objectId"]

        def use_up(cloud: Cloud) -> AzureError:
            group = parse(f"/subscriptions/{azure.subscription}/resourceGroups/throttled")
            return next(refused for refused in iter(lambda: _refused(cloud, group, who), None) if refused.status == 429)

        assert azure.call(use_up).status == 429
        began = time.monotonic()
        stack(running.client, "throttled")
        assert time.monotonic() - began > 0.9, "Azure's Retry-After is at least a second"


def test_an_azure_that_is_down_is_told_in_one_sentence(folder: Path) -> None:
    with served(folder) as azure, provider_process(MODULE, azure.environment) as running:
        running.client.configure(location=azure.location)
        made = stack(running.client, "down")
        made.network()
        inputs, _ = running.client.check(NETWORK, made.within("", {"addressSpace": SPACE}))
        azure.go_down()
        with pytest.raises(ProviderCallError, match="Azure cannot be reached"):
            running.client.create(NETWORK, inputs)
        assert running.process.poll() is None
        with pytest.raises(ProviderCallError, match=r"cannot be reached .*; is `gpufleet azure` running"):
            running.client.configure()


def test_a_provider_that_cannot_find_its_azure_says_what_is_missing() -> None:
    with provider_process(MODULE, NOWHERE) as running:
        with pytest.raises(
            ProviderCallError, match="ARM_METADATA_HOST is not set, and this azure-native works with the embedded Azure only"
        ):
            running.client.configure()
        with pytest.raises(ProviderCallError, match="neither the provider's clientSecret nor ARM_CLIENT_SECRET is set"):
            running.client.configure(metadataHost="127.0.0.1:1", subscriptionId="s", tenantId="t", clientId="c")
        with pytest.raises(ProviderCallError, match=r"https://127.0.0.1:1/metadata/endpoints.* cannot be reached"):
            running.client.configure(metadataHost="127.0.0.1:1", subscriptionId="s", tenantId="t", clientId="c", clientSecret="s")


def test_a_wrong_secret_is_told_when_the_provider_is_configured(azure: Served) -> None:
    with provider_process(MODULE, azure.environment) as running:
        with pytest.raises(ProviderCallError, match=r"signing in to .* was refused: AADSTS"):
            running.client.configure(clientSecret="wrong")
        running.client.configure()


def test_a_token_is_renewed_before_it_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "LIFETIME", 2)
    with served(folder) as azure, provider_process(MODULE, azure.environment) as running:
        running.client.configure(location=azure.location)
        stack(running.client, "first")
        time.sleep(2.2)
        stack(running.client, "second")


def test_what_is_cancelled_is_kept_as_far_as_it_came(folder: Path) -> None:
    with served(folder, factor=1.0) as azure, provider_process(MODULE, azure.environment) as running:
        client = running.client
        client.configure(location=azure.location)
        made = stack(client, "slow")
        inputs, _ = client.check(NETWORK, made.within("", {"virtualNetworkName": "net", "addressSpace": SPACE}))
        failures: list[ProviderCallError] = []

        def create() -> None:
            with pytest.raises(ProviderCallError) as failed:
                client.create(NETWORK, inputs)
            failures.append(failed.value)

        creating = threading.Thread(target=create)
        creating.start()
        resource_id = azure.id_of("slow", "Microsoft.Network/virtualNetworks/net")
        until(lambda: azure.has(resource_id), "Azure has begun")
        client.call("Cancel", empty_pb2.Empty())
        creating.join(60)
        (failed,) = failures
        assert "was cancelled; Azure may still finish it" in failed.sentence
        assert failed.half_made is not None
        assert failed.half_made.id == resource_id
        with pytest.raises(ProviderCallError, match=r"reading .* was cancelled"):
            client.read(NETWORK, resource_id)


def test_a_resource_that_takes_longer_than_it_may_is_kept(folder: Path) -> None:
    with served(folder, factor=1.0) as azure, provider_process(MODULE, azure.environment) as running:
        running.client.configure(location=azure.location)
        made = stack(running.client, "slow")
        inputs, _ = running.client.check(NETWORK, made.within("", {"virtualNetworkName": "net", "addressSpace": SPACE}))
        with pytest.raises(ProviderCallError) as failed:
            running.client.create(NETWORK, inputs, timeout=1)
        assert "timed out after 1 s" in failed.value.sentence
        assert failed.value.half_made is not None
