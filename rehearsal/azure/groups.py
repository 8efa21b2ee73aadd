"""Resource groups: a deletion deletes all members, in an order in which none is in use."""

from __future__ import annotations

from collections.abc import Mapping

from rehearsal.azure.arm_id import GROUP_TYPE, ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, conflict
from rehearsal.azure.resource import Json, Operation, Resource
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.validation import required_location

GROUPS_PER_SUBSCRIPTION = 980
"""Groups per subscription: https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits"""


class ResourceGroup(ResourceType):
    """A resource group: https://learn.microsoft.com/rest/api/resources/resource-groups.

    Its deletion deletes what has a location, image definitions and links of zones too. Subnets, rules, records and the like have none: they
    go with what they are part of, or stay with it.
    """

    type = GROUP_TYPE

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require a location, and check the limit of groups per subscription."""
        required_location(body)
        if previous is None:
            groups = sum(1 for _ in cloud.list(f"/subscriptions/{arm_id.subscription}", self.type))
            if groups >= GROUPS_PER_SUBSCRIPTION:
                message = f"The subscription holds {groups} resource groups, of at most {GROUPS_PER_SUBSCRIPTION}."
                raise conflict("ResourceGroupQuotaExceeded", message, arm_id.name)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Return the body with its provisioning state; a group exists at once."""
        return {**body, "properties": {"provisioningState": "Succeeded"}}

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Show the state Deleting during a deletion; a failed deletion leaves the group unchanged."""
        return {**resource.body, "properties": {"provisioningState": "Deleting"}} if resource.operation else resource.body

    def deleting(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """Delete the members in passes until none is left or none can be deleted, because one deletion can unblock another."""
        self.member_operation_ended(cloud, resource)

    def member_operation_ended(self, cloud: Cloud, resource: Resource) -> None:
        """Plan one more pass over the group; `waits_for` counts it."""
        operation = cloud.operations[resource.operation]
        if not operation.waits_for:
            operation.waits_for = 1
            cloud.events.after(0.0, resource.key, "empty", operation.id)

    def delete_seconds(self, cloud: Cloud, resource: Resource) -> float | None:
        """Return None: the group is deleted when its members are."""
        return None

    def event(self, cloud: Cloud, resource: Resource, name: str, args: tuple[str, ...]) -> None:
        """Run one more pass over the remaining members."""
        operation = cloud.operations[args[0]]
        operation.waits_for = 0
        refused: dict[str, AzureError] = {}
        for one in _located(cloud, resource):
            if one.key in cloud.resources and not one.operation:
                try:
                    cloud.delete(one)
                except AzureError as error:
                    refused[one.id.text] = error
        left = _located(cloud, resource)
        if not left:
            cloud.finish_operation(operation)
        elif not operation.waits_for and not any(one.operation for one in left):
            cloud.finish_operation(operation, _blocked(resource, left, refused))

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Remove extension resources of the group itself (roles, locks)."""
        for key in [key for key in cloud.resources if key.startswith(f"{resource.key}/")]:
            if key in cloud.resources:
                cloud.remove(cloud.resources[key])


def _located(cloud: Cloud, group: Resource) -> list[Resource]:
    """Return the members of a group that have a location, in creation order."""
    return [one for key, one in cloud.resources.items() if key.startswith(f"{group.key}/") and one.location]


def _blocked(group: Resource, left: list[Resource], refused: Mapping[str, AzureError]) -> AzureError:
    """Return the error of a failed deletion: https://github.com/Azure/bicep-registry-modules/pull/1607 shows one."""
    named = ", ".join(one.id.text.rpartition("/providers/")[2] for one in left)
    message = (
        f"Deletion of resource group '{group.id.name}' failed as resources with identifiers '{named}' could not be deleted. The "
        "provisioning state of the resource group will be rolled back."
    )
    details = tuple(AzureError(why.status, why.code, why.message, target=text) for text, why in refused.items())
    return AzureError(409, "ResourceGroupDeletionBlocked", message, target=group.id.text, details=details)


RESOURCE_TYPES: tuple[ResourceType, ...] = (ResourceGroup(),)
