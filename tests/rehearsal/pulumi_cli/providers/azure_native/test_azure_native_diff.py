"""Diff reports each changed path, and the changes that force a replacement."""

from __future__ import annotations

import pytest
from azure_served import NATIVE
from provider_process import Client

from rehearsal.program.graph import Secret
from rehearsal.program.pulumi_values import UNKNOWN, Json

ADD, ADD_REPLACE, DELETE, DELETE_REPLACE, UPDATE, UPDATE_REPLACE = range(6)
SET = NATIVE + "compute:VirtualMachineScaleSet"
OLD: Json = {
    "resourceGroupName": "gf",
    "vmScaleSetName": "pool",
    "location": "southcentralus",
    "sku": {"name": "Standard_D4s_v5", "capacity": 3},
    "zones": ["1", "2"],
    "tags": {"a": "b", "x.y": "z"},
    "overprovision": False,
}
SUBNET_ID = "/subscriptions/S/resourceGroups/gf/providers/Microsoft.Network/virtualNetworks/net/subnets/a"

CHANGES: list[tuple[Json, dict[str, int]]] = [
    ({"sku": {"name": "Standard_D4s_v5", "capacity": 4}}, {"sku.capacity": UPDATE}),
    ({"tags": {"a": "c"}}, {"tags.a": UPDATE, 'tags["x.y"]': DELETE}),
    ({"zones": ["1"]}, {"zones[1]": DELETE}),
    ({"zones": ["3", "2", "1"]}, {"zones[0]": UPDATE, "zones[2]": ADD}),
    ({"overprovision": None}, {"overprovision": DELETE}),
    ({"singlePlacementGroup": False}, {"singlePlacementGroup": ADD}),
    ({"location": "eastus"}, {"location": UPDATE_REPLACE}),
    ({"vmScaleSetName": "other"}, {"vmScaleSetName": UPDATE_REPLACE}),
    ({"resourceGroupName": UNKNOWN}, {"resourceGroupName": UPDATE_REPLACE}),
    ({"sku": UNKNOWN}, {"sku": UPDATE}),
    ({"tags": Secret({"a": "b", "x.y": "z"})}, {}),
    ({"location": "South Central US"}, {}),
]


@pytest.mark.parametrize(("change", "paths"), CHANGES)
def test_each_changed_path_is_told_with_what_becomes_of_it(provider: Client, change: Json, paths: dict[str, int]) -> None:
    found = provider.diff(SET, OLD, {**OLD, **change})
    assert {path: one.kind for path, one in found.detailedDiff.items()} == paths
    assert found.changes == (2 if paths else 1)
    replaced = [path for path, kind in paths.items() if kind in (ADD_REPLACE, DELETE_REPLACE, UPDATE_REPLACE)]
    assert list(found.replaces) == replaced
    assert found.deleteBeforeReplace == bool(replaced)
    assert list(found.diffs) == list(dict.fromkeys(path.partition(".")[0].partition("[")[0] for path in found.detailedDiff))
    assert "name" in found.stables


@pytest.mark.parametrize(
    ("module_type", "old", "new", "paths"),
    [
        ("network:PrivateEndpoint", {"subnet": {"id": SUBNET_ID}}, {"subnet": {"id": SUBNET_ID + "b"}}, {"subnet.id": UPDATE_REPLACE}),
        ("network:PrivateEndpoint", {"subnet": {"id": SUBNET_ID}}, {"subnet": {"id": SUBNET_ID.lower().replace("s", "S", 1)}}, {}),
        ("network:PublicIPAddress", {}, {"sku": {"name": "Standard"}}, {"sku": ADD_REPLACE}),
        ("storage:StorageAccount", {"isHnsEnabled": True}, {}, {"isHnsEnabled": DELETE_REPLACE}),
        ("authorization:RoleAssignment", {"principalId": "a"}, {"principalId": "b"}, {"principalId": UPDATE_REPLACE}),
        ("network:Subnet", {"virtualNetworkName": "a"}, {"virtualNetworkName": "b"}, {"virtualNetworkName": UPDATE_REPLACE}),
        ("network:Subnet", {"addressPrefix": "10.0.0.0/24"}, {"addressPrefix": "10.0.1.0/24"}, {"addressPrefix": UPDATE}),
    ],
)
def test_what_azure_fixed_at_creation_makes_a_resource_anew(
    provider: Client, module_type: str, old: Json, new: Json, paths: dict[str, int]
) -> None:
    found = provider.diff(NATIVE + module_type, old, new)
    assert {path: one.kind for path, one in found.detailedDiff.items()} == paths


def test_a_replacement_under_a_random_name_is_made_before_the_old_one_goes(provider: Client) -> None:
    old, _ = provider.check(SET, {"resourceGroupName": "gf"}, name="pool")
    found = provider.diff(SET, old, {**old, "location": "eastus"})
    assert list(found.replaces) == ["location"]
    assert not found.deleteBeforeReplace
