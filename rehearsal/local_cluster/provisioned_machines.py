"""Control plane machines of a cluster in the embedded Azure, with their custom data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

from components.errors import GpufleetError
from components.plan import naming
from components.plan.model import ClusterPlan, EtcdMemberPlan, EtcdPlan
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import Instance, addresses_of, computer_name, state_of
from rehearsal.azure.compute.machine import RUNNING, SUCCEEDED, Machine
from rehearsal.azure.compute.views import vm_id
from rehearsal.azure.compute.virtual_machine import machine_of
from rehearsal.azure.resource import Resource

ETCD, EVENTS, API_SERVER = "etcd", "events", "api-server"
SCALE_SET = "Microsoft.Compute/virtualMachineScaleSets"


class NotProvisionedError(GpufleetError, ValueError):
    """A resource of the plan that Azure does not have: its name (where) and the reason (why)."""

    def __init__(self, where: str, why: str) -> None:
        self.where, self.why = where, why
        self.remedy = "bring the region up first: gpufleet up"
        super().__init__(f"{where}: {why}; {self.remedy}")


@dataclass(frozen=True)
class ProvisionedMachine:
    """One machine in Azure: role is "etcd", "events" or "api-server", address that of its primary ipConfiguration.

    vm_id differs for a later machine of the same name. os_disk and local_disk identify the disks' contents: after a change the content is
    lost. on is True if Azure has provisioned the machine and it runs.
    """

    role: str
    name: str
    resource_id: str
    address: str
    custom_data: str
    vm_id: str = ""
    os_disk: str = ""
    local_disk: str = ""
    on: bool = True


def control_plane_machines(cloud: Cloud, cluster: ClusterPlan) -> tuple[ProvisionedMachine, ...]:
    """Return the members of both etcd clusters, then the provisioned API servers by instance id; raise NotProvisionedError."""
    scale_set = _found(cloud, cluster, SCALE_SET, cluster.api_servers.name)
    servers = tuple(_api_servers(cloud, scale_set))
    if not servers:
        raise NotProvisionedError(cluster.api_servers.name, "the scale set has no instance that is provisioned")
    return (*_members(cloud, cluster, cluster.etcd), *_members(cloud, cluster, cluster.events_etcd), *servers)


@dataclass(frozen=True)
class HealthProbe:
    """Health probe of the load balancer: seconds between probes, failures that mark a backend down, and path."""

    interval_seconds: float
    failures: int
    path: str


def health_probe(cloud: Cloud, cluster: ClusterPlan) -> HealthProbe:
    """Return the health probe of the API servers' load balancer in Azure; raise NotProvisionedError."""
    balancer = _found(cloud, cluster, "Microsoft.Network/loadBalancers", cluster.api_servers.load_balancer)
    probe = balancer.properties["probes"][0]["properties"]
    return HealthProbe(float(probe["intervalInSeconds"]), int(probe["probeThreshold"]), str(probe["requestPath"]))


def _found(cloud: Cloud, cluster: ClusterPlan, resource_type: str, name: str) -> Resource:
    found = cloud.find(naming.resource_id(cluster.subscription, cluster.resource_group, *resource_type.split("/"), name))
    if found is None:
        raise NotProvisionedError(name, f"Azure has no {resource_type} of this name in {cluster.resource_group}")
    return found


def existing_members(cloud: Cloud, cluster: ClusterPlan) -> Iterator[ProvisionedMachine]:
    """Yield the members of both etcd clusters that Azure has, in any state."""
    for etcd in (cluster.etcd, cluster.events_etcd):
        for member in etcd.members:
            with suppress(NotProvisionedError):
                yield _member(cloud, cluster, etcd, member)


def existing_api_servers(cloud: Cloud, cluster: ClusterPlan) -> tuple[ProvisionedMachine, ...]:
    """Return the API servers that Azure has provisioned, by instance id."""
    with suppress(NotProvisionedError):
        return tuple(_api_servers(cloud, _found(cloud, cluster, SCALE_SET, cluster.api_servers.name)))
    return ()


def _members(cloud: Cloud, cluster: ClusterPlan, etcd: EtcdPlan) -> Iterator[ProvisionedMachine]:
    return (_member(cloud, cluster, etcd, member) for member in etcd.members)


def _member(cloud: Cloud, cluster: ClusterPlan, etcd: EtcdPlan, member: EtcdMemberPlan) -> ProvisionedMachine:
    machine = _found(cloud, cluster, "Microsoft.Compute/virtualMachines", member.name)
    card = _found(cloud, cluster, "Microsoft.Network/networkInterfaces", member.nic_name)
    address = card.properties["ipConfigurations"][0]["properties"]["privateIPAddress"]
    # From the request, because Azure's responses omit custom data.
    given = machine.sent["properties"]["osProfile"]["customData"]
    provisioned = ProvisionedMachine(etcd.role, member.name, machine.id.text, str(address), str(given))
    return _with_disks(provisioned, machine_of(machine), str(machine.properties["vmId"]))


def _api_servers(cloud: Cloud, scale_set: Resource) -> Iterator[ProvisionedMachine]:
    """Yield instances by id; each boots from the model that its OS disk was created from."""
    state = state_of(scale_set)
    first: dict[str, int] = {}
    for key, _nic, _configuration, address in addresses_of(scale_set):
        first.setdefault(key, address)
    for one in sorted(state.living(), key=_number):
        if one.state != SUCCEEDED:
            continue
        model = state.models[one.os_model]
        provisioned = ProvisionedMachine(
            API_SERVER,
            computer_name(model, scale_set.id.name, one.id).lower(),
            f"{scale_set.id.text}/virtualMachines/{one.id}",
            str(IPv4Address(first[str(one.id)])),
            str(model.profile["osProfile"]["customData"]),
        )
        yield _with_disks(provisioned, one, vm_id(cloud, scale_set, one))


def _with_disks(provisioned: ProvisionedMachine, machine: Machine, identifier: str) -> ProvisionedMachine:
    """Return a machine with its disks and power state in the model."""
    on = machine.state == SUCCEEDED and machine.power == RUNNING
    return replace(provisioned, vm_id=identifier, os_disk=f"os-{machine.os_disk}", local_disk=f"local-{machine.local_disks}", on=on)


def _number(one: Instance) -> int:
    return one.id
