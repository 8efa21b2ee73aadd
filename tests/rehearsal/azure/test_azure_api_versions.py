"""The API versions that are answered are those that azure-native and the official clients send; others are refused with Azure's list."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.core.pipeline.transport import HttpRequest, HttpTransport
from azure.core.rest import HttpRequest as RestRequest
from azure_types import API_VERSIONS as PUBLISHED

from rehearsal.azure.api_versions import API_VERSIONS, api_versions, check_api_version
from rehearsal.azure.azure_native_bodies import arm_type
from rehearsal.azure.azure_native_ids import GROUP_PATHS, SCOPE_PATHS
from rehearsal.azure.errors import AzureError
from rehearsal.azure.registry import RESOURCE_TYPES
from rehearsal.azure.sdk_shapes import MODELS
from tests.support.sdk_clients import sdk_client

SUBSCRIPTION = "11111111-1111-4111-8111-111111111111"
NETWORK_OF_COMPUTE = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces"


class RequestSentError(Exception):
    """A request that was about to go out."""

    def __init__(self, request: HttpRequest) -> None:
        self.version = re.search(r"[?&]api-version=([^&]+)", request.url)
        super().__init__(request.url)


class NoNetwork(HttpTransport[Any, Any]):
    """Stands where a client's requests leave the process."""

    def open(self) -> None: ...

    def close(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def send(self, request: HttpRequest | RestRequest, **_: Any) -> Any:
        raise RequestSentError(request)  # type: ignore[arg-type]


CALLS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "Microsoft.Authorization/roleAssignments": ("authorization", lambda c: c.role_assignments.get("/subscriptions/x", "r")),
    "Microsoft.Authorization/roleDefinitions": ("authorization", lambda c: c.role_definitions.get("/subscriptions/x", "r")),
    "Microsoft.Compute/capacityReservationGroups": ("compute", lambda c: c.capacity_reservation_groups.get("g", "n")),
    "Microsoft.Compute/disks": ("compute", lambda c: c.disks.get("g", "n")),
    "Microsoft.Compute/diskEncryptionSets": ("compute", lambda c: c.disk_encryption_sets.get("g", "n")),
    "Microsoft.Compute/galleries": ("compute", lambda c: c.galleries.get("g", "n")),
    "Microsoft.Compute/galleries/images": ("compute", lambda c: c.gallery_images.get("g", "n", "i")),
    "Microsoft.Compute/galleries/images/versions": ("compute", lambda c: c.gallery_image_versions.get("g", "n", "i", "v")),
    "Microsoft.Compute/locations/usages": ("compute", lambda c: list(c.usage.list("swedencentral"))),
    "Microsoft.Compute/proximityPlacementGroups": ("compute", lambda c: c.proximity_placement_groups.get("g", "n")),
    "Microsoft.Compute/skus": ("compute", lambda c: list(c.resource_skus.list())),
    "Microsoft.Compute/virtualMachineScaleSets": ("compute", lambda c: c.virtual_machine_scale_sets.get("g", "n")),
    "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces": (
        "network",
        lambda c: list(c.network_interfaces.list_virtual_machine_scale_set_network_interfaces("g", "n")),
    ),
    "Microsoft.Compute/virtualMachineScaleSets/publicIPAddresses": (
        "network",
        lambda c: list(c.public_ip_addresses.list_virtual_machine_scale_set_public_ip_addresses("g", "n")),
    ),
    "Microsoft.Compute/virtualMachineScaleSets/virtualMachines": ("compute", lambda c: c.virtual_machine_scale_set_vms.get("g", "n", "0")),
    NETWORK_OF_COMPUTE: ("network", lambda c: c.network_interfaces.get_virtual_machine_scale_set_network_interface("g", "n", "0", "nic")),
    f"{NETWORK_OF_COMPUTE}/ipConfigurations": (
        "network",
        lambda c: list(c.network_interfaces.list_virtual_machine_scale_set_ip_configurations("g", "n", "0", "nic")),
    ),
    "Microsoft.Compute/virtualMachines": ("compute", lambda c: c.virtual_machines.get("g", "n")),
    "Microsoft.KeyVault/vaults": ("keyvault", lambda c: c.vaults.get("g", "n")),
    "Microsoft.KeyVault/vaults/secrets": ("keyvault", lambda c: c.secrets.get("g", "n", "s")),
    "Microsoft.ManagedIdentity/userAssignedIdentities": ("msi", lambda c: c.user_assigned_identities.get("g", "n")),
    "Microsoft.Network/dnsResolvers": ("dnsresolver", lambda c: c.dns_resolvers.get("g", "n")),
    "Microsoft.Network/dnsResolvers/inboundEndpoints": ("dnsresolver", lambda c: c.inbound_endpoints.get("g", "n", "e")),
    "Microsoft.Network/loadBalancers": ("network", lambda c: c.load_balancers.get("g", "n")),
    "Microsoft.Network/networkInterfaces": ("network", lambda c: c.network_interfaces.get("g", "n")),
    "Microsoft.Network/privateDnsZones": ("privatedns", lambda c: c.private_zones.get("g", "n")),
    "Microsoft.Network/privateDnsZones/A": ("privatedns", lambda c: c.record_sets.get("g", "n", "A", "r")),
    "Microsoft.Network/virtualNetworks/subnets": ("network", lambda c: c.subnets.get("g", "n", "s")),
    "Microsoft.Resources/resourceGroups": ("resource", lambda c: c.resource_groups.get("g")),
    "Microsoft.Resources/resources": ("keyvault", lambda c: list(c.vaults.list(filter="x"))),
    "Microsoft.Storage/storageAccounts": ("storage", lambda c: c.storage_accounts.get_properties("g", "account")),
    "Microsoft.Storage/storageAccounts/blobServices/containers": ("storage", lambda c: c.blob_containers.get("g", "account", "container")),
    "Microsoft.VirtualMachineImages/imageTemplates": ("imagebuilder", lambda c: c.virtual_machine_image_templates.get("g", "n")),
}
"""Resource type to the client and a call of it about that type."""


GROUPS = "Microsoft.Resources/resourceGroups"


def sent_version(package: str, call: Callable[[Any], Any]) -> str:
    """The version that a client puts into a request when nobody tells it one."""
    client = sdk_client(package, SUBSCRIPTION, transport=NoNetwork())
    with pytest.raises(RequestSentError) as sent:
        call(client)
    assert sent.value.version is not None
    return sent.value.version.group(1)


@pytest.mark.parametrize("resource_type", sorted(CALLS))
def test_what_a_client_sends_is_answered(resource_type: str) -> None:
    version = sent_version(*CALLS[resource_type])
    check_api_version(resource_type, version)
    assert version in api_versions(resource_type)


def test_every_version_is_one_that_somebody_sends() -> None:
    sent: dict[str, set[str]] = {}
    for resource_type, call in CALLS.items():
        sent.setdefault(owner(resource_type), set()).add(sent_version(*call))
    for module_type in (*GROUP_PATHS, *SCOPE_PATHS, "resources:ResourceGroup"):
        sent.setdefault(owner(arm_type(module_type)), set()).add(of_azure_native(module_type))
    for name, version in PUBLISHED.items():
        sent.setdefault(owner(name), set()).add(version)
    # Operations are polled with the version that began them, Resource Manager's own types also have older versions, and queries of
    # Resource Graph come from tools outside the project: azure-mgmt-resourcegraph, the Azure CLI's extension and the REST reference.
    polled = {"Microsoft.Compute/locations", "Microsoft.Network/locations", "Microsoft.ResourceGraph", "Microsoft.Resources"}
    assert {name: set(versions) for name, versions in API_VERSIONS.items() if name not in polled} == {
        name: versions for name, versions in sent.items() if name not in polled
    }


def test_resource_manager_accepts_what_is_sent_for_its_own_types_and_common_older_versions() -> None:
    sent = {sent_version(*CALLS[one]) for one in (GROUPS, "Microsoft.Resources/resources")}
    older = {"2016-06-01", "2018-05-01", "2019-10-01", "2020-01-01", "2020-06-01", "2021-04-01", "2022-09-01", "2022-12-01"}
    assert sent | older | {of_azure_native("resources:ResourceGroup")} <= set(api_versions("Microsoft.Resources/subscriptions"))


def owner(resource_type: str) -> str:
    """The entry of the table that a type falls under."""
    name = resource_type
    while name not in API_VERSIONS:
        name = name.rpartition("/")[0]
    return name


def of_azure_native(module_type: str) -> str:
    """The version that azure-native sends for a type, as the documentation in the file of its class says."""
    module, _, name = module_type.partition(":")
    # The file is read and not imported: some of these packages take seconds to import.
    spec = importlib.util.find_spec("pulumi_azure_native")
    assert spec is not None
    assert spec.origin is not None
    (path,) = (path for path in (Path(spec.origin).parent / module).glob("*.py") if path.stem.replace("_", "") == name.lower())
    found = re.search(r"Uses Azure REST API version ([\w-]+)", path.read_text())
    assert found is not None, path
    return found.group(1)


@pytest.mark.parametrize("module_type", sorted({*GROUP_PATHS, *SCOPE_PATHS, "resources:ResourceGroup"}))
def test_what_azure_native_sends_is_answered(module_type: str) -> None:
    check_api_version(arm_type(module_type), of_azure_native(module_type))


def test_every_type_of_the_embedded_azure_has_versions() -> None:
    assert [name for name in (*MODELS, *(kind.type for kind in RESOURCE_TYPES)) if not api_versions(name)] == []


@pytest.mark.parametrize("versions", API_VERSIONS.values())
def test_versions_are_told_the_oldest_first(versions: tuple[str, ...]) -> None:
    assert list(versions) == sorted(set(versions))


def refusal(resource_type: str, version: str, location: str = "") -> AzureError:
    with pytest.raises(AzureError) as refused:
        check_api_version(resource_type, version, location)
    return refused.value


def test_a_request_without_a_version_is_refused() -> None:
    refused = refusal("Microsoft.Compute/virtualMachines", "")
    assert (refused.status, refused.code) == (400, "MissingApiVersionParameter")
    assert refused.message == "The api-version query parameter (?api-version=) is required for all requests."


def test_an_unknown_version_is_refused_with_those_that_there_are() -> None:
    refused = refusal("Microsoft.Compute/galleries/images", "2026-04-01", "swedencentral")
    assert (refused.status, refused.code) == (400, "NoRegisteredProviderFound")
    assert refused.message == (
        "No registered resource provider found for location 'swedencentral' and API version '2026-04-01' for type 'galleries/images'. "
        "The supported api-versions are '2024-03-03, 2026-03-03'."
    )


def test_a_resource_without_a_location_is_refused_without_one() -> None:
    assert refusal("Microsoft.Network/virtualNetworks", "2019-01-01").message.startswith(
        "No registered resource provider found for API version '2019-01-01' for type 'virtualNetworks'."
    )


def test_an_unknown_version_of_the_resource_manager_itself_is_refused_in_its_own_words() -> None:
    refused = refusal(GROUPS, "2014-04")
    assert (refused.status, refused.code) == (400, "InvalidApiVersionParameter")
    assert (
        refused.message == f"The api-version '2014-04' is invalid. The supported versions are '{','.join(reversed(api_versions(GROUPS)))}'."
    )


def test_an_unknown_provider_is_refused() -> None:
    refused = refusal("Microsoft.Batch/batchAccounts", "2024-07-01")
    assert (refused.status, refused.code) == (404, "InvalidResourceNamespace")


def test_a_type_and_a_version_in_other_capitals_are_the_same() -> None:
    check_api_version("MICROSOFT.NETWORK/DNSRESOLVERS", "2023-07-01-PREVIEW")
