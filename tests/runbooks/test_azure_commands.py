"""Azure commands of the runbooks, run on the embedded Azure by the official clients."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient
from runbook import FOLDER

from components.plan.model import ClusterPlan, RegionPlan
from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.official_clients import credential, options
from rehearsal.arm.served_azure import with_call_limits
from rehearsal.arm.time_source import TimeSource
from rehearsal.local_cluster.azure_service import AzureService
from rehearsal.local_up.up import bring_up_anew
from stacks.load import load_plan

COMMAND = re.compile(r"\baz [^`\n]+")
SUSPENDED, RUNNING = "Suspended", "Running"
FACTOR = 600.0
"""Seconds of Azure's time per second here."""


def commands() -> Iterator[str]:
    """Yield every Azure CLI command in a runbook. A command substitution, $(…), is a command of its own."""
    for path in sorted(FOLDER.glob("*.md")):
        for found in COMMAND.findall(path.read_text()):
            inner = re.search(r"\$\((.*)\)", found)
            yield found.replace(inner[0], "IDS") if inner else found
            if inner:
                yield inner[1]


class Azure:
    """The part of the Azure CLI that the runbooks use. Each command runs the operation of Azure Resource Manager with the same name.

    https://learn.microsoft.com/cli/azure/vmss and https://learn.microsoft.com/cli/azure/vm
    """

    def __init__(self, service: AzureService, plan: RegionPlan) -> None:
        self.cluster: ClusterPlan = plan.clusters[0]
        base, trusted, subscription = service.base, str(service.authority), self.cluster.subscription
        who = credential(base, trusted, str(plan.spec.access.tenant), service.identity.client, service.identity.secret)
        how = {**options(base, trusted), "polling_interval": 0.05}
        compute = ComputeManagementClient(who, subscription, **how)
        self.machines, self.sets = compute.virtual_machines, compute.virtual_machine_scale_sets
        self.instances = compute.virtual_machine_scale_set_vms
        self.cards = NetworkManagementClient(who, subscription, **how).network_interfaces

    @property
    def where(self) -> tuple[str, str]:
        """Return the resource group and name of the API servers' scale set."""
        return self.cluster.resource_group, f"{self.cluster.name}-api"

    def run(self, command: str) -> list[Any]:
        """Run a command and return its list, if it has one. IDS means all machines of the group."""
        words = shlex.split(command.replace("GROUP", self.cluster.resource_group).replace("CLUSTER", self.cluster.name))
        given = {words[at].removeprefix("--"): words[at + 1] for at in range(len(words)) if words[at].startswith("--")}
        group, name = given.get("resource-group", ""), given.get("name", "")
        match " ".join(words[1 : next(at for at, word in enumerate(words) if word.startswith("--"))]):
            case "vmss set-orchestration-service-state":
                request: Any = {"serviceName": given["service-name"], "action": given["action"]}
                self.sets.begin_set_orchestration_service_state(group, name, request).result()
            case "vmss nic list":
                return list(self.cards.list_virtual_machine_scale_set_network_interfaces(group, given["vmss-name"]))
            case "vmss start":
                self.sets.begin_start(group, name).result()
            case "vm list":
                return list(self.machines.list(group))
            case "vm start":
                for waiting in [self.machines.begin_start(self.cluster.resource_group, each) for each in self.names()]:
                    waiting.result()
            case verb:
                raise AssertionError(f"az {verb} is in a runbook, and this test does not implement it")
        return []

    def names(self) -> list[str]:
        """Return the names of the cluster's single machines."""
        return [str(one.name) for one in self.machines.list(self.cluster.resource_group)]

    def power_off(self) -> None:
        """Power off every machine of the control plane."""
        under_way = [self.machines.begin_power_off(self.cluster.resource_group, each) for each in self.names()]
        for waiting in (*under_way, self.sets.begin_power_off(*self.where)):
            waiting.result()

    def power(self) -> set[str]:
        """Return the power states of the machines of the control plane."""
        views: list[Any] = [self.machines.instance_view(self.cluster.resource_group, each) for each in self.names()]
        views += [self.instances.get_instance_view(*self.where, str(one.instance_id)) for one in self.instances.list(*self.where)]
        codes = [str(status.code) for view in views for status in view.statuses or ()]
        return {code for code in codes if code.startswith("PowerState/")}

    def repairs(self) -> str:
        """Return the state of automatic repairs of the API servers' scale set."""
        found: list[Any] = list(self.sets.get_instance_view(*self.where).orchestration_services or ())
        state: str = next(one.service_state for one in found if one.service_name == "AutomaticRepairs")
        return state


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    """Yield an embedded Azure that contains the region dev."""
    plan = load_plan("dev")
    cloud = bring_up_anew(plan).cloud
    with AzureService(LiveModel(with_call_limits(cloud), TimeSource(FACTOR, cloud.now)), tmp_path_factory.mktemp("azure")) as service:
        yield Azure(service, plan)


def only(part: str) -> str:
    """Return the only command of the runbooks that contains a part."""
    (found,) = {one for one in commands() if part in one}
    return found


def test_every_command_of_a_runbook_is_one_that_azure_takes(azure: Azure) -> None:
    found = list(commands())
    assert len(found) >= 5
    for command in found:
        azure.run(command)
    azure.run(only("set-orchestration-service-state").replace("Suspend", "Resume"))


def test_repairs_of_the_api_servers_stop_and_go_on(azure: Azure) -> None:
    assert azure.repairs() == RUNNING
    command = only("set-orchestration-service-state")
    azure.run(command)
    assert azure.repairs() == SUSPENDED
    azure.run(command.replace("--action Suspend", "--action Resume"))
    assert azure.repairs() == RUNNING


def test_the_addresses_of_the_api_servers_are_those_that_the_plan_has_room_for(azure: Azure) -> None:
    cards = azure.run(only("vmss nic list"))
    addresses = [one.private_ip_address for card in cards for one in card.ip_configurations]
    assert len(set(addresses)) == azure.cluster.api_servers.count


def test_machines_that_are_off_are_on_again(azure: Azure) -> None:
    azure.power_off()
    assert azure.power() == {"PowerState/stopped"}
    assert len(azure.run(only("az vm list"))) == len((*azure.cluster.etcd.members, *azure.cluster.events_etcd.members))
    azure.run(only("az vm start"))
    azure.run(only("az vmss start"))
    assert azure.power() == {"PowerState/running"}
