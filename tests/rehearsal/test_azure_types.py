"""Every Azure resource that the shipped regions register fits Azure's published types, as azure-native would send it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from azure_types import AZURE, AzureTypes, UnknownResourceTypeError, arm_type_and_name
from rehearsed_regions import SHIPPED, Rehearsed, rehearsed

from rehearsal.program.graph import Graph

FOLDER = Path(__file__).parents[3] / "shared" / "azure-types"
UNPUBLISHED = {
    "Microsoft.Network/dnsResolvers",
    "Microsoft.Network/dnsResolvers/inboundEndpoints",
    "Microsoft.Resources/resourceGroups",
}
"""Types of ours that the folder has no file for."""

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"Azure's published types are not there: no folder {FOLDER.name} beside the repository"
)


@pytest.fixture(scope="module")
def types() -> AzureTypes:
    return AzureTypes(FOLDER)


def faults_in(types: AzureTypes, *graphs: Graph) -> tuple[list[str], set[str]]:
    """Return the differences of graphs from the published types, and the types that the folder does not have."""
    faults: list[str] = []
    unpublished: set[str] = set()
    for resource in (item for graph in graphs for item in graph if item.type.startswith(AZURE)):
        try:
            faults += [f"{resource.name}: {fault}" for fault in types.faults(resource)]
        except UnknownResourceTypeError:
            unpublished.add(arm_type_and_name(str(resource.id))[0])
    return faults, unpublished


@pytest.mark.parametrize("name", SHIPPED)
def test_every_body_of_a_shipped_region_fits(name: str, types: AzureTypes) -> None:
    region = rehearsed(name)
    faults, unpublished = faults_in(types, region.base, region.clusters)
    print("not checked, for want of published types:", ", ".join(sorted(unpublished)))
    assert faults == []
    assert unpublished == UNPUBLISHED


def only_fault(region: Rehearsed, types: AzureTypes, name: str, change: Callable[[dict[str, Any]], None]) -> str:
    """The one fault that a change of the inputs of a resource brings, without the resource's own type."""
    changed = region.changed(name, change).resource(name)
    (fault,) = types.faults(changed)
    return fault.removeprefix(arm_type_and_name(str(changed.id))[0])


def profile(inputs: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = inputs["virtualMachineProfile"]
    return found


def interface(inputs: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = profile(inputs)["networkProfile"]["networkInterfaceConfigurations"][0]
    return found


SET, GROUP = "near-gpu-000", "near-nsg-etcd"
NIC = ".properties.virtualMachineProfile.networkProfile.networkInterfaceConfigurations[0]"


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        (SET, lambda inputs: inputs.update(colour="red"), ".colour: unknown to Microsoft.Compute/virtualMachineScaleSets"),
        (
            SET,
            lambda inputs: profile(inputs).update(colour="red"),
            ".properties.virtualMachineProfile.colour: unknown to VirtualMachineScaleSetVMProfile",
        ),
        (
            SET,
            lambda inputs: interface(inputs).update(colour="red"),
            f"{NIC}.colour: unknown to VirtualMachineScaleSetNetworkConfiguration",
        ),
        (SET, lambda inputs: inputs.update(uniqueId="1"), ".properties.uniqueId: set, but read-only"),
        (SET, lambda inputs: inputs.update(etag="1"), ".etag: set, but read-only"),
        (SET, lambda inputs: inputs.pop("location"), ".location: missing, but required"),
        (SET, lambda inputs: interface(inputs).pop("name"), f"{NIC}.name: missing, but required"),
        (SET, lambda inputs: inputs["sku"].update(capacity="2"), ".sku.capacity: str where integer is wanted"),
        (SET, lambda inputs: inputs.update(overprovision="no"), ".properties.overprovision: str where boolean is wanted"),
        (
            SET,
            lambda inputs: inputs.update(orchestrationMode="uniform"),
            ".properties.orchestrationMode: 'uniform' is none of Uniform, Flexible",
        ),
        (SET, lambda inputs: inputs.update(zones="1"), ".zones: str where array is wanted"),
        (SET, lambda inputs: inputs.update(tags={"a": 1}), ".tags.a: int where string is wanted"),
        (
            GROUP,
            lambda inputs: inputs["securityRules"][0].update(protocol="tcp"),
            ".properties.securityRules[0].properties.protocol: 'tcp' is none of Tcp, Udp, Icmp, Esp, *, Ah",
        ),
        (
            GROUP,
            lambda inputs: inputs["securityRules"][0].pop("priority"),
            ".properties.securityRules[0].properties.priority: missing, but required",
        ),
    ],
)
def test_a_body_with_one_fault_is_refused_for_it(
    name: str, change: Callable[[dict[str, Any]], None], fault: str, types: AzureTypes
) -> None:
    assert only_fault(rehearsed("pair"), types, name, change) == fault


@pytest.mark.parametrize(
    ("name", "other", "fault"),
    [
        ("vaults/gf-near-node-", "vault.with.dots", "'vault.with.dots' does not match ^[a-zA-Z0-9-]{3,24}$"),
        ("storageAccounts/gfpair", "ab", "2 characters, outside 3 to 24"),
    ],
)
def test_a_name_that_azure_refuses_is_refused(name: str, other: str, fault: str, types: AzureTypes) -> None:
    (resource,) = (item for item in rehearsed("pair").base if f"/{name}" in str(item.id) and str(item.id).count("/") == 8)
    renamed = replace(resource, id=f"{str(resource.id).rpartition('/')[0]}/{other}")
    assert [found.partition("name: ")[2] for found in types.faults(renamed)] == [fault]


def test_a_discriminated_body_is_held_against_the_variant_that_it_names(types: AzureTypes) -> None:
    path = "Microsoft.VirtualMachineImages/imageTemplates"
    source = {"type": "SharedImageVersion", "imageVersionId": "/image"}
    distribute = {"type": "SharedImage", "galleryImageId": "/image", "runOutputName": "out"}
    inputs = {"location": "westeurope", "identity": {"type": "UserAssigned", "userAssignedIdentities": ["/id"]}, "distribute": [distribute]}
    template = replace(
        rehearsed("pair").resource(SET),
        type=f"{AZURE}virtualmachineimages:VirtualMachineImageTemplate",
        id=f"/subscriptions/s/resourceGroups/g/providers/{path}/template",
        inputs={**inputs, "source": source},
    )
    assert types.faults(template) == []
    wrong = replace(template, inputs={**inputs, "source": {**source, "type": "Nothing"}})
    assert types.faults(wrong) == [f"{path}.properties.source.type: 'Nothing' is none of ManagedImage, PlatformImage, SharedImageVersion"]


def test_a_type_without_a_file_is_named_with_its_version(types: AzureTypes) -> None:
    with pytest.raises(UnknownResourceTypeError, match=r"Microsoft\.Network/dnsResolvers at API version 2024-05-01"):
        types.body_of("Microsoft.Network/dnsResolvers")
    with pytest.raises(UnknownResourceTypeError, match=r"Microsoft\.Insights/components at API version unknown"):
        types.body_of("Microsoft.Insights/components")
