"""Ids, names and properties mean the same in whatever capitals they are written."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from network_bodies import HUB, NET, NODES, SINGLE, full, interface, located, made, network, place
from plain_calls import GROUP, LOCATION, SUBSCRIPTION, Calls
from scale_sets_made import SET, azure, body, put
from scale_sets_made import SUBNET as SET_SUBNET
from vault_bodies import VAULT, calls_with_vault, vault

from rehearsal.azure.arm_id import parse
from rehearsal.azure.resource import Request


def shouted(text: str) -> str:
    """An id in capitals."""
    return full(text).upper()


def test_a_reference_in_capitals_keeps_what_it_names() -> None:
    calls = made()
    one = place("one")
    one["properties"]["subnet"] = {"id": shouted(NODES)}
    calls.put(SINGLE, interface(one))
    assert calls.refusal("DELETE", NODES).code == "InUseSubnetCannotBeDeleted"
    one["properties"]["subnet"] = {"id": shouted(f"{HUB}/subnets/none")}
    assert calls.refusal("PUT", f"{NET}/networkInterfaces/other", interface(one)).code == "InvalidResourceReference"


def test_a_scale_set_in_a_subnet_in_capitals_keeps_it() -> None:
    cloud = azure()
    whole = body(2, addresses=1)
    nics = whole["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"]
    nics[0]["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"] = SET_SUBNET.upper()
    put(cloud, SET.upper(), whole)
    assert cloud.get(SET).id.type == "Microsoft.Compute/virtualMachineScaleSets"
    assert [one.key for one in cloud.list(GROUP.upper().replace("/G", "/X"), "x")] == []
    assert len(list(cloud.list(SET.upper(), "MICROSOFT.COMPUTE/VIRTUALMACHINESCALESETS/VIRTUALMACHINES"))) == 2


def test_types_are_answered_in_azures_own_capitals() -> None:
    calls = Calls()
    text = f"/SUBSCRIPTIONS/{SUBSCRIPTION}/resourcegroups/g/PROVIDERS/microsoft.network/VIRTUALNETWORKS/Mine"
    calls.put(text, network("10.0.0.0/16", subnets={"Nodes": "10.0.0.0/24"}))
    result = calls.get(full(f"{NET}/virtualNetworks/mine"))
    assert (result["type"], result["name"]) == ("Microsoft.Network/virtualNetworks", "Mine")
    assert result["id"] == f"{GROUP}/providers/Microsoft.Network/virtualNetworks/Mine"
    assert result["properties"]["subnets"][0]["type"] == "Microsoft.Network/virtualNetworks/subnets"
    lock = f"{text}/providers/MICROSOFT.AUTHORIZATION/LOCKS/Stay"
    calls.put(lock, {"properties": {"level": "ReadOnly"}})
    found = [one.id.text for one in calls.cloud.list(f"/subscriptions/{SUBSCRIPTION}", "Microsoft.Authorization/locks")]
    assert found == [f"{result['id']}/providers/Microsoft.Authorization/locks/Stay"]


def without_etags(value: Any) -> Any:
    """Return an answer without its etags: an interface's parts have one too."""
    if isinstance(value, dict):
        return {key: without_etags(item) for key, item in value.items() if key != "etag"}
    return [without_etags(item) for item in value] if isinstance(value, list) else value


def test_a_put_in_other_capitals_is_of_the_same_resource() -> None:
    calls = made()
    calls.put(SINGLE, interface())
    before = calls.get(SINGLE)
    calls.put(SINGLE.upper(), interface())
    after = calls.get(SINGLE)
    assert without_etags(after) == without_etags(before)
    assert [one.id.name for one in calls.cloud.list(GROUP, "microsoft.network/networkinterfaces")] == ["single"]


def test_a_patch_in_other_capitals_changes_what_it_names_alone() -> None:
    calls = Calls()
    calls.put(HUB, {**network("10.0.0.0/16"), "tags": {"team": "a", "tier": "1"}})
    calls.settled(calls.call("PATCH", HUB, {"TAGS": {"Team": "b", "owner": None}, "PROPERTIES": {"FlowTimeoutInMinutes": 5}}))
    result = calls.get(HUB)
    assert result["tags"] == {"team": "b", "tier": "1"}
    assert result["properties"]["flowTimeoutInMinutes"] == 5
    assert result["properties"]["addressSpace"] == {"addressPrefixes": ["10.0.0.0/16"]}


def test_a_patch_takes_away_what_it_says_is_null_in_what_is_new_too() -> None:
    calls = Calls()
    calls.put(HUB, network("10.0.0.0/16"))
    calls.settled(calls.call("PATCH", HUB, {"tags": {"team": "a", "owner": None}}))
    assert calls.get(HUB)["tags"] == {"team": "a"}


def test_a_group_stays_where_it_is() -> None:
    calls = Calls()
    assert calls.put(GROUP.upper(), {"location": "Sweden Central"})["name"] == "g"
    refused = calls.refusal("PUT", GROUP, {"location": "westus"})
    assert refused.code == "InvalidResourceGroupLocation"
    assert refused.message == f"Invalid resource group location 'westus'. The Resource group already exists in location '{LOCATION}'."


def test_an_etag_of_a_resource_that_was_deleted_fits_no_later_one() -> None:
    calls = made()
    calls.put(SINGLE, interface())
    stale = calls.get(SINGLE)["etag"]
    calls.delete(SINGLE)
    calls.put(SINGLE, interface())
    assert calls.get(SINGLE)["etag"] != stale


def test_a_recovered_vault_is_patched_as_what_it_is() -> None:
    calls = calls_with_vault()
    calls.delete(VAULT)
    calls.put(VAULT, vault(createMode="recover"))
    before = calls.get(VAULT)["properties"]
    calls.settled(calls.call("PATCH", VAULT, {"tags": {"team": "a"}}))
    assert calls.get(VAULT)["properties"] == before


MISSING = """
import sys
sys.path[:0] = {path!r}
from network_bodies import *
from rehearsal.azure.errors import AzureError
calls = made()
names = [place(f"one{{number}}", f"{{HUB}}/subnets/none{{number}}") for number in range(6)]
try:
    calls.call("PUT", SINGLE, interface(*names))
except AzureError as refused:
    print(refused.target)
"""


def test_of_several_missing_references_the_first_is_told_in_every_process() -> None:
    output = [
        subprocess.run(
            [sys.executable, "-c", MISSING.format(path=sys.path)], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        for seed in ("1", "2", "3")
    ]
    assert {one.stdout.strip() for one in output} == {full(f"{HUB}/subnets/none0")}


def test_a_list_of_users_is_in_the_order_of_their_making_also_after_a_change() -> None:
    calls = made()
    gateway = f"{NET}/natGateways/way"
    calls.put(gateway, located("Standard"))
    for name, number in (("a", 1), ("b", 2)):
        calls.put(f"{HUB}/subnets/{name}", {"properties": {"addressPrefix": f"10.0.{number}.0/24", "natGateway": {"id": full(gateway)}}})
    calls.put(f"{HUB}/subnets/a", {"properties": {"addressPrefix": "10.0.1.0/24"}})
    calls.put(f"{HUB}/subnets/a", {"properties": {"addressPrefix": "10.0.1.0/24", "natGateway": {"id": full(gateway)}}})
    result = calls.get(gateway)["properties"]["subnets"]
    assert [one["id"].rpartition("/")[2] for one in result] == ["a", "b"]
    assert calls.rebuilt().get(gateway)["properties"]["subnets"] == result


def test_a_group_has_one_address_only() -> None:
    calls = Calls()
    other = parse(f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Resources/resourceGroups/g")
    refused = calls.refusal("PUT", other.text, {"location": LOCATION})
    assert refused.status == 404
    assert Request("GET", other).id.group == ""
