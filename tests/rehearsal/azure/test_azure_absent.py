"""A DELETE of what is not there is answered with a status that the official client of its type takes, or with 404."""

from __future__ import annotations

import pytest
from plain_calls import GROUP, LOCATION, Calls

ACCOUNT = "Microsoft.Storage/storageAccounts/fleetbackup"
CONTAINER = f"{ACCOUNT}/blobServices/default/containers/etcd"


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
