"""Machines of a model that boot as nodes of a cluster, with their metadata, boot files, image and secrets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from components.plan.model import ClusterPlan, ImagePlan, RegionPlan
from components.plan.vm_sizes import VM_SIZES
from rehearsal.arm.instance_document import instance_document
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import Instance, Model, state_of
from rehearsal.azure.compute.machine import RUNNING, SUCCEEDED
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.vaults import vault_named
from rehearsal.azure.vaults.data_plane import get_secret
from rehearsal.local_cluster.joining.boot_programs import fetched_files, machine_identity, max_pods_of
from rehearsal.local_cluster.joining.node_boot import NodeBoot, NodeBootError, node_boot
from rehearsal.local_cluster.joining.node_object import NodeSet, node_object
from rehearsal.local_cluster.joining.node_resources import devices_of

_SCALE_SET = "Microsoft.Compute/virtualMachineScaleSets"
IMAGE_DISK_GIB = 30
"""Default OS disk of a scale set, the size of Ubuntu's marketplace images:
https://learn.microsoft.com/azure/virtual-machines/ephemeral-os-disks"""


@dataclass(frozen=True)
class JoiningMachine:
    """A machine that boots as a node: the data of its scale set, and its own metadata."""

    of_set: NodeSet
    name: str
    resource_id: str
    vm_id: str
    address: str
    provider_id: str
    pods: int

    def node(self, now: str) -> Json:
        """Return the Node that it registers at a time in RFC 3339."""
        return node_object(self.of_set, self.name, self.address, self.provider_id, self.vm_id, self.pods, now)


@dataclass(frozen=True)
class FetchedIdentity:
    """Credentials for the first certificate: a bootstrap token, and the trusted authority (PEM)."""

    token: str = field(repr=False)
    authority: str


def machines_of(cloud: Cloud, plan: RegionPlan, cluster: ClusterPlan) -> tuple[JoiningMachine, ...]:
    """Return the running machines of the cluster's node scale sets, by set and instance; raise NodeBootError for invalid boot files.

    They are read at once, because a served model changes between calls.
    """
    return tuple(
        machine
        for pool in cluster.pools
        for one in pool.scale_sets
        for machine in _of_set(cloud, plan, cluster, f"{_group(cluster)}/providers/{_SCALE_SET}/{one.name}")
    )


def _group(cluster: ClusterPlan) -> str:
    return f"/subscriptions/{cluster.subscription}/resourceGroups/{cluster.resource_group}"


def _of_set(cloud: Cloud, plan: RegionPlan, cluster: ClusterPlan, set_id: str) -> Iterator[JoiningMachine]:
    """Yield the machines of a scale set; machines of the same model version share its data."""
    resource = cloud.find(set_id)
    if resource is None:
        return
    state = state_of(resource)
    node_sets: dict[int, NodeSet] = {}
    for one in state.living():
        if one.state != SUCCEEDED or one.power != RUNNING:
            continue
        if one.os_model not in node_sets:
            node_sets[one.os_model] = node_set(plan, cluster, resource.id.name, state.models[one.os_model])
        yield _machine(cloud, resource, one, node_sets[one.os_model])


def _machine(cloud: Cloud, resource: Resource, one: Instance, of_set: NodeSet) -> JoiningMachine:
    machine = cloud.get(f"{resource.id.text}/virtualMachines/{one.id}")
    document = instance_document(cloud, machine)
    address, provider_id = machine_identity(document)
    pods = max_pods_of(of_set.boot.network, document["network"])
    name = str(document["compute"]["osProfile"]["computerName"]).lower()
    return JoiningMachine(of_set, name, machine.id.text, str(document["compute"]["vmId"]), address, provider_id, pods)


def node_set(plan: RegionPlan, cluster: ClusterPlan, name: str, model: Model) -> NodeSet:
    """Return the data that all machines of a scale set's model share."""
    profile = model.profile
    disk = (profile.get("storageProfile") or {}).get("osDisk") or {}
    return NodeSet(
        name=name,
        boot=node_boot(str((profile.get("osProfile") or {}).get("customData", "")), name),
        size=VM_SIZES[model.size],
        image=_image(plan, cluster, name, str(model.image.get("id", ""))).definition,
        os_disk_gib=int(disk.get("diskSizeGB") or IMAGE_DISK_GIB),
        devices=devices_of(cluster),
    )


def _image(plan: RegionPlan, cluster: ClusterPlan, name: str, image_id: str) -> ImagePlan:
    """Return the published image of machines."""
    for one in (*plan.gallery.images, *(pool.image for pool in cluster.pools)):
        if one.machine_image_id is not None and one.machine_image_id.lower() == image_id.lower():
            return one
    raise NodeBootError(name, f"its machines have {image_id or 'no image'}, which is not an image of the plan", "bring the region up again")


def fetched_identity(cloud: Cloud, boot: NodeBoot) -> FetchedIdentity:
    """Return the credentials that the machine's boot fetches. Raises AzureError if the vault lacks a secret of its manifests."""
    (token,) = _fetched(cloud, boot, boot.token_manifest).values()
    return FetchedIdentity(token, _fetched(cloud, boot, boot.secrets)[boot.join["authority"]])


def _fetched(cloud: Cloud, boot: NodeBoot, manifest: Json) -> dict[str, str]:
    """Return the files that gpufleet-fetch-secrets writes for a manifest."""
    host = str(urlsplit(str(manifest["vault"])).hostname)
    vault = vault_named(cloud, host.partition(".")[0])
    if vault is None:
        raise NodeBootError(boot.where, f"there is no vault {manifest['vault']}", "bring the region up again")
    return fetched_files(manifest, {secret: str(get_secret(cloud, vault, secret)["value"]) for secret in manifest["secrets"]})
