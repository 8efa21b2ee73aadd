"""Says what a resource type decides for itself; the model does the rest alike for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.resource import Answer, Json, Operation, Request, Resource

if TYPE_CHECKING:
    from rehearsal.azure.arm_id import ArmId
    from rehearsal.azure.cloud import Cloud

Action = Callable[["Cloud", Resource, Request], Answer]


class Kind:
    """One resource type. Every hook has a default that suits a plain resource; a hook refuses by raising AzureError.

    The order of a PUT: check (may it be?), complete (the body with defaults and what Azure computes), references looked up, stored,
    accepted (take addresses, quota, …), seconds (how long it takes), and, when that time is over, finished.
    A DELETE: removable, accepted as deleting, delete_seconds, removed.
    """

    type: str
    """As Azure writes it: Microsoft.Network/virtualNetworks/subnets."""
    actions: Mapping[str, Action] = {}
    """POST actions by lower-case name."""
    gets: Mapping[str, Action] = {}
    """GET paths below the resource that are no resources of their own (instanceView, skus), by lower-case name."""
    in_use_code = "InUseCannotBeDeleted"
    shares_lock_of_parent = False
    """Whether a change of it holds its parent meanwhile, so that changes below one parent come one after another."""
    interruptible = False
    """Whether a new PUT is taken while an earlier one still runs."""

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a body that could not be meant, or a change that Azure does not allow."""

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """The body with defaults and computed properties; id, name, type, etag and provisioningState are added by the model."""
        return body

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Take what the resource needs (addresses, quota); previous is the body before. Raising AzureError undoes the PUT."""

    def seconds(self, cloud: Cloud, resource: Resource, previous: Json | None) -> float | None:
        """How long the PUT takes; 0 is done at once, None means that the kind itself ends the operation by cloud.finish."""
        return 0.0

    def finished(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """The PUT's time is over; raising AzureError makes the operation fail."""

    def removable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse a delete for the kind's own reasons; references from other resources are looked at by the model."""

    def deleting(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """A delete was accepted."""

    def delete_seconds(self, cloud: Cloud, resource: Resource) -> float | None:
        """How long a delete takes, as seconds does."""
        return 0.0

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Give back what the resource held; it is gone from the model already."""

    def restored(self, cloud: Cloud, resource: Resource) -> None:
        """The resource was read from a saved state: take again what accepted took, deciding nothing anew."""

    def event(self, cloud: Cloud, resource: Resource, name: str, args: tuple[Any, ...]) -> None:
        """Something that this kind planned by cloud.events happens."""
        raise NotImplementedError(f"{self.type} planned {name} and does not know it")

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """The body that a GET answers."""
        return resource.body

    def holds(self, resource: Resource, target: Resource) -> bool:
        """Whether this resource's reference keeps its target from being deleted."""
        return True

    def in_use(self, resource: Resource, by: Iterable[str]) -> AzureError:
        """The refusal to delete what others refer to."""
        users = sorted(by)
        return conflict(
            self.in_use_code, f"{resource.id.text} is in use by {', '.join(users[:3])} and cannot be deleted.", resource.id.text
        )

    def missing_reference(self, arm_id: ArmId, target: str) -> AzureError:
        """The refusal of a body that names what does not exist."""
        return invalid(
            f"Resource {target} referenced by resource {arm_id.text} was not found. Please make sure that the referenced resource exists, "
            "and that both resources are in the same region.",
            target,
            "InvalidResourceReference",
        )

    def dump(self, state: Any) -> Any:
        """Plain JSON of a resource's state; None has none."""
        if state is not None:
            raise NotImplementedError(f"{self.type} keeps a state and does not say how it is saved")
        return None

    def load(self, data: Any) -> Any:
        """The state that dump told of."""
        return None
