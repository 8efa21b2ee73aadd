"""The region's stack creates the machines of its plan, once each."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest
from cluster_graphs import EVERY_CLUSTER, EVERY_REGION, MACHINE, RESERVATION, SCALE_SET, graph, named, of_cluster, planned

from components.api_servers import PROBE_PATH, batch_percent, tolerated_percent
from components.boot.api_server import boot_api_server
from components.boot.authentication import HEALTH_PATHS
from components.boot.etcd import boot_etcd
from components.boot.machine import custom_data
from components.boot.node import boot_nodes
from components.plan.model import ClusterPlan, EtcdPlan, PoolPlan, RegionPlan, ScaleSetPlan
from components.spec.pool import Capacity

NIC = "azure-native:network:NetworkInterface"
BALANCER = "azure-native:network:LoadBalancer"
Inputs = Mapping[str, Any]


def _subnet_id(cluster: ClusterPlan, role: str) -> str:
    group = f"/subscriptions/{cluster.subscription}/resourceGroups/{cluster.resource_group}/providers/Microsoft.Network"
    return f"{group}/virtualNetworks/{cluster.network.vnet_name}/subnets/{cluster.network.subnet(role).name}"


def _identity(cluster: ClusterPlan, role: str) -> Inputs:
    return {"type": "UserAssigned", "userAssignedIdentities": [cluster.identity(role).id]}


def _interface(machine: Inputs) -> Inputs:
    (interface,) = machine["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"]
    found: Inputs = interface
    return found


def _linux(region: RegionPlan) -> Inputs:
    key = {"keyData": region.spec.access.ssh_public_key, "path": "/home/gpufleet/.ssh/authorized_keys"}
    return {"disablePasswordAuthentication": True, "provisionVMAgent": True, "ssh": {"publicKeys": [key]}}


@EVERY_CLUSTER
def test_every_planned_scale_set_is_made_once_and_no_other(name: str, cluster: ClusterPlan) -> None:
    made = named(of_cluster(name, cluster), SCALE_SET, "vmScaleSetName")
    assert set(made) == {cluster.api_servers.name, *(plan.name for pool in cluster.pools for plan in pool.scale_sets)}


@EVERY_CLUSTER
def test_a_scale_set_has_its_planned_values(name: str, cluster: ClusterPlan) -> None:
    made = named(of_cluster(name, cluster), SCALE_SET, "vmScaleSetName")
    for pool in cluster.pools:
        for plan in pool.scale_sets:
            _has_planned_values(made[plan.name], planned(name), cluster, pool, plan)


def _has_planned_values(made: Inputs, region: RegionPlan, cluster: ClusterPlan, pool: PoolPlan, plan: ScaleSetPlan) -> None:
    profile = dict(made["virtualMachineProfile"])
    profile.pop("networkProfile")
    assert {key: made[key] for key in made if key != "virtualMachineProfile"} == {
        "resourceGroupName": cluster.resource_group,
        "vmScaleSetName": plan.name,
        "location": region.spec.location,
        "zones": [pool.spec.zone.value],
        "sku": {"name": pool.spec.vm_size, "tier": "Standard", "capacity": plan.capacity},
        "orchestrationMode": "Uniform",
        "singlePlacementGroup": plan.infiniband_domain is not None,
        "platformFaultDomainCount": 1,
        "overprovision": False,
        "upgradePolicy": {"mode": "Manual"},
        "identity": _identity(cluster, "node"),
        "tags": {**cluster.tags, "gpufleet-pool": pool.name},
    }
    assert profile.pop("osProfile") == {
        "computerNamePrefix": plan.computer_name_prefix,
        "adminUsername": "gpufleet",
        "customData": custom_data(boot_nodes(region, cluster, pool)[pool.scale_sets.index(plan)]),
        "linuxConfiguration": _linux(region),
    }
    storage = profile.pop("storageProfile")
    assert storage["imageReference"] == {"id": pool.image.version_id}
    assert storage["diskControllerType"] == pool.size.disk_controller
    assert profile.pop("diagnosticsProfile") == {"bootDiagnostics": {"enabled": True}}
    assert profile == _bought(pool)


def _bought(pool: PoolPlan) -> Inputs:
    """Return the profile properties of a purchase option."""
    if pool.spec.capacity is Capacity.SPOT:
        return {"priority": "Spot", "evictionPolicy": "Delete", "billingProfile": {"maxPrice": -1}}
    notice = {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT15M"}}
    reserved = {"capacityReservation": {"capacityReservationGroup": {"id": pool.spec.reservation_group}}}
    return {"priority": "Regular", "scheduledEventsProfile": notice, **(reserved if pool.spec.reservation_group else {})}


def test_the_rehearsed_pools_are_bought_in_every_way() -> None:
    pools = [pool.spec for name in ("dev", "small") for cluster in planned(name).clusters for pool in cluster.pools]
    assert {pool.capacity for pool in pools} == set(Capacity)
    assert {pool.reservation_group for pool in pools} == {None, RESERVATION}
    assert {pool.load_balanced for pool in pools} == {True, False}


@EVERY_CLUSTER
def test_a_machine_has_one_address_per_pod_and_its_own_alone_is_primary(name: str, cluster: ClusterPlan) -> None:
    made = named(of_cluster(name, cluster), SCALE_SET, "vmScaleSetName")
    for pool in cluster.pools:
        for plan in pool.scale_sets:
            interface = _interface(made[plan.name])
            addresses = interface["ipConfigurations"]
            assert interface["enableAcceleratedNetworking"] is True
            assert [address["primary"] for address in addresses] == [True] + [False] * pool.spec.pods_per_node
            assert [address["name"] for address in addresses] == [f"ipconfig{number + 1}" for number in range(pool.addresses_per_machine)]
            assert {address["subnet"]["id"] for address in addresses} == {_subnet_id(cluster, plan.subnet_role)}


@EVERY_CLUSTER
def test_only_a_load_balanced_pools_machines_join_the_ingress_and_only_with_their_own_address(name: str, cluster: ClusterPlan) -> None:
    resources = of_cluster(name, cluster)
    balancers = {item.inputs["loadBalancerName"]: item.id for item in resources if item.type == BALANCER}
    pool_id = f"{balancers[cluster.ingress.load_balancer]}/backendAddressPools/ingress" if cluster.ingress else None
    made = named(resources, SCALE_SET, "vmScaleSetName")
    for pool in cluster.pools:
        for plan in pool.scale_sets:
            first, *rest = (address.get("loadBalancerBackendAddressPools") for address in _interface(made[plan.name])["ipConfigurations"])
            assert first == ([{"id": pool_id}] if pool.spec.load_balanced else None)
            assert set(rest) == {None}


def test_an_os_disk_lies_where_the_size_has_room_for_it() -> None:
    disks = {}
    for name in ("dev", "small"):
        for cluster in planned(name).clusters:
            made = named(of_cluster(name, cluster), SCALE_SET, "vmScaleSetName")
            for pool in cluster.pools:
                disks[pool.spec.vm_size] = made[pool.scale_sets[0].name]["virtualMachineProfile"]["storageProfile"]["osDisk"]
    common = {"createOption": "FromImage"}
    ephemeral = {**common, "caching": "ReadOnly"}
    assert disks == {
        "Standard_ND96isr_H100_v5": {**ephemeral, "diffDiskSettings": {"option": "Local", "placement": "ResourceDisk"}},
        "Standard_ND96amsr_A100_v4": {**ephemeral, "diffDiskSettings": {"option": "Local", "placement": "CacheDisk"}},
        "Standard_NC24ads_A100_v4": {**ephemeral, "diffDiskSettings": {"option": "Local", "placement": "CacheDisk"}},
        "Standard_D2ads_v6": {**ephemeral, "diffDiskSettings": {"option": "Local", "placement": "NvmeDisk"}, "diskSizeGB": 110},
        "Standard_D16s_v5": {**common, "caching": "ReadWrite", "diskSizeGB": 256, "managedDisk": {"storageAccountType": "Premium_LRS"}},
    }


@EVERY_REGION
def test_what_a_scale_set_is_told_of_its_capacity_is_never_ignored(name: str) -> None:
    assert {item.ignore_changes for item in graph(name).of_type(SCALE_SET)} == {()}


@EVERY_CLUSTER
def test_every_etcd_member_is_made_once_with_its_planned_values(name: str, cluster: ClusterPlan) -> None:
    resources = of_cluster(name, cluster)
    machines, nics = named(resources, MACHINE, "vmName"), named(resources, NIC, "networkInterfaceName")
    members = [(ring, member) for ring in (cluster.etcd, cluster.events_etcd) for member in ring.members]
    assert set(machines) == {member.name for _, member in members}
    assert set(nics) == {member.nic_name for _, member in members}
    for ring, member in members:
        (address,) = nics[member.nic_name]["ipConfigurations"]
        assert nics[member.nic_name]["enableAcceleratedNetworking"] is True
        assert address == {
            "name": "member",
            "primary": True,
            "subnet": {"id": _subnet_id(cluster, ring.role)},
            "privateIPAddress": member.address,
            "privateIPAllocationMethod": "Static",
        }
        machine = machines[member.name]
        assert machine["zones"] == [member.zone]
        assert machine["hardwareProfile"] == {"vmSize": ring.size.name}
        assert machine["identity"] == _identity(cluster, "etcd")
        (nic,) = machine["networkProfile"]["networkInterfaces"]
        assert nic["id"].endswith(f"/networkInterfaces/{member.nic_name}")
        assert nic["deleteOption"] == "Detach"
        assert machine["osProfile"]["customData"] == custom_data(boot_etcd(cluster, ring, member))
        assert machine["storageProfile"] == _etcd_storage(ring, member.disk_name)


def _etcd_storage(ring: EtcdPlan, disk_name: str) -> Inputs:
    return {
        "imageReference": {"id": ring.image.version_id},
        "diskControllerType": ring.size.disk_controller,
        "osDisk": {
            "name": disk_name,
            "createOption": "FromImage",
            "caching": "ReadWrite",
            "managedDisk": {"storageAccountType": "Premium_LRS"},
            "deleteOption": "Delete",
        },
    }


@EVERY_REGION
def test_an_update_neither_deletes_an_etcd_machine_nor_replaces_or_stops_it_for_anything_that_is_planned(name: str) -> None:
    machines = graph(name).of_type(MACHINE)
    assert all(machine.protect for machine in machines)
    for machine in machines:
        assert set(machine.ignore_changes) == {
            "osProfile.customData",
            "osProfile.linuxConfiguration",
            "storageProfile.imageReference",
            "storageProfile.osDisk",
            "storageProfile.diskControllerType",
            "hardwareProfile",
            "networkProfile",
        }
        for path in machine.ignore_changes:
            profile, _, part = path.partition(".")
            assert not part or part in machine.inputs[profile], f"{path} names nothing that Azure is told"


@EVERY_CLUSTER
def test_no_update_drops_or_replaces_nodes_that_nobody_has_drained(name: str, cluster: ClusterPlan) -> None:
    protected = {item.inputs["vmScaleSetName"]: item.protect for item in of_cluster(name, cluster) if item.type == SCALE_SET}
    nodes = {plan.name: True for pool in cluster.pools for plan in pool.scale_sets}
    assert protected == {**nodes, cluster.api_servers.name: False}


@pytest.mark.parametrize("count", range(1, 21))
def test_an_upgrade_takes_one_api_server_at_once_and_goes_on_with_a_bad_one(count: int) -> None:
    assert batch_percent(count) * count <= 100
    assert tolerated_percent(count) * count >= 100
    assert batch_percent(count) <= tolerated_percent(count) <= 100


@EVERY_CLUSTER
def test_the_api_servers_heal_and_renew_themselves_by_the_probe_of_readyz(name: str, cluster: ClusterPlan) -> None:
    plan, resources = cluster.api_servers, of_cluster(name, cluster)
    made = named(resources, SCALE_SET, "vmScaleSetName")[plan.name]
    balancer = next(item for item in resources if item.type == BALANCER and item.inputs["loadBalancerName"] == plan.load_balancer)
    profile = made["virtualMachineProfile"]
    assert made["sku"] == {"name": plan.size.name, "tier": "Standard", "capacity": plan.count}
    assert made["zones"] == list(plan.zones)
    assert made["overprovision"] is False
    assert made["identity"] == _identity(cluster, "control")
    assert made["automaticRepairsPolicy"] == {"enabled": True, "gracePeriod": "PT30M", "repairAction": "Replace"}
    assert made["upgradePolicy"]["mode"] == "Rolling"
    assert made["upgradePolicy"]["rollingUpgradePolicy"] == {
        "maxBatchInstancePercent": batch_percent(plan.count),
        "maxUnhealthyInstancePercent": tolerated_percent(plan.count),
        "maxUnhealthyUpgradedInstancePercent": tolerated_percent(plan.count),
        "pauseTimeBetweenBatches": "PT2M",
        "prioritizeUnhealthyInstances": True,
    }
    assert profile["osProfile"]["customData"] == custom_data(boot_api_server(planned(name), cluster))
    assert profile["networkProfile"]["healthProbe"] == {"id": f"{balancer.id}/probes/api"}
    (address,) = _interface(made)["ipConfigurations"]
    assert address["subnet"] == {"id": _subnet_id(cluster, "api")}
    assert address["loadBalancerBackendAddressPools"] == [{"id": f"{balancer.id}/backendAddressPools/api"}]
    (probe,) = balancer.inputs["probes"]
    assert (probe["protocol"], probe["port"], probe["requestPath"]) == ("Https", 6443, PROBE_PATH)
    assert PROBE_PATH.partition("?")[0] in HEALTH_PATHS


@EVERY_REGION
def test_a_load_balancer_stands_in_its_planned_subnet_and_refers_only_to_its_own_parts(name: str) -> None:
    for balancer in graph(name).of_type(BALANCER):
        inputs = balancer.inputs
        kinds = ("frontendIPConfigurations", "backendAddressPools", "probes")
        parts = {f"{balancer.id}/{kind}/{part['name']}" for kind in kinds for part in inputs[kind]}
        assert [part["zones"] for part in inputs["frontendIPConfigurations"]] == [["1", "2", "3"]]
        for rule in inputs["loadBalancingRules"]:
            assert {rule[key]["id"] for key in ("frontendIPConfiguration", "backendAddressPool", "probe")} <= parts
            assert rule["enableTcpReset"] is True
            assert rule["disableOutboundSnat"] is True


@EVERY_CLUSTER
def test_the_ingress_leads_80_and_443_to_its_node_ports(name: str, cluster: ClusterPlan) -> None:
    balancers = named(of_cluster(name, cluster), BALANCER, "loadBalancerName")
    assert set(balancers) == {cluster.api_servers.load_balancer, *([cluster.ingress.load_balancer] if cluster.ingress else [])}
    if cluster.ingress:
        made = balancers[cluster.ingress.load_balancer]
        (frontend,) = made["frontendIPConfigurations"]
        assert (frontend["privateIPAddress"], frontend["subnet"]) == (cluster.ingress.address, {"id": _subnet_id(cluster, "ingress")})
        assert [(rule["frontendPort"], rule["backendPort"]) for rule in made["loadBalancingRules"]] == [(80, 30080), (443, 30443)]


@EVERY_REGION
def test_no_custom_data_is_beyond_what_azure_takes(name: str) -> None:
    """65,535 bytes: https://learn.microsoft.com/azure/virtual-machines/custom-data"""
    profiles = [item.inputs["virtualMachineProfile"]["osProfile"] for item in graph(name).of_type(SCALE_SET)]
    profiles += [item.inputs["osProfile"] for item in graph(name).of_type(MACHINE)]
    assert max(len(base64.b64decode(profile["customData"])) for profile in profiles) <= 65_535
