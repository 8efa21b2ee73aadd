"""An embedded Azure of the region dev over HTTPS, whose hours are seconds, and resources that tests make in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from provider_process import Client, provider_process

from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.served_azure import with_call_limits
from rehearsal.arm.time_source import TimeSource
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.region_cloud import new_region_cloud
from rehearsal.azure.scenario_files import load_scenario
from rehearsal.local_cluster.azure_service import AzureService
from rehearsal.program.graph import Secret
from rehearsal.program.pulumi_values import Json
from stacks.load import load_plan

T = TypeVar("T")
FREE = "seed: 1\nduration_factor: 1\nthrottling: {enabled: false}\n"
"""A scenario in which no call is counted."""
NATIVE = "azure-native:"


@dataclass
class Served:
    """A served Azure, and the environment in which Pulumi finds it."""

    service: AzureService
    ending: ExitStack
    environment: dict[str, str]
    subscription: str
    location: str
    capture: str
    """Id of an image that a version can be made of."""

    def call(self, work: Callable[[Cloud], T]) -> T:
        return self.service.call(work)

    def id_of(self, group: str, path: str) -> str:
        return f"/subscriptions/{self.subscription}/resourceGroups/{group}/providers/{path}"

    def go_down(self) -> None:
        """Serve no longer."""
        self.ending.close()

    def has(self, resource_id: str) -> bool:
        return self.call(lambda cloud: cloud.find(resource_id) is not None)


@contextmanager
def served(folder: Path, scenario: str = FREE, factor: float = 20_000.0) -> Iterator[Served]:
    """An Azure with nothing in it."""
    plan = load_plan("dev")
    folder.mkdir(exist_ok=True)
    file = folder / "scenario.yaml"
    file.write_text(scenario)
    cloud = with_call_limits(new_region_cloud(plan, load_scenario(str(file))))
    with ExitStack() as ending:
        service = ending.enter_context(AzureService(LiveModel(cloud, TimeSource(factor, cloud.now)), folder / "keys"))
        environment = {
            "ARM_METADATA_HOST": service.base.removeprefix("https://"),
            "ARM_TENANT_ID": plan.spec.access.tenant,
            "ARM_CLIENT_ID": service.identity.client,
            "ARM_CLIENT_SECRET": service.identity.secret,
            "ARM_SUBSCRIPTION_ID": plan.spec.subscription,
            "SSL_CERT_FILE": str(service.authority),
        }
        yield Served(service, ending, environment, plan.spec.subscription, plan.spec.location, plan.gallery.images[0].capture)


@dataclass
class Stack:
    """A resource group and what is made in it, each checked before as the engine does."""

    client: Client
    group: str

    def make(self, module_type: str, name: str = "it", **inputs: Any) -> tuple[str, Json, Json]:
        """Id, inputs and outputs of a new resource."""
        checked, wrong = self.client.check(NATIVE + module_type, self.within(module_type, inputs), name=name)
        assert not wrong, wrong
        resource_id, outputs = self.client.create(NATIVE + module_type, checked, name=name)
        return resource_id, checked, outputs

    def within(self, module_type: str, inputs: Json) -> Json:
        return inputs if module_type == "authorization:RoleAssignment" else {"resourceGroupName": self.group, **inputs}

    def network(self) -> tuple[str, str]:
        """Ids of a network and of a subnet in it."""
        network, _, _ = self.make("network:VirtualNetwork", virtualNetworkName="net", addressSpace={"addressPrefixes": ["10.9.0.0/16"]})
        subnet, _, _ = self.make("network:Subnet", virtualNetworkName="net", subnetName="nodes", addressPrefix="10.9.0.0/20")
        return network, subnet

    def interface(self, subnet: str, name: str = "nic") -> str:
        place = {"name": "first", "primary": True, "subnet": {"id": subnet}, "privateIPAllocationMethod": "Dynamic"}
        resource_id, _, _ = self.make("network:NetworkInterface", networkInterfaceName=name, ipConfigurations=[place])
        return resource_id


def stack(client: Client, group: str) -> Stack:
    made = Stack(client, group)
    made.make("resources:ResourceGroup", resourceGroupName=group)
    return made


MARKETPLACE = {"publisher": "Canonical", "offer": "0001-com-ubuntu-server-jammy", "sku": "22_04-lts-gen2", "version": "latest"}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH4b0qbE0gXw2l9D4dP0v9zJ8mXyY1q5r7o0WmB3cVtN fleet"
LINUX = {
    "adminUsername": "fleet",
    "linuxConfiguration": {
        "disablePasswordAuthentication": True,
        "ssh": {"publicKeys": [{"path": "/home/fleet/.ssh/authorized_keys", "keyData": KEY}]},
    },
}


def scale_set(subnet: str, capacity: int, name: str = "pool") -> Json:
    """Inputs of a scale set of small machines."""
    place = {"name": "first", "primary": True, "subnet": {"id": subnet}}
    return {
        "vmScaleSetName": name,
        "sku": {"name": "Standard_D4s_v5", "tier": "Standard", "capacity": capacity},
        "orchestrationMode": "Uniform",
        "overprovision": False,
        "singlePlacementGroup": False,
        "upgradePolicy": {"mode": "Manual"},
        "virtualMachineProfile": {
            "osProfile": {"computerNamePrefix": "node-", "customData": Secret("I2Nsb3VkLWNvbmZpZwo="), **LINUX},
            "storageProfile": {"imageReference": MARKETPLACE, "osDisk": {"createOption": "FromImage"}},
            "networkProfile": {"networkInterfaceConfigurations": [{"name": "nic", "primary": True, "ipConfigurations": [place]}]},
        },
    }


@contextmanager
def provider_without_location(azure: Served) -> Iterator[Client]:
    """A provider process of one's own, configured by its environment alone."""
    with provider_process("rehearsal.pulumi_cli.providers.azure_native", azure.environment) as running:
        running.client.configure()
        yield running.client
