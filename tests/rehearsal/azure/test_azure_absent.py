"""A DELETE of what is not there is answered with a status that the official client of its type takes, or with 404."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from azure.mgmt.compute.operations import DisksOperations, ProximityPlacementGroupsOperations, VirtualMachineScaleSetsOperations
from azure.mgmt.network.operations import VirtualNetworksOperations
from azure.mgmt.resource.resources.operations import ResourceGroupsOperations
from azure.mgmt.storage.operations import BlobContainersOperations, StorageAccountsOperations
from plain_calls import GROUP, LOCATION, Calls

from rehearsal.azure.registry import RESOURCE_TYPES

ACCOUNT = "Microsoft.Storage/storageAccounts/fleetbackup"
CONTAINER = f"{ACCOUNT}/blobServices/default/containers/etcd"
DELETES: dict[str, Callable[..., Any]] = {
    "Microsoft.Resources/resourceGroups": ResourceGroupsOperations._delete_initial,
    "Microsoft.Compute/proximityPlacementGroups": ProximityPlacementGroupsOperations.delete,
    "Microsoft.Compute/disks": DisksOperations._delete_initial,
    "Microsoft.Compute/virtualMachineScaleSets": VirtualMachineScaleSetsOperations._delete_initial,
    "Microsoft.Network/virtualNetworks": VirtualNetworksOperations._delete_initial,
    "Microsoft.Storage/storageAccounts": StorageAccountsOperations.delete,
    "Microsoft.Storage/storageAccounts/blobServices/containers": BlobContainersOperations.delete,
    "Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies": BlobContainersOperations.delete_immutability_policy,
}


@pytest.mark.parametrize("resource_type", DELETES)
def test_204_is_answered_where_the_official_client_takes_it_and_nowhere_else(resource_type: str) -> None:
    kind = next(kind for kind in RESOURCE_TYPES if kind.type == resource_type)
    assert ("204" in inspect.getsource(DELETES[resource_type])) == kind.missing_delete_succeeds


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{GROUP}one", "ResourceGroupNotFound"),
        ("Microsoft.Compute/proximityPlacementGroups/near", "ResourceNotFound"),
        (f"{CONTAINER}/immutabilityPolicies/default", "ResourceNotFound"),
    ],
)
def test_a_type_whose_client_takes_no_204_is_not_found(text: str, code: str) -> None:
    calls = Calls()
    calls.put(ACCOUNT, {"location": LOCATION, "sku": {"name": "Standard_LRS"}, "kind": "StorageV2", "properties": {}})
    calls.put(CONTAINER)
    refused = calls.refusal("DELETE", text)
    assert (refused.status, refused.code) == (404, code)


def test_any_other_type_is_gone_already() -> None:
    assert Calls().call("DELETE", "Microsoft.Network/virtualNetworks/hub").status == 204
