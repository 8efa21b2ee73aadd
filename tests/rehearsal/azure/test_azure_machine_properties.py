"""Answers about machines have the properties that Azure adds, under the names of the official SDK's models."""

from __future__ import annotations

from typing import Any

import pytest
from azure.mgmt.compute import models
from azure.mgmt.compute._utils.model_base import _deserialize
from scale_sets_made import COMPUTE, GROUP, HEALTH, SET, SUBNET, ask, azure, body, delete, image, login, post, put, vm

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json

MACHINE = f"{COMPUTE}/virtualMachines/one"
NIC = f"{GROUP}/providers/Microsoft.Network/networkInterfaces/one"
DISKS = {"dataDisks": [{"lun": 0, "createOption": "Empty", "diskSizeGB": 8}], "osDisk": {"createOption": "FromImage"}}
STORAGE = {"imageReference": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"}, **DISKS}
OS_PROFILE = "allow_extension_operations require_guest_provision_signal secrets"
LINUX_PROFILE = f"{OS_PROFILE} linux_configuration.disable_password_authentication linux_configuration.provision_vm_agent"
INTERFACES = "network_interface_configurations"
INTERFACE = "dns_settings.dns_servers enable_accelerated_networking disable_tcp_state_tracking enable_ip_forwarding"
VIEW = "computer_name os_name os_version hyper_v_generation vm_agent.vm_agent_version vm_agent.statuses disks statuses"
ADDED: dict[str, tuple[Any, str]] = {
    "set": (
        models.VirtualMachineScaleSet,
        "etag sku.tier properties.unique_id properties.time_created properties.provisioning_state properties.orchestration_mode "
        "properties.single_placement_group properties.overprovision properties.platform_fault_domain_count properties.zone_balance "
        "properties.do_not_run_extensions_on_overprovisioned_v_ms properties.virtual_machine_profile.priority "
        "properties.virtual_machine_profile.time_created properties.virtual_machine_profile.storage_profile.os_disk.caching "
        "properties.virtual_machine_profile.storage_profile.os_disk.managed_disk.storage_account_type "
        "properties.virtual_machine_profile.os_profile.computer_name_prefix "
        + " ".join(f"properties.virtual_machine_profile.os_profile.{one}" for one in LINUX_PROFILE.split())
        + " "
        + " ".join(f"properties.virtual_machine_profile.network_profile.{INTERFACES}.0.{one}" for one in INTERFACE.split())
        + f" properties.virtual_machine_profile.network_profile.{INTERFACES}.0.ip_configurations.0.private_ip_address_version",
    ),
    "instance": (
        models.VirtualMachineScaleSetVM,
        "instance_id etag sku.tier zones properties.vm_id properties.latest_model_applied properties.model_definition_applied "
        "properties.time_created properties.hardware_profile.vm_size properties.storage_profile.os_disk.managed_disk.id "
        "properties.storage_profile.data_disks.0.managed_disk.id properties.storage_profile.data_disks.0.to_be_detached "
        "properties.os_profile.computer_name properties.network_profile.network_interfaces.0.id "
        + " ".join(f"properties.os_profile.{one}" for one in LINUX_PROFILE.split())
        + " "
        + " ".join(f"properties.network_profile_configuration.{INTERFACES}.0.{one}" for one in INTERFACE.split())
        + " "
        + " ".join(f"properties.instance_view.{one}" for one in VIEW.split())
        + " properties.instance_view.platform_fault_domain properties.instance_view.platform_update_domain"
        " properties.instance_view.vm_health.status.code properties.instance_view.extensions.0.statuses"
        " properties.instance_view.vm_agent.extension_handlers.0.status.code",
    ),
    "machine": (
        models.VirtualMachine,
        "etag properties.vm_id properties.time_created properties.storage_profile.os_disk.managed_disk.id "
        "properties.storage_profile.os_disk.caching properties.storage_profile.os_disk.delete_option "
        "properties.storage_profile.os_disk.disk_size_gb properties.storage_profile.data_disks.0.managed_disk.id "
        "properties.storage_profile.data_disks.0.caching properties.os_profile.linux_configuration.patch_settings.patch_mode "
        "properties.os_profile.linux_configuration.patch_settings.assessment_mode "
        + " ".join(f"properties.os_profile.{one}" for one in LINUX_PROFILE.split())
        + " "
        + " ".join(f"properties.instance_view.{one}" for one in VIEW.split()),
    ),
    "disk": (
        models.Disk,
        (
            "managed_by sku.tier properties.unique_id properties.time_created properties.disk_state properties.disk_size_bytes "
            "properties.disk_iops_read_write properties.disk_m_bps_read_write properties.encryption.type properties.tier "
            "properties.os_type properties.hyper_v_generation properties.network_access_policy properties.public_network_access"
        ),
    ),
}


@pytest.fixture(scope="module")
def cloud() -> Cloud:
    """An Azure with a scale set of two machines and a virtual machine, which all have managed disks and user data."""
    made = azure()
    profile = {"storageProfile": STORAGE, "userData": "dXNlcg==", "extensionProfile": {"extensions": [HEALTH]}}
    put(made, SET, {**body(2, **{f"virtualMachineProfile__{name}": value for name, value in profile.items()}), "zones": ["1"]})
    own = [{"name": "own", "properties": {"primary": True, "subnet": {"id": SUBNET}}}]
    put(made, NIC, {"location": "swedencentral", "properties": {"ipConfigurations": own}})
    machine = {
        "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
        "osProfile": {"computerName": "one", **login(), "customData": "Ym9vdA=="},
        "storageProfile": STORAGE,
        "networkProfile": {"networkInterfaces": [{"id": NIC}]},
        "userData": "dXNlcg==",
    }
    put(made, MACHINE, {"location": "swedencentral", "properties": machine})
    made.advance(made.now + 3_600)
    return made


def answered(cloud: Cloud, text: str, **query: str) -> Json:
    found = ask(cloud, "GET", text, **query).body
    assert found is not None
    return found


def disk_ids(cloud: Cloud, text: str) -> list[str]:
    storage = answered(cloud, text)["properties"]["storageProfile"]
    return [one["managedDisk"]["id"] for one in (storage["osDisk"], *storage["dataDisks"])]


def value_of(model: Any, path: str) -> Any:
    for name in path.split("."):
        model = model[int(name)] if name.isdigit() else getattr(model, name)
    return model


@pytest.mark.parametrize("what", ADDED)
def test_the_sdk_reads_every_property_that_azure_adds(cloud: Cloud, what: str) -> None:
    text = {"set": SET, "instance": vm(0), "machine": MACHINE, "disk": disk_ids(cloud, MACHINE)[0]}[what]
    kind, paths = ADDED[what]
    model = _deserialize(kind, answered(cloud, text, **{"$expand": "instanceView"}))
    assert [path for path in paths.split() if value_of(model, path) is None] == []


def test_user_data_is_answered_for_expand_only_and_secrets_never(cloud: Cloud) -> None:
    for text in (SET, vm(1), MACHINE):
        for query, shown in (({}, False), ({"$expand": "instanceView"}, False), ({"$expand": "userData"}, True)):
            found = str(answered(cloud, text, **query))
            assert ("dXNlcg==" in found) is shown
            assert "customData" not in found


def test_disks_of_an_instance_are_resources_until_it_is_deleted_or_reimaged() -> None:
    cloud = azure()
    put(cloud, SET, body(2, virtualMachineProfile__storageProfile=STORAGE))
    os_disk, data_disk = disk_ids(cloud, vm(0))
    disks = [one.id.text for one in cloud.list(GROUP, "Microsoft.Compute/disks")]
    assert disks == [*disk_ids(cloud, vm(0)), *disk_ids(cloud, vm(1))]
    assert {answered(cloud, one)["managedBy"] for one in (os_disk, data_disk.upper())} == {vm(0)}
    for method, sent in (("DELETE", None), ("PUT", {"location": "swedencentral", "properties": answered(cloud, data_disk)["properties"]})):
        with pytest.raises(AzureError, match="is attached to VM"):
            ask(cloud, method, data_disk, sent)
    post(cloud, SET, "reimage", {"instanceIds": ["0"]})
    assert cloud.find(os_disk) is None
    assert disk_ids(cloud, vm(0))[1] == data_disk
    delete(cloud, vm(0))
    assert cloud.find(data_disk) is None


WINDOWS = {"publisher": "MicrosoftWindowsServer", "offer": "WindowsServer", "sku": "2022-datacenter-g2", "version": "latest"}
PASSWORD = {"adminUsername": "gpufleet", "adminPassword": "Long-enough-4-Azure"}


@pytest.mark.parametrize(
    ("image_reference", "os_profile", "expected"),
    [
        (image("1.0.0"), login(), "linuxConfiguration"),
        (image("1.0.0"), PASSWORD, "linuxConfiguration"),
        (
            {"publisher": "MicrosoftWindowsServer", "offer": "WindowsServer", "sku": "2022-datacenter-g2", "version": "latest"},
            PASSWORD,
            "windowsConfiguration",
        ),
        (STORAGE["imageReference"], PASSWORD, "linuxConfiguration"),
    ],
    ids=["gallery", "gallery with a password", "Windows", "Ubuntu"],
)
def test_the_guest_has_the_defaults_of_its_image(image_reference: Json, os_profile: Json, expected: str) -> None:
    cloud, sent = (
        azure(),
        body(
            1,
            virtualMachineProfile__storageProfile__imageReference=image_reference
            if "id" in image_reference
            else {"version": "latest", **image_reference},
        ),
    )
    sent["properties"]["virtualMachineProfile"]["osProfile"] = {"computerNamePrefix": "pool-", **os_profile}
    put(cloud, SET, sent)
    for found in (answered(cloud, SET)["properties"]["virtualMachineProfile"], answered(cloud, vm(0))["properties"]):
        assert [name for name in found["osProfile"] if name.endswith("Configuration")] == [expected]
        assert found["osProfile"][expected]["provisionVMAgent"]
        assert found["storageProfile"]["osDisk"]["osType"] == ("Linux" if expected == "linuxConfiguration" else "Windows")


def test_a_capacity_reservation_names_its_machines() -> None:
    cloud = azure()
    group = f"{COMPUTE}/capacityReservationGroups/held"
    put(cloud, group, {"location": "swedencentral"})
    put(cloud, f"{group}/capacityReservations/two", {"location": "swedencentral", "sku": {"name": "Standard_D2s_v5", "capacity": 2}})
    reserved = {"capacityReservationGroup": {"id": group}}
    put(cloud, SET, body(3, singlePlacementGroup=False, virtualMachineProfile__capacityReservation=reserved))
    found = answered(cloud, f"{group}/capacityReservations/two", **{"$expand": "instanceView"})["properties"]
    machines = [{"id": vm(number)} for number in range(3)]
    assert found["virtualMachinesAssociated"] == machines
    assert found["instanceView"]["utilizationInfo"] == {"currentCapacity": 2, "virtualMachinesAllocated": machines[:2]}
    assert answered(cloud, group)["properties"]["virtualMachinesAssociated"] == machines
