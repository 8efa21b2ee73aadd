"""Decides how resource groups behave: deleted with all that is in them, in an order in which nothing is in use."""

from __future__ import annotations

from rehearsal.azure.arm_id import GROUP_TYPE, ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.kind import Kind
from rehearsal.azure.resource import Json, Operation, Resource

GROUPS_PER_SUBSCRIPTION = 980
"""https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits"""


class ResourceGroup(Kind):
    """A resource group: https://learn.microsoft.com/rest/api/resources/resource-groups."""

    type = GROUP_TYPE

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """A location is required, and a subscription holds so many groups."""
        if not body.get("location"):
            raise invalid("The location property is required for this definition.", "location", "LocationRequired")
        if previous is None:
            groups = sum(1 for _ in cloud.list(f"/subscriptions/{arm_id.subscription}", self.type))
            if groups >= GROUPS_PER_SUBSCRIPTION:
                message = f"The subscription holds {groups} resource groups, of at most {GROUPS_PER_SUBSCRIPTION}."
                raise conflict("ResourceGroupQuotaExceeded", message, arm_id.name)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """A group is always there at once."""
        return {**body, "properties": {"provisioningState": "Succeeded"}}

    def deleting(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """Delete what is inside, again and again until nothing is or nothing goes: one resource's end frees another."""
        cloud.events.after(0.0, resource.key, "empty", operation.id)

    def delete_seconds(self, cloud: Cloud, resource: Resource) -> float | None:
        """The group goes when what is in it has gone."""
        return None

    def event(self, cloud: Cloud, resource: Resource, name: str, args: tuple[str, ...]) -> None:
        """One more pass over what is left in the group."""
        operation = cloud.operations[args[0]]
        inside = [one for key, one in cloud.resources.items() if key.startswith(f"{resource.key}/")]
        refused: AzureError | None = None
        waiting = any(one.operation for one in inside)
        for one in inside:
            if one.key not in cloud.resources or one.operation:
                continue
            try:
                waiting = cloud.delete(one) is not None or waiting
            except AzureError as error:
                refused = error
        left = any(key.startswith(f"{resource.key}/") for key in cloud.resources)
        if not left:
            cloud.finish(operation)
        elif waiting or len(inside) > sum(1 for key in cloud.resources if key.startswith(f"{resource.key}/")):
            due = cloud.events.next_at()
            cloud.events.at(max(cloud.now, due if due is not None else cloud.now), resource.key, "empty", operation.id)
        else:
            cloud.finish(operation, refused or conflict("ResourceGroupDeletionBlocked", f"{resource.id.text} could not be emptied."))


KINDS: tuple[Kind, ...] = (ResourceGroup(),)
