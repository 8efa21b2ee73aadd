"""A virtual machine has exclusive interfaces and disks, fixed properties, and releases all its resources."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from scale_sets_made import (
    COMPUTE,
    EPHEMERAL,
    GROUP,
    SUBNET,
    SUBSCRIPTION,
    ask,
    azure,
    codes,
    delete,
    ended,
    error,
    image,
    login,
    merged,
    post,
    put,
)

from rehearsal.azure.capacity import capacity_of
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.virtual_machine import machine_of
from rehearsal.azure.compute.virtual_machine_rules import FIXED_PROPERTIES
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json
from rehearsal.azure.scenario import AllocationFailure, Scenario

VM = f"{COMPUTE}/virtualMachines/etcd-0"
NIC = f"{GROUP}/providers/Microsoft.Network/networkInterfaces/etcd-0"
DISK = f"{COMPUTE}/disks/etcd-0-os"


def body(*, nic: str = NIC, size: str = "Standard_L8s_v3", **changes: Any) -> Json:
    whole: Json = {
        "location": "swedencentral",
        "zones": ["1"],
        "properties": {
            "hardwareProfile": {"vmSize": size},
            "osProfile": {"computerName": "etcd-0", **login(), "customData": "Ym9vdA=="},
            "storageProfile": {
                "imageReference": image("1.0.0"),
                "osDisk": {
                    "name": "etcd-0-os",
                    "createOption": "FromImage",
                    "managedDisk": {"storageAccountType": "Premium_LRS"},
                    "deleteOption": "Delete",
                },
            },
            "networkProfile": {"networkInterfaces": [{"id": nic, "properties": {"primary": True, "deleteOption": "Detach"}}]},
        },
    }
    merged(whole["properties"], changes)
    return whole


def interface(cloud: Cloud, text: str = NIC) -> None:
    own = [{"name": "member", "properties": {"primary": True, "subnet": {"id": SUBNET}}}]
    put(cloud, text, {"location": "swedencentral", "properties": {"ipConfigurations": own}})


def made(scenario: Scenario | None = None, **changes: Any) -> Cloud:
    cloud = azure(scenario)
    interface(cloud)
    put(cloud, VM, body(**changes))
    return cloud


def used(cloud: Cloud) -> int:
    return capacity_of(cloud).quota.used((SUBSCRIPTION, "swedencentral"), "cores")


def test_a_machine_brings_its_os_disk_and_tells_no_secret() -> None:
    cloud = made()
    result = ask(cloud, "GET", VM).body
    assert result is not None
    assert result["properties"]["storageProfile"]["osDisk"]["managedDisk"]["id"] == DISK
    assert "customData" not in result["properties"]["osProfile"]
    assert codes(cloud, VM) == ["ProvisioningState/succeeded", "PowerState/running"]
    disk = ask(cloud, "GET", DISK).body
    assert disk is not None
    assert (disk["managedBy"], disk["properties"]["diskState"]) == (VM, "Attached")
    with pytest.raises(AzureError, match="is attached to VM"):
        ask(cloud, "DELETE", DISK)


def test_an_interface_is_of_one_machine_alone_and_stays_while_it_is() -> None:
    cloud = made()
    with pytest.raises(AzureError, match="NicInUse"):
        ask(cloud, "PUT", f"{VM}x", body())
    with pytest.raises(AzureError, match="at least one network interface"):
        ask(cloud, "PUT", f"{VM}x", body(networkProfile__networkInterfaces=[]))
    with pytest.raises(AzureError):
        ask(cloud, "DELETE", NIC)


@pytest.mark.parametrize(("option", "kept"), [("Delete", False), ("Detach", True)])
def test_a_deleted_machine_takes_along_what_its_delete_options_say(option: str, kept: bool) -> None:
    cloud = made(storageProfile__osDisk__deleteOption=option)
    assert used(cloud) == 8
    delete(cloud, VM)
    cloud.run_until_idle()
    assert cloud.find(VM) is None
    assert (cloud.find(DISK) is not None) == kept
    assert cloud.find(NIC) is not None
    assert (used(cloud), capacity_of(cloud).hosts.in_use()) == (0, 0)
    if kept:
        disk = ask(cloud, "GET", DISK).body
        assert disk is not None
        assert disk["properties"]["diskState"] == "Unattached"


CHANGES: dict[str, Any] = {
    "zones": ["2"],
    "customData": "bmV3",
    "osProfile.computerName": "other",
    "adminUsername": "other",
    "imageReference": image("2.0.0"),
    "osDisk.name": "other",
    "osDisk.createOption": "Attach",
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_fixed_at_creation_cannot_be_changed(name: str) -> None:
    cloud = made()
    sent = copy.deepcopy(body())
    place = sent
    *names, last = FIXED_PROPERTIES[name][0].split(".")
    for part in names:
        place = place[part]
    place[last] = CHANGES[name]
    with pytest.raises(AzureError) as caught:
        ask(cloud, "PUT", VM, sent)
    assert (caught.value.code, caught.value.target) == ("PropertyChangeNotAllowed", name)


def test_a_put_that_could_not_read_the_boot_data_keeps_it_and_one_that_changes_nothing_is_taken() -> None:
    cloud = made()
    sent = body()
    del sent["properties"]["osProfile"]["customData"]
    assert error(put(cloud, VM, sent)) == ""
    assert cloud.get(VM).sent["properties"]["osProfile"]["customData"] == "Ym9vdA=="
    assert error(put(cloud, VM, {**body(), "tags": {"a": "b"}})) == ""
    assert machine_of(cloud.get(VM)).os_disk == 1


def test_interfaces_change_only_on_a_machine_that_is_deallocated() -> None:
    cloud = made()
    interface(cloud, f"{NIC}b")
    with pytest.raises(AzureError, match="AddingOrDeletingNetworkInterfacesOnARunningVirtualMachine"):
        ask(cloud, "PUT", VM, body(nic=f"{NIC}b"))
    post(cloud, VM, "deallocate")
    assert error(put(cloud, VM, body(nic=f"{NIC}b"))) == ""
    delete(cloud, NIC)
    assert cloud.find(NIC) is None


@pytest.mark.parametrize(
    ("action", "power", "local", "moved"),
    [
        ("restart", "running", False, False),
        ("powerOff", "stopped", False, False),
        ("redeploy", "running", True, True),
        ("deallocate", "deallocated", True, True),
    ],
)
def test_what_an_action_takes_from_a_machine(action: str, power: str, local: bool, moved: bool) -> None:
    cloud = made()
    machine = machine_of(cloud.get(VM))
    disks, host = machine.local_disks, machine.host
    assert post(cloud, VM, action).status == "Succeeded"
    assert (machine.power, machine.local_disks != disks, machine.host != host) == (power, local, moved)
    assert machine.os_disk == 1


def test_an_ephemeral_os_disk_is_reset_in_place_and_forbids_a_deallocation() -> None:
    cloud = made(size="Standard_D2ads_v6", storageProfile__osDisk=EPHEMERAL)
    with pytest.raises(AzureError, match="'deallocate' is not supported"):
        ask(cloud, "POST", VM, action="deallocate")
    post(cloud, VM, "reimage")
    assert machine_of(cloud.get(VM)).os_disk == 2
    post(cloud, VM, "redeploy")
    assert machine_of(cloud.get(VM)).os_disk == 3, "an ephemeral OS disk is lost with its host"


@pytest.mark.parametrize(("option", "kept"), [("Delete", False), ("Detach", True)])
def test_a_reimage_attaches_a_new_managed_os_disk(option: str, kept: bool) -> None:
    cloud = made(storageProfile__osDisk__deleteOption=option)
    post(cloud, VM, "reimage", {"tempDisk": True})
    cloud.run_until_idle()
    os_disk = cloud.get(VM).properties["storageProfile"]["osDisk"]
    assert (cloud.find(DISK) is not None) == kept
    assert os_disk["managedDisk"]["id"] == f"{COMPUTE}/disks/{os_disk['name']}" != DISK
    assert (ask(cloud, "GET", os_disk["managedDisk"]["id"]).body or {})["managedBy"] == VM
    machine = ask(cloud, "GET", VM).body
    assert machine is not None
    assert put(cloud, VM, {name: machine[name] for name in ("location", "zones", "properties")}), "what a GET answers can be put again"
    with pytest.raises(AzureError, match=r"osDisk\.name"):
        ask(cloud, "PUT", VM, body(storageProfile__osDisk__deleteOption=option))


def test_a_stopped_machine_is_generalized_for_good() -> None:
    cloud = made()
    with pytest.raises(AzureError, match="since it is running"):
        ask(cloud, "POST", VM, action="generalize")
    post(cloud, VM, "deallocate")
    assert ask(cloud, "POST", VM, action="generalize").status == 200
    assert codes(cloud, VM)[-1] == "OSState/generalized"
    with pytest.raises(AzureError, match="since the VM is generalized"):
        ask(cloud, "POST", VM, action="start")


def test_a_machine_creates_the_interfaces_that_it_describes_and_deletes_them_as_they_say() -> None:
    cloud, sent = azure(), body()
    public = {"name": "ip", "sku": {"name": "Standard"}, "properties": {"deleteOption": "Delete"}}
    own = {"primary": True, "subnet": {"id": SUBNET}, "publicIPAddressConfiguration": public}
    interface = {"primary": True, "deleteOption": "Delete", "ipConfigurations": [{"name": "own", "properties": own}]}
    configured = {"networkApiVersion": "2022-11-01", "networkInterfaceConfigurations": [{"name": "nic", "properties": interface}]}
    sent["properties"]["networkProfile"] = configured
    put(cloud, VM, sent)
    (link,) = cloud.get(VM).properties["networkProfile"]["networkInterfaces"]
    nic = cloud.get(link["id"])
    inner = nic.properties["ipConfigurations"][0]["properties"]
    assert inner["privateIPAddress"] == "10.0.0.4"
    assert cloud.get(inner["publicIPAddress"]["id"]).properties["ipAddress"]
    with pytest.raises(AzureError, match="NicInUse"):
        ask(cloud, "PUT", f"{VM}x", body(nic=link["id"]))
    put(cloud, VM, {**sent, "tags": {"role": "etcd"}})
    assert cloud.get(VM).properties["networkProfile"] == {"networkInterfaces": [link]}
    delete(cloud, VM)
    cloud.run_until_idle()
    assert (cloud.find(nic.key), cloud.find(inner["publicIPAddress"]["id"])) == (None, None)


def test_an_interface_without_a_subnet_is_created_without_an_address() -> None:
    cloud, sent = azure(), body()
    interface = {"ipConfigurations": [{"name": "own", "properties": {"primary": True}}], "deleteOption": "Delete"}
    configured = {"networkApiVersion": "2020-11-01", "networkInterfaceConfigurations": [{"name": "nic", "properties": interface}]}
    sent["properties"]["networkProfile"] = configured
    put(cloud, VM, sent)
    (link,) = cloud.get(VM).properties["networkProfile"]["networkInterfaces"]
    found = ask(cloud, "GET", link["id"]).body
    assert found is not None
    assert "privateIPAddress" not in found["properties"]["ipConfigurations"][0]["properties"]
    delete(cloud, VM)
    cloud.run_until_idle()
    assert cloud.find(link["id"]) is None


def test_a_data_disk_that_is_to_be_detached_stays_without_a_machine() -> None:
    disks = [{"lun": lun, "createOption": "Empty", "diskSizeGB": 8} for lun in (0, 1)]
    cloud = made(storageProfile__dataDisks=disks)
    first, second = [one["managedDisk"]["id"] for one in cloud.get(VM).properties["storageProfile"]["dataDisks"]]
    put(cloud, VM, body(storageProfile__dataDisks=[{**disks[0], "toBeDetached": True}, disks[1]]))
    assert [one["lun"] for one in cloud.get(VM).properties["storageProfile"]["dataDisks"]] == [1]
    states = [(ask(cloud, "GET", one).body or {})["properties"]["diskState"] for one in (first, second)]
    assert states == ["Unattached", "Attached"]


@pytest.mark.parametrize(
    ("profile", "target"),
    [
        ({"networkInterfaceConfigurations": [{"name": "a", "properties": {"ipConfigurations": [{"name": "b"}]}}]}, "networkApiVersion"),
        ({"networkApiVersion": "2022-11-01", "networkInterfaceConfigurations": [{"name": "a"}]}, "ipConfigurations"),
        ({"networkApiVersion": "2022-11-01", "networkInterfaceConfigurations": [{"name": "a"}] * 2}, "networkInterfaceConfigurations"),
    ],
)
def test_incomplete_configurations_of_interfaces_are_refused(profile: Json, target: str) -> None:
    cloud, sent = azure(), body()
    sent["properties"]["networkProfile"] = profile
    with pytest.raises(AzureError) as refused:
        ask(cloud, "PUT", VM, sent)
    assert str(refused.value.target).endswith(target)
    assert [one.id.text for one in cloud.list(GROUP, "Microsoft.Network/networkInterfaces")] == []


def test_one_thing_is_done_to_a_machine_at_a_time() -> None:
    cloud = made()
    answer = ask(cloud, "POST", VM, action="restart")
    for method, sent, action in (("POST", None, "redeploy"), ("PUT", body(), "")):
        with pytest.raises(AzureError) as caught:
            ask(cloud, method, VM, sent, action)
        assert caught.value.code == "Conflict"
    assert error(ended(cloud, answer)) == ""
    answer = ask(cloud, "POST", VM, action="restart")
    delete(cloud, VM)
    assert error(answer.operation) == "OperationPreempted"


def test_another_size_takes_other_quota_and_other_hardware() -> None:
    cloud = made()
    host = machine_of(cloud.get(VM)).host
    put(cloud, VM, body(size="Standard_L16s_v3"))
    assert used(cloud) == 16
    assert machine_of(cloud.get(VM)).host != host


def test_a_machine_without_hardware_stays_as_failed_and_the_next_put_tries_again() -> None:
    cloud = made(Scenario(allocation_failures=(AllocationFailure(rate=1.0),)))
    assert cloud.get(VM).properties["provisioningState"] == "Failed"
    assert codes(cloud, VM) == ["ProvisioningState/failed/ZonalAllocationFailed"]
    cloud.services["scenario"].scenario = Scenario()
    assert error(put(cloud, VM, body())) == ""
    assert codes(cloud, VM) == ["ProvisioningState/succeeded", "PowerState/running"]


def test_data_disks_come_with_the_machine_or_are_attached_to_it_alone() -> None:
    cloud = azure()
    own = f"{COMPUTE}/disks/data"
    put(cloud, own, {"location": "swedencentral", "properties": {"creationData": {"createOption": "Empty"}, "diskSizeGB": 64}})
    interface(cloud)
    interface(cloud, f"{NIC}b")
    attached = {"lun": 0, "createOption": "Attach", "managedDisk": {"id": own}}
    fresh = {"lun": 1, "createOption": "Empty", "diskSizeGB": 32, "deleteOption": "Delete"}
    sent = body(storageProfile__dataDisks=[attached, fresh])
    put(cloud, VM, sent)
    assert "managedDisk" not in sent["properties"]["storageProfile"]["dataDisks"][1]
    made_disk = f"{COMPUTE}/disks/etcd-0_DataDisk_1"
    assert cloud.find(made_disk) is not None
    other = body(nic=f"{NIC}b", storageProfile__dataDisks=[attached])
    other["properties"]["storageProfile"]["osDisk"]["name"] = "other-os"
    with pytest.raises(AzureError, match="already owned by VM"):
        ask(cloud, "PUT", f"{VM}b", other)
    assert error(put(cloud, VM, body(storageProfile__dataDisks=[attached, fresh]))) == ""
    delete(cloud, VM)
    cloud.run_until_idle()
    assert (cloud.find(own) is None, cloud.find(made_disk) is None) == (False, True)


def test_a_disk_has_a_source_and_only_grows() -> None:
    cloud = azure()
    own = f"{COMPUTE}/disks/data"
    with pytest.raises(AzureError, match="creationData"):
        ask(cloud, "PUT", own, {"location": "swedencentral", "properties": {}})
    empty: Json = {"creationData": {"createOption": "Empty"}}
    with pytest.raises(AzureError, match=r"disk\.diskSizeGB"):
        ask(cloud, "PUT", own, {"location": "swedencentral", "properties": empty})
    put(cloud, own, {"location": "swedencentral", "properties": {**empty, "diskSizeGB": 64}})
    with pytest.raises(AzureError, match="cannot be made smaller"):
        ask(cloud, "PUT", own, {"location": "swedencentral", "properties": {**empty, "diskSizeGB": 32}})
    with pytest.raises(AzureError, match="creationData"):
        ask(cloud, "PUT", own, {"location": "swedencentral", "properties": {"creationData": {"createOption": "Copy"}, "diskSizeGB": 64}})


def test_a_machine_tells_the_version_of_the_image_from_which_it_was_created() -> None:
    newest = {"publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2404", "version": "latest"}
    cloud = made(storageProfile__imageReference=newest)
    cloud.advance(cloud.now + 60 * 86_400)
    put(cloud, VM, {**body(storageProfile__imageReference=newest), "tags": {"team": "fleet"}})
    found = ask(cloud, "GET", VM).body
    assert found is not None
    assert found["properties"]["storageProfile"]["imageReference"] == {**newest, "exactVersion": "24.04.202601010"}
