"""Conversion of azure-native's inputs to request bodies, and of Azure's responses to the outputs that a program reads."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import pytest
from arm_bodies import BODIES, IDENTITY, SUBNET
from azure_types import AZURE, UnknownResourceTypeError, arm_type_and_name
from published import needs_published_types, sent_faults
from pulumi import _types
from rehearsed_regions import SHIPPED, rehearsed

from rehearsal.azure.azure_native_bodies import arm_type, from_arm, nest, path_inputs, to_arm
from rehearsal.azure.azure_native_ids import GROUP_PATHS, SCOPE_PATHS
from rehearsal.azure.body_validation import validate_body
from rehearsal.azure.sdk_shapes import shape_of
from rehearsal.azure.shapes import ListOf, MapOf, ObjectOf, OneOf, Shape
from rehearsal.program.graph import Resource, reveal


def azure_resources(region: str) -> Iterator[Resource]:
    both = rehearsed(region)
    return (item for graph in (both.base, both.clusters) for item in graph if item.type.startswith(AZURE))


def body_inputs(resource: Resource) -> dict[str, Any]:
    """Inputs that are part of the body, without those that are null."""
    apart = path_inputs(resource.type)
    return {key: item for key, item in reveal(resource.inputs).items() if key not in apart and item is not None}


def with_identities_as_objects(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs as outputs have them: identities by id."""
    identity = inputs.get("identity")
    if not (identity and identity.get("userAssignedIdentities")):
        return dict(inputs)
    return {**inputs, "identity": {**identity, "userAssignedIdentities": {one: {} for one in identity["userAssignedIdentities"]}}}


@pytest.mark.parametrize("region", SHIPPED)
def test_every_body_of_a_shipped_region_is_kept_as_sent_and_comes_back_as_given(region: str) -> None:
    for resource in azure_resources(region):
        resource_type, _ = arm_type_and_name(str(resource.id))
        given = body_inputs(resource)
        body = to_arm(resource.type, given)
        assert validate_body(resource_type, body) == body, resource.name
        assert from_arm(resource.type, body) == with_identities_as_objects(given), resource.name


@needs_published_types
@pytest.mark.parametrize("region", SHIPPED)
def test_every_body_of_a_shipped_region_fits_the_published_types(region: str) -> None:
    unpublished = set()
    for resource in azure_resources(region):
        resource_type, name = arm_type_and_name(str(resource.id))
        try:
            # The published types have the name in the body, which a request has in its path.
            assert sent_faults(resource_type, "", {**to_arm(resource.type, reveal(resource.inputs)), "name": name}) == [], resource.name
        except UnknownResourceTypeError:
            unpublished.add(resource_type)
    assert unpublished == {
        "Microsoft.Network/dnsResolvers",
        "Microsoft.Network/dnsResolvers/inboundEndpoints",
        "Microsoft.Resources/resourceGroups",
    }


def arguments_of(module_type: str) -> type:
    """The class of a resource's own arguments, which the SDK calls InitArgs where a nested type has the name."""
    module, _, name = module_type.partition(":")
    package = importlib.import_module(f"pulumi_azure_native.{module}")
    found: type = getattr(package, f"{name}InitArgs", None) or getattr(package, f"{name}Args")
    return found


def input_classes(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and _types.is_input_type(hint):
        yield hint
    for argument in get_args(hint):
        yield from input_classes(argument)


class Placing:
    """Gives each input of azure-native a value of its own and looks where in the body it lands."""

    def __init__(self, module_type: str) -> None:
        self.module_type = module_type
        self.seen: set[tuple[type, int]] = set()

    def misplaced(self, arguments: type, shape: Shape, where: str) -> Iterator[str]:
        while isinstance(shape, ListOf | MapOf):
            shape = shape.item
        if not isinstance(shape, ObjectOf) or (arguments, id(shape)) in self.seen:
            return
        self.seen.add((arguments, id(shape)))
        hints = _types.input_type_types(arguments)
        for name in _types.input_type_py_to_pulumi_names(arguments).values():
            if not where and name in path_inputs(self.module_type):
                continue
            found = placed(shape, name)
            if found is None:
                yield f"{where}.{name} of {shape.name}"
                continue
            for inner in input_classes(hints.get(name)):
                yield from self.misplaced(inner, found, f"{where}.{name}")


def placed(shape: ObjectOf, name: str) -> Shape | None:
    """The shape of what a flat input of an object becomes; None where the object has no such property."""
    found: Shape = shape
    value: Any = nest(shape, {name: "here"})
    while isinstance(value, dict):
        ((key, value),) = value.items()
        base = found.base if isinstance(found, OneOf) else found
        if not isinstance(base, ObjectOf) or key not in base.properties:
            return None
        found = base.properties[key].shape
    return found


@pytest.mark.parametrize("module_type", sorted({*GROUP_PATHS, *SCOPE_PATHS, "resources:ResourceGroup"}))
def test_every_input_of_azure_native_has_a_place_in_the_body(module_type: str) -> None:
    shape = shape_of(arm_type(module_type))
    assert list(Placing(module_type).misplaced(arguments_of(module_type), shape, "")) == []


def test_inputs_in_the_path_are_no_part_of_the_body() -> None:
    inputs = {"resourceGroupName": "rg", "virtualNetworkName": "net", "subnetName": "nodes", "addressPrefix": "10.0.0.0/24"}
    assert to_arm("azure-native:network:Subnet", inputs) == {"properties": {"addressPrefix": "10.0.0.0/24"}}


def test_a_record_set_has_its_kind_in_the_type() -> None:
    assert arm_type("azure-native:privatedns:PrivateRecordSet", "SRV") == "Microsoft.Network/privateDnsZones/SRV"


def test_an_input_that_azure_calls_otherwise_goes_there_and_comes_back() -> None:
    inputs = {
        "kind": "StorageV2",
        "location": "swedencentral",
        "sku": {"name": "Standard_ZRS"},
        "enableHttpsTrafficOnly": True,
        "networkRuleSet": {"defaultAction": "Deny"},
        "encryption": {"keyVaultProperties": {"keyName": "disks"}, "keySource": "Microsoft.Keyvault"},
        "customDomain": {"name": "backups"},
    }
    body = to_arm("azure-native:storage:StorageAccount", inputs)
    assert body["properties"] == {
        "supportsHttpsTrafficOnly": True,
        "networkAcls": {"defaultAction": "Deny"},
        "encryption": {"keyvaultproperties": {"keyname": "disks"}, "keySource": "Microsoft.Keyvault"},
        "customDomain": {"name": "backups"},
    }
    assert from_arm("azure-native:storage:StorageAccount", body) == inputs


def test_a_trigger_of_an_image_build_says_its_kind_inside() -> None:
    body = to_arm("azure-native:virtualmachineimages:Trigger", {"imageTemplateName": "t", "kind": "SourceImage"})
    assert body == {"properties": {"kind": "SourceImage"}}
    assert from_arm("azure-native:virtualmachineimages:Trigger", body) == {"kind": "SourceImage"}


def test_an_extensions_type_is_its_own_and_not_the_resources() -> None:
    body = to_arm("azure-native:compute:VirtualMachineExtension", {"vmName": "m", "type": "ApplicationHealthLinux"})
    assert body == {"properties": {"type": "ApplicationHealthLinux"}}
    answered = {**body, "type": "Microsoft.Compute/virtualMachines/extensions"}
    for one in (answered, dict(reversed(answered.items()))):
        assert from_arm("azure-native:compute:VirtualMachineExtension", one) == {"type": "ApplicationHealthLinux"}


def test_identities_are_given_as_a_list_and_answered_with_who_they_are() -> None:
    body = to_arm("azure-native:compute:VirtualMachineScaleSet", {"identity": {"userAssignedIdentities": [IDENTITY]}})
    assert body == {"identity": {"userAssignedIdentities": {IDENTITY: {}}}}
    body["identity"]["userAssignedIdentities"][IDENTITY] = {"principalId": "p", "clientId": "c"}
    outputs = from_arm("azure-native:compute:VirtualMachineScaleSet", body)
    assert outputs["identity"]["userAssignedIdentities"] == {IDENTITY: {"principalId": "p", "clientId": "c"}}


def test_an_identity_gives_its_principal_and_client_and_keeps_the_id_apart() -> None:
    body = {
        "id": IDENTITY,
        "name": "node",
        "location": "swedencentral",
        "properties": {"principalId": "p", "clientId": "c", "tenantId": "t"},
    }
    expected = {"name": "node", "location": "swedencentral", "principalId": "p", "clientId": "c", "tenantId": "t"}
    assert from_arm("azure-native:managedidentity:UserAssignedIdentity", body) == expected


def test_a_vault_and_a_secret_keep_their_properties_apart() -> None:
    vault = {"properties": {"vaultUri": "https://kv.vault.azure.net/", "sku": {"family": "A", "name": "standard"}}}
    assert from_arm("azure-native:keyvault:Vault", vault) == vault
    secret = {"properties": {"attributes": {"exp": 1_800_000_000}, "secretUriWithVersion": "https://kv.vault.azure.net/secrets/s/1"}}
    outputs = from_arm("azure-native:keyvault:Secret", secret)
    assert outputs == {
        "properties": {"attributes": {"expires": 1_800_000_000}, "secretUriWithVersion": "https://kv.vault.azure.net/secrets/s/1"}
    }


def test_the_parts_of_a_load_balancer_have_their_ids() -> None:
    body = {**BODIES["Microsoft.Network/loadBalancers"], "id": "/x"}
    body["properties"] = {
        **body["properties"],
        "backendAddressPools": [{"id": "/x/pool", "name": "servers", "properties": {"syncMode": "Manual"}}],
    }
    outputs = from_arm("azure-native:network:LoadBalancer", body)
    assert outputs["backendAddressPools"] == [{"id": "/x/pool", "name": "servers", "syncMode": "Manual"}]
    assert outputs["frontendIPConfigurations"] == [{"name": "api", "subnet": {"id": SUBNET}, "privateIPAddress": "10.0.0.4"}]


def test_a_storage_account_gives_its_endpoints() -> None:
    body = {"kind": "StorageV2", "properties": {"primaryEndpoints": {"blob": "https://a.blob.core.windows.net/"}}}
    outputs = from_arm("azure-native:storage:StorageAccount", body)
    assert outputs == {"kind": "StorageV2", "primaryEndpoints": {"blob": "https://a.blob.core.windows.net/"}}


def test_a_resolver_and_its_endpoint_give_network_and_addresses() -> None:
    resolver = {"location": "swedencentral", "properties": {"virtualNetwork": {"id": "/net"}, "dnsResolverState": "Connected"}}
    outputs = from_arm("azure-native:dnsresolver:DnsResolver", resolver)
    assert outputs == {"location": "swedencentral", "virtualNetwork": {"id": "/net"}, "dnsResolverState": "Connected"}
    endpoint = {"properties": {"ipConfigurations": [{"subnet": {"id": SUBNET}, "privateIpAddress": "10.0.0.4"}]}}
    assert from_arm("azure-native:dnsresolver:InboundEndpoint", endpoint) == endpoint["properties"]
