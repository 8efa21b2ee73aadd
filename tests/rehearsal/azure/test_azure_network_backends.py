"""Backend pools list the members of scale sets and single machines, and the members that answer the probe."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from scale_sets_made import COMPUTE, GROUP, SET, SUBNET, ask, azure, body, ended, login, put, scale_set

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import instances_of
from rehearsal.azure.errors import AzureError
from rehearsal.azure.network import load_balancers
from rehearsal.azure.network.load_balancers import backend_members, check_pool_room, probe_answers
from rehearsal.azure.resource import Json

BALANCER = f"{GROUP}/providers/Microsoft.Network/loadBalancers/api"
POOL = f"{BALANCER}/backendAddressPools/servers"
NIC = f"{GROUP}/providers/Microsoft.Network/networkInterfaces/single"
MACHINE = f"{COMPUTE}/virtualMachines/single"


def balanced(*, probed: bool = True) -> Cloud:
    """An Azure with a load balancer, and a scale set of three in its pool with the second of two ipConfigurations."""
    cloud = azure()
    rule = {
        "frontendIPConfiguration": {"id": f"{BALANCER}/frontendIPConfigurations/front"},
        "backendAddressPool": {"id": POOL},
        "protocol": "Tcp",
        "frontendPort": 6443,
        "backendPort": 6443,
        **({"probe": {"id": f"{BALANCER}/probes/ready"}} if probed else {}),
    }
    inner: Json = {
        "frontendIPConfigurations": [{"name": "front", "properties": {"subnet": {"id": SUBNET}}}],
        "backendAddressPools": [{"name": "servers"}, {"name": "spare"}],
        "probes": [{"name": "ready", "properties": {"protocol": "Tcp", "port": 6443}}],
        "loadBalancingRules": [{"name": "api", "properties": rule}],
    }
    put(cloud, BALANCER, {"location": "swedencentral", "sku": {"name": "Standard"}, "properties": inner})
    sent = body(3)
    interfaces = sent["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"]
    interfaces[0]["properties"]["ipConfigurations"][1]["properties"]["loadBalancerBackendAddressPools"] = [{"id": POOL}]
    put(cloud, SET, sent)
    cloud.advance(cloud.now + 3_600)
    return cloud


def test_the_members_of_a_pool_are_the_ipconfigurations_that_name_it() -> None:
    cloud = balanced()
    members = list(backend_members(cloud, POOL.upper()))
    assert [(one.instance, one.interface, one.configuration) for one in members] == [(str(n), "nic", "ipconfig2") for n in range(3)]
    assert [one.address for one in members] == [one.addresses[1] for one in instances_of(scale_set(cloud)).values()]
    assert all(IPv4Address(one.address) in IPv4Network("10.0.0.0/17") and one.answers for one in members)
    assert list(backend_members(cloud, f"{BALANCER}/backendAddressPools/spare")) == []


def test_who_is_down_or_called_unhealthy_gets_no_traffic_where_a_rule_has_a_probe() -> None:
    for probed, answering in ((True, ["0"]), (False, ["0", "1", "2"])):
        cloud = balanced(probed=probed)
        ended(cloud, ask(cloud, "POST", f"{SET}/virtualMachines/1", action="poweroff"))
        instances_of(scale_set(cloud))["2"].health = "Unhealthy"
        answers = probe_answers(cloud, BALANCER)
        assert [one.instance for one in answers["servers"]] == answering
        assert answers["spare"] == []


def test_a_machine_that_is_being_deleted_has_left_its_pool() -> None:
    cloud = balanced()
    ask(cloud, "POST", SET, {"instanceIds": ["1"]}, action="delete")
    assert [one.instance for one in backend_members(cloud, POOL)] == ["0", "2"]


def single(cloud: Cloud) -> None:
    place = {"name": "one", "properties": {"subnet": {"id": SUBNET}, "loadBalancerBackendAddressPools": [{"id": POOL}]}}
    put(cloud, NIC, {"location": "swedencentral", "properties": {"ipConfigurations": [place]}})


def test_a_single_interface_answers_when_its_machine_does() -> None:
    cloud = balanced()
    single(cloud)
    assert [one.answers for one in backend_members(cloud, POOL)] == [True, True, True, False]
    image = body()["properties"]["virtualMachineProfile"]["storageProfile"]["imageReference"]
    inner = {
        "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
        "storageProfile": {"imageReference": image, "osDisk": {"createOption": "FromImage"}},
        "osProfile": {"computerName": "single", **login()},
        "networkProfile": {"networkInterfaces": [{"id": NIC}]},
    }
    put(cloud, MACHINE, {"location": "swedencentral", "properties": inner})
    cloud.advance(cloud.now + 3_600)
    assert [one.answers for one in backend_members(cloud, POOL)] == [True] * 4
    shown = ask(cloud, "GET", NIC).body
    assert shown is not None
    assert shown["properties"]["virtualMachine"] == {"id": MACHINE}
    with pytest.raises(AzureError) as refused:
        ask(cloud, "DELETE", NIC)
    assert refused.value.code == "NicInUse"


def test_a_pool_takes_so_many_members_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = balanced()
    check_pool_room(cloud, POOL, 4_997)
    with pytest.raises(AzureError) as refused:
        check_pool_room(cloud, POOL, 4_998)
    assert refused.value.code == "LoadBalancerBackendPoolMemberCountLimitReached"
    monkeypatch.setattr(load_balancers, "MEMBERS_PER_POOL", 3)
    with pytest.raises(AzureError, match="LoadBalancerBackendPoolMemberCountLimitReached"):
        single(cloud)


def test_a_load_balancer_with_a_scale_set_behind_it_stays() -> None:
    cloud = balanced()
    with pytest.raises(AzureError) as refused:
        ask(cloud, "DELETE", BALANCER)
    assert (refused.value.status, refused.value.code) == (400, "LoadBalancerInUseByVirtualMachineScaleSet")
