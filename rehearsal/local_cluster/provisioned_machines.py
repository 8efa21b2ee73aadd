"""Says which machines of a cluster's control plane the embedded Azure has, with what they were given at boot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

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


class NotProvisionedError(ValueError):
    """A machine of the plan that Azure does not have: where names it, why the reason."""

    def __init__(self, where: str, why: str) -> None:
        self.where, self.why = where, why
        self.remedy = "bring the region up first: gpufleet up"
        super().__init__(f"{where}: {why}; {self.remedy}")


@dataclass(frozen=True)
class ProvisionedMachine:
    """One machine that Azure has made: role is "etcd", "events" or "api-server", address that of its primary ipConfiguration.

    born is its vmId, which no other machine of the same name has. os_disk and local_disk name what lies on its disks: where one changes,
    all of it is lost. on says that Azure is done with it and has it running.
    """

    role: str
    name: str
    resource_id: str
    address: str
    custom_data: str
    born: str = ""
    os_disk: str = ""
    local_disk: str = ""
    on: bool = True


def control_plane_machines(cloud: Cloud, cluster: ClusterPlan) -> tuple[ProvisionedMachine, ...]:
    """The members of both rings, then the API servers that Azure has provisioned, by instance id; NotProvisioned."""
    scale_set = _found(cloud, cluster, SCALE_SET, cluster.api_servers.name)
    servers = tuple(_api_servers(cloud, scale_set))
    if not servers:
        raise NotProvisionedError(cluster.api_servers.name, "the scale set has no instance that is provisioned")
    return (*_members(cloud, cluster, cluster.etcd), *_members(cloud, cluster, cluster.events_etcd), *servers)


@dataclass(frozen=True)
class HealthProbe:
    """How the load balancer finds out which API servers are ready: seconds between probes, and failures that mark one down."""

    interval_seconds: float
    failures: int
    path: str


def health_probe(cloud: Cloud, cluster: ClusterPlan) -> HealthProbe:
    """The probe of the API servers' load balancer in Azure; NotProvisioned."""
    balancer = _found(cloud, cluster, "Microsoft.Network/loadBalancers", cluster.api_servers.load_balancer)
    told = balancer.properties["probes"][0]["properties"]
    return HealthProbe(float(told["intervalInSeconds"]), int(told["probeThreshold"]), str(told["requestPath"]))


def _found(cloud: Cloud, cluster: ClusterPlan, resource_type: str, name: str) -> Resource:
    found = cloud.find(naming.resource_id(cluster.subscription, cluster.resource_group, *resource_type.split("/"), name))
    if found is None:
        raise NotProvisionedError(name, f"Azure has no {resource_type} of this name in {cluster.resource_group}")
    return found


def existing_members(cloud: Cloud, cluster: ClusterPlan) -> Iterator[ProvisionedMachine]:
    """The members of both rings that Azure has, in whatever state."""
    for ring in (cluster.etcd, cluster.events_etcd):
        for member in ring.members:
            with suppress(NotProvisionedError):
                yield _member(cloud, cluster, ring, member)


def existing_api_servers(cloud: Cloud, cluster: ClusterPlan) -> tuple[ProvisionedMachine, ...]:
    """The API servers that Azure has provisioned, if any, by instance id."""
    with suppress(NotProvisionedError):
        return tuple(_api_servers(cloud, _found(cloud, cluster, SCALE_SET, cluster.api_servers.name)))
    return ()


def _members(cloud: Cloud, cluster: ClusterPlan, ring: EtcdPlan) -> Iterator[ProvisionedMachine]:
    return (_member(cloud, cluster, ring, member) for member in ring.members)


def _member(cloud: Cloud, cluster: ClusterPlan, ring: EtcdPlan, member: EtcdMemberPlan) -> ProvisionedMachine:
    machine = _found(cloud, cluster, "Microsoft.Compute/virtualMachines", member.name)
    card = _found(cloud, cluster, "Microsoft.Network/networkInterfaces", member.nic_name)
    address = card.properties["ipConfigurations"][0]["properties"]["privateIPAddress"]
    # What was sent: no answer of Azure's holds custom data.
    given = machine.sent["properties"]["osProfile"]["customData"]
    told = ProvisionedMachine(ring.role, member.name, machine.id.text, str(address), str(given))
    return _with_disks(told, machine_of(machine), str(machine.properties["vmId"]))


def _api_servers(cloud: Cloud, scale_set: Resource) -> Iterator[ProvisionedMachine]:
    """Instances by id; each boots from the model from which its OS disk was made."""
    state = state_of(scale_set)
    first: dict[str, int] = {}
    for key, _nic, _configuration, address in addresses_of(scale_set):
        first.setdefault(key, address)
    for one in sorted(state.living(), key=_number):
        if one.state != SUCCEEDED:
            continue
        model = state.models[one.os_model]
        told = ProvisionedMachine(
            API_SERVER,
            computer_name(model, scale_set.id.name, one.id).lower(),
            f"{scale_set.id.text}/virtualMachines/{one.id}",
            str(IPv4Address(first[str(one.id)])),
            str(model.profile["osProfile"]["customData"]),
        )
        yield _with_disks(told, one, vm_id(cloud, scale_set, one))


def _with_disks(told: ProvisionedMachine, machine: Machine, born: str) -> ProvisionedMachine:
    """A machine with what the model knows of its disks and power."""
    on = machine.state == SUCCEEDED and machine.power == RUNNING
    return replace(told, born=born, os_disk=f"os-{machine.os_disk}", local_disk=f"local-{machine.local_disks}", on=on)


def _number(one: Instance) -> int:
    return one.id
