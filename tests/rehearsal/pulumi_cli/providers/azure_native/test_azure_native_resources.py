"""Resources of azure-native are created, updated and deleted in the embedded Azure."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from azure_served import LINUX, MARKETPLACE, NATIVE, Served, Stack, scale_set, stack
from provider_process import Client, ProviderCallError

from rehearsal.program.graph import Secret
from rehearsal.program.pulumi_values import UNKNOWN, Json, encode

SECURITY_RULE = {
    "name": "ssh",
    "priority": 100,
    "access": "Allow",
    "direction": "Inbound",
    "protocol": "Tcp",
    "sourceAddressPrefix": "10.0.0.0/8",
    "sourcePortRange": "*",
    "destinationAddressPrefix": "*",
    "destinationPortRange": "22",
}
READER = "acdd72a7-3385-48ef-bd42-f606fba81ae7"

Inputs = Callable[[Stack, Served], Json]


def _machine(made: Stack, _azure: Served) -> Json:
    _, subnet = made.network()
    return {
        "vmName": "one",
        "hardwareProfile": {"vmSize": "Standard_D4s_v5"},
        "networkProfile": {"networkInterfaces": [{"id": made.interface(subnet), "primary": True}]},
        "osProfile": {"computerName": "one", "customData": Secret("I2Nsb3VkLWNvbmZpZwo="), **LINUX},
        "storageProfile": {"imageReference": MARKETPLACE, "osDisk": {"name": "one-os", "createOption": "FromImage"}},
    }


def _interface(made: Stack, _azure: Served) -> Json:
    _, subnet = made.network()
    return {"networkInterfaceName": "nic", "ipConfigurations": [{"name": "first", "primary": True, "subnet": {"id": subnet}}]}


def _balancer(made: Stack, azure: Served) -> Json:
    _, subnet = made.network()
    whole = azure.id_of(made.group, "Microsoft.Network/loadBalancers/balancer")
    return {
        "loadBalancerName": "balancer",
        "sku": {"name": "Standard"},
        "frontendIPConfigurations": [{"name": "front", "subnet": {"id": subnet}, "privateIPAllocationMethod": "Dynamic"}],
        "backendAddressPools": [{"name": "servers"}],
        "probes": [{"name": "ready", "port": 6443, "protocol": "Tcp", "intervalInSeconds": 5}],
        "loadBalancingRules": [
            {
                "name": "https",
                "frontendPort": 443,
                "backendPort": 6443,
                "protocol": "Tcp",
                "frontendIPConfiguration": {"id": f"{whole}/frontendIPConfigurations/front"},
                "backendAddressPool": {"id": f"{whole}/backendAddressPools/servers"},
                "probe": {"id": f"{whole}/probes/ready"},
            }
        ],
    }


def _record(made: Stack, _azure: Served) -> Json:
    made.make("privatedns:PrivateZone", privateZoneName="fleet.internal", location="global")
    return {
        "privateZoneName": "fleet.internal",
        "relativeRecordSetName": "api",
        "recordType": "A",
        "ttl": 60,
        "aRecords": [{"ipv4Address": "10.9.0.4"}],
    }


def _assignment(made: Stack, azure: Served) -> Json:
    _, _, outputs = made.make("managedidentity:UserAssignedIdentity", resourceName="who")
    role = f"/subscriptions/{azure.subscription}/providers/Microsoft.Authorization/roleDefinitions/{READER}"
    scope = f"/subscriptions/{azure.subscription}/resourceGroups/{made.group}"
    return {"scope": scope, "principalId": outputs["principalId"], "principalType": "ServicePrincipal", "roleDefinitionId": role}


def _vault_secret(made: Stack, azure: Served) -> Json:
    tenant = azure.environment["ARM_TENANT_ID"]
    properties = {"tenantId": tenant, "sku": {"family": "A", "name": "standard"}, "enableRbacAuthorization": True}
    _, vault, _ = made.make("keyvault:Vault", vaultName=f"v{uuid.uuid4().hex[:12]}", properties=properties)
    return {"vaultName": vault["vaultName"], "secretName": "join", "properties": {"value": Secret("hush")}}


TYPES: dict[str, Inputs] = {
    "network:VirtualNetwork": lambda _made, _azure: {
        "virtualNetworkName": "net",
        "addressSpace": {"addressPrefixes": ["10.9.0.0/16"]},
        "subnets": [{"name": "a", "addressPrefix": "10.9.0.0/24"}, {"name": "b", "addressPrefix": "10.9.1.0/24"}],
    },
    "network:NetworkSecurityGroup": lambda _made, _azure: {"networkSecurityGroupName": "rules", "securityRules": [SECURITY_RULE]},
    "network:LoadBalancer": _balancer,
    "network:NetworkInterface": _interface,
    "compute:VirtualMachine": _machine,
    "compute:VirtualMachineScaleSet": lambda made, _azure: scale_set(made.network()[1], 2),
    "keyvault:Secret": _vault_secret,
    "authorization:RoleAssignment": _assignment,
    "privatedns:PrivateRecordSet": _record,
}


@pytest.mark.parametrize("module_type", TYPES)
def test_a_resource_is_made_looked_up_imported_written_again_and_deleted(azure: Served, provider: Client, module_type: str) -> None:
    made = stack(provider, f"life-{module_type.partition(':')[2].lower()}")
    token = NATIVE + module_type
    resource_id, inputs, outputs = made.make(module_type, **TYPES[module_type](made, azure))
    assert azure.has(resource_id)
    assert "id" not in outputs
    assert outputs["azureApiVersion"]

    again = provider.read(token, resource_id, inputs, outputs)
    assert again[0] == resource_id
    assert provider.diff(token, inputs, again[2]).changes == 1, "nothing has changed in Azure"

    # An import knows nothing but the id; what it finds is what would make it, and is no change against itself.
    imported, wrong = provider.check(token, provider.read(token, resource_id)[2])
    assert not wrong
    for name in inputs:
        if name != "__createBeforeDelete":
            assert name in imported, f"{name} of {inputs} is not in what was imported"

    assert set(provider.update(token, resource_id, inputs, outputs, inputs)) >= set(outputs)
    with pytest.raises(ProviderCallError, match="already existing resource"):
        provider.create(token, inputs)
    provider.delete(token, resource_id, inputs, outputs)
    assert not azure.has(resource_id)
    provider.delete(token, resource_id, inputs, outputs)
    assert provider.read(token, resource_id, inputs, outputs)[0] == ""


def test_a_preview_asks_azure_nothing_and_knows_what_the_inputs_say(azure: Served, provider: Client) -> None:
    before = azure.call(lambda cloud: len(cloud.resources))
    inputs = {**scale_set(UNKNOWN, 2), "resourceGroupName": "nowhere", "location": azure.location}
    resource_id, outputs = provider.create(NATIVE + "compute:VirtualMachineScaleSet", inputs, preview=True)
    assert resource_id == ""
    assert outputs["sku"]["capacity"] == 2
    assert outputs["uniqueId"] == outputs["name"] == outputs["provisioningState"] == UNKNOWN
    nic = outputs["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0]
    assert nic["ipConfigurations"][0]["subnet"]["id"] == UNKNOWN
    assert outputs["virtualMachineProfile"]["osProfile"]["customData"] == Secret("I2Nsb3VkLWNvbmZpZwo=")
    assert azure.call(lambda cloud: len(cloud.resources)) == before

    old = {"name": "pool", "location": azure.location, "uniqueId": "1"}
    updated = provider.update(NATIVE + "compute:VirtualMachineScaleSet", "/x", inputs, old, inputs, preview=True)
    assert updated["name"] == "pool", "a name stays, so that what depends on it need not wait"
    assert updated["uniqueId"] == UNKNOWN


def test_secrets_stay_secret_and_the_value_of_a_vaults_secret_never_comes_back(provider: Client, azure: Served) -> None:
    made = stack(provider, "secrets")
    resource_id, inputs, outputs = made.make("keyvault:Secret", **_vault_secret(made, azure))
    assert "hush" not in str(encode(outputs))
    assert inputs["properties"]["value"] == Secret("hush")
    _, _, read = provider.read(NATIVE + "keyvault:Secret", resource_id, inputs, outputs)
    assert read["properties"]["value"] == Secret("hush"), "what Azure does not tell stays as it is"

    _, _, machine = made.make("compute:VirtualMachine", tags={"owner": Secret("me")}, **_machine(made, azure))
    assert machine["tags"] == {"owner": Secret("me")}


def test_what_other_resources_write_stays_when_their_parent_is_written(provider: Client, azure: Served) -> None:
    made = stack(provider, "maintained")
    network, subnet = made.network()
    token = NATIVE + "network:VirtualNetwork"
    _, outputs, imported = provider.read(token, network)
    inputs: Json = {"resourceGroupName": "maintained", "virtualNetworkName": "net", "location": azure.location}
    inputs |= {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]}}
    assert [one["name"] for one in imported["subnets"]] == ["nodes"]
    provider.update(token, network, inputs, outputs, {**inputs, "tags": {"a": "b"}})
    assert azure.has(subnet)
    assert azure.call(lambda cloud: cloud.find(network).body["tags"]) == {"a": "b"}  # type: ignore[union-attr]
    read = provider.read(token, network, inputs, outputs)
    assert "subnets" not in read[2], "a subnet of its own is no input of its network"
    assert read[2]["tags"] == {"a": "b"}, "drift is"


def test_a_refresh_tells_what_was_changed_by_hand_and_nothing_else(provider: Client) -> None:
    made = stack(provider, "drift")
    resource_id, inputs, outputs = made.make("compute:VirtualMachineScaleSet", **scale_set(made.network()[1], 1))
    token = NATIVE + "compute:VirtualMachineScaleSet"
    changed = {**inputs, "sku": {**inputs["sku"], "capacity": 3}, "tags": {"by": "hand"}}
    provider.update(token, resource_id, inputs, outputs, changed)
    _, _, read = provider.read(token, resource_id, inputs, outputs)
    assert read == changed
    found = provider.diff(token, read, inputs)
    assert {path: one.kind for path, one in found.detailedDiff.items()} == {"sku.capacity": 4, "tags": 2}


def test_a_service_that_comes_with_its_account_is_taken_over_and_left(provider: Client, azure: Served) -> None:
    made = stack(provider, "singleton")
    name = f"s{uuid.uuid4().hex[:16]}"
    made.make("storage:StorageAccount", accountName=name, kind="StorageV2", sku={"name": "Standard_ZRS"})
    resource_id, inputs, outputs = made.make(
        "storage:BlobServiceProperties", accountName=name, blobServicesName="default", isVersioningEnabled=True
    )
    assert outputs["isVersioningEnabled"] is True
    provider.delete(NATIVE + "storage:BlobServiceProperties", resource_id, inputs, outputs)
    assert azure.has(resource_id)


def test_image_versions_are_made_in_their_gallery(provider: Client, azure: Served) -> None:
    made = stack(provider, "images")
    gallery: dict[str, Any] = {"galleryName": "fleet"}
    made.make("compute:Gallery", **gallery)
    identifier = {"publisher": "us", "offer": "node", "sku": "cpu"}
    image = {**gallery, "galleryImageName": "cpu", "identifier": identifier, "osType": "Linux", "osState": "Generalized"}
    made.make("compute:GalleryImage", **image, hyperVGeneration="V2", architecture="x64")
    version = {
        **gallery,
        "galleryImageName": "cpu",
        "galleryImageVersionName": "1.0.0",
        "storageProfile": {"source": {"id": azure.capture}},
        "publishingProfile": {"excludeFromLatest": True, "targetRegions": [{"name": azure.location, "regionalReplicaCount": 1}]},
    }
    resource_id, inputs, outputs = made.make("compute:GalleryImageVersion", **version)
    assert outputs["provisioningState"] == "Succeeded"
    provider.delete(NATIVE + "compute:GalleryImageVersion", resource_id, inputs, outputs)
    assert not azure.has(resource_id)
