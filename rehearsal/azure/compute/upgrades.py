"""Updates of instances to the latest model: by name, or all at once. Rolling upgrades use them batch by batch."""

from __future__ import annotations

from collections.abc import Iterable

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instance_operations import begin_task
from rehearsal.azure.compute.instances import Instance, Model, SetState, state_of
from rehearsal.azure.compute.machine import FAILED
from rehearsal.azure.compute.scaling import release_addresses, release_quota, take_addresses, take_quota
from rehearsal.azure.errors import AzureError
from rehearsal.azure.network.public_addresses import mark_public, take_public
from rehearsal.azure.resource import Operation, Resource


def out_of_date(state: SetState) -> list[Instance]:
    """Return the instances that are behind the model, idle, and not protected from scale set actions."""
    return [one for one in state.living() if one.model != state.model and not one.doing and not one.protect_from_actions]


def needs_reimage(old: Model, new: Model) -> bool:
    """Return whether a change of models replaces a machine's OS disk: another image.

    New customData and SSH keys reach the guest only with a reimage, which an update does not do:
    https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-upgrade-policy
    """
    return old.image != new.image


def needs_other_hardware(old: Model, new: Model) -> bool:
    """Return whether a change of models moves the machine: another VM size, or another proximity placement group."""
    return old.size.lower() != new.size.lower() or old.rest["proximityPlacementGroup"] != new.rest["proximityPlacementGroup"]


def bring_to_latest(cloud: Cloud, resource: Resource, operation: Operation, machines: Iterable[Instance]) -> None:
    """Start to update instances to the latest model; a refusal of quota or addresses becomes a failure of the operation."""
    for one in list(machines):
        refused = bring_to_model(cloud, resource, operation, one, state_of(resource).model)
        if refused is not None:
            operation.failures.append({**refused.body(), "target": str(one.id)})


def bring_to_model(
    cloud: Cloud, resource: Resource, operation: Operation, one: Instance, number: int, *, reimage: bool = False
) -> AzureError | None:
    """Start to update an instance to a model version; return the refusal of its quota or addresses, which leaves the instance Failed.

    The task is an update, a new OS disk for another image or with reimage, or other hardware for another size.
    """
    models = state_of(resource).models
    old, new = models[one.model], models[number]
    task = "resize" if needs_other_hardware(old, new) else "upgrade" if reimage or needs_reimage(old, new) else "update"
    try:
        _take_resources(cloud, resource, one, old, new)
    except AzureError as refused:
        one.state, one.error = FAILED, refused.body()
        return refused
    one.model = number
    begin_task(cloud, resource, operation, one, task)
    return None


def _take_resources(cloud: Cloud, resource: Resource, one: Instance, old: Model, new: Model) -> None:
    """Take the quota and addresses of another model for a machine; AzureError, and then the machine has its former ones."""
    if (old.size.lower(), old.spot, old.reservation) != (new.size.lower(), new.spot, new.reservation):
        release_quota(cloud, resource, old, (one,))
        try:
            take_quota(cloud, resource, new, (one,))
        except AzureError:
            take_quota(cloud, resource, old, (one,))
            raise
    if old.ip_configurations != new.ip_configurations:
        one.addresses = _other_addresses(cloud, one, old, new)
        more = new.public_addresses - len(one.public)
        mark_public(cloud, one.public[new.public_addresses :], taken=False)
        one.public = (*one.public[: new.public_addresses], *take_public(cloud, max(more, 0)))


def _other_addresses(cloud: Cloud, one: Instance, old: Model, new: Model) -> tuple[int, ...]:
    """Return addresses by the new model's ipConfigurations: those with the same NIC, name and subnet are preserved."""
    had = {(item.nic, item.name, item.subnet.lower()): (item, own) for item, own in zip(old.ip_configurations, one.addresses, strict=True)}
    missing = [item for item in new.ip_configurations if (item.nic, item.name, item.subnet.lower()) not in had]
    more = iter(take_addresses(cloud, missing, 1)[0] if missing else ())
    preserved = [had.pop((item.nic, item.name, item.subnet.lower()), None) for item in new.ip_configurations]
    release_addresses(cloud, *(tuple(zip(*had.values(), strict=True)) or ((), ())))
    return tuple(next(more) if found is None else found[1] for found in preserved)
