"""Responses of the embedded Azure for scale sets, instances and machines match Azure's published types."""

from __future__ import annotations

from typing import Any

import pytest
from published import answer_faults, needs_published_types, sent_faults
from scale_sets_made import COMPUTE, GROUP, HEALTH, SET, SUBNET, ask, azure, body, image, login, put, vm

from rehearsal.azure.compute.instance_network import INSTANCE
from rehearsal.azure.resource import Json

pytestmark = needs_published_types
SCALE_SET, MACHINE = "Microsoft.Compute/virtualMachineScaleSets", "Microsoft.Compute/virtualMachines"
VERSIONS = pytest.mark.parametrize("version", ["2024-11-01", "2026-04-01"])
REPAIRED: dict[str, Any] = {
    "automaticRepairsPolicy": {"enabled": True, "gracePeriod": "PT10M"},
    "virtualMachineProfile__extensionProfile": {"extensions": [HEALTH]},
}


def response_body(text: str, *, made: Json, into: str) -> Json:
    """Return the body of a GET of text after a PUT into a resource, including the instance view."""
    cloud = azure()
    nic = f"{GROUP}/providers/Microsoft.Network/networkInterfaces/one"
    own = [{"name": "own", "properties": {"primary": True, "subnet": {"id": SUBNET}}}]
    put(cloud, nic, {"location": "swedencentral", "properties": {"ipConfigurations": own}})
    put(cloud, into, made)
    found = ask(cloud, "GET", text, **{"$expand": "instanceView"}).body
    assert found is not None
    return found


@VERSIONS
def test_a_scale_set_and_its_instances_fit(version: str) -> None:
    sent = {**body(2, **REPAIRED), "zones": ["1"]}
    assert sent_faults(SCALE_SET, version, {**sent, "name": "pool-000"}) == []
    assert answer_faults(SCALE_SET, version, response_body(SET, made=sent, into=SET)) == []
    assert answer_faults(INSTANCE, version, response_body(vm(0), made=sent, into=SET)) == []


@VERSIONS
def test_a_virtual_machine_fits(version: str) -> None:
    machine = f"{COMPUTE}/virtualMachines/one"
    sent: Json = {
        "location": "swedencentral",
        "zones": ["1"],
        "properties": {
            "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
            "osProfile": {"computerName": "one", **login(), "customData": "Ym9vdA=="},
            "storageProfile": {
                "imageReference": image("1.0.0"),
                "osDisk": {"createOption": "FromImage"},
                "dataDisks": [{"lun": 0, "createOption": "Empty", "diskSizeGB": 8}],
            },
            "networkProfile": {"networkInterfaces": [{"id": f"{GROUP}/providers/Microsoft.Network/networkInterfaces/one"}]},
        },
    }
    assert answer_faults(MACHINE, version, response_body(machine, made=sent, into=machine)) == []
