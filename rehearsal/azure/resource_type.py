"""Says what a resource type decides for itself; the model does the rest alike for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.resource import Json, Operation, Request, Resource, Response

if TYPE_CHECKING:
    from rehearsal.azure.arm_id import ArmId
    from rehearsal.azure.cloud import Cloud

Action = Callable[["Cloud", Resource, Request], Response]


class ResourceType:
    """One resource type. Every hook has a default that suits a plain resource; a hook refuses by raising AzureError.

    The order of a PUT: check (may it be?), complete (the body with defaults and what Azure computes), references looked up, stored,
    accepted (take addresses, quota, …), seconds (how long it takes), and, when that time is over, finished.
    A DELETE: check_deletable, accepted as deleting, delete_seconds, removed.
    """

    type: str
    """As Azure writes it: Microsoft.Network/virtualNetworks/subnets."""
    actions: Mapping[str, Action] = {}
    """POST actions by lower-case name."""
    gets: Mapping[str, Action] = {}
    """GET paths below the resource that are no resources of their own (instanceView, skus), by lower-case name."""
    in_use_code = "InUseCannotBeDeleted"
    locks_with_parent = False
    """Whether a change of it holds its parent meanwhile, so that changes below one parent come one after another."""
    interruptible = False
    """Whether a new PUT is taken while an earlier one still runs."""
    deletable_in_use = False
    """Whether it may be deleted while others still refer to it: Azure lets an identity or an image go that machines name."""
    always_global = False
    """Whether it has no location but global, which it then asks for itself."""
    missing_delete_succeeds = True
    """Whether a DELETE where there is none is answered with 204, which the official SDK takes for most types; 404 otherwise."""
    has_provisioning_state = True
    """Whether its body has a provisioningState: some of Azure's types have none."""
    virtual = False
    """Whether these live in another resource's state (a scale set's instances) and not among the resources: then the kind itself answers
    each request about them, and says which there are."""

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a body that could not be meant, or a change that Azure does not allow."""

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """The body with defaults and computed properties; id, name, type, etag and provisioningState are added by the model."""
        return body

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Take what the resource needs (addresses, quota); previous is the body before. Raising AzureError undoes the PUT."""

    def patch_base(self, cloud: Cloud, resource: Resource) -> Json:
        """What a PATCH is merged into."""
        return resource.sent

    def put_seconds(self, cloud: Cloud, resource: Resource, previous: Json | None) -> float | None:
        """How long the PUT takes; 0 is done at once, None means that the kind itself ends the operation by cloud.finish_operation."""
        return 0.0

    def begun(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """The PUT's operation runs: a kind that ends it itself plans here what leads to its end."""

    def finished(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """The PUT's time is over; raising AzureError makes the operation fail."""

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse a delete for the kind's own reasons; references from other resources are looked at by the model."""

    def delete_response(self, cloud: Cloud, resource: Resource, request: Request) -> Response | None:
        """Answer a client's DELETE in the type's own way, where it has one; None for the usual one, by which the resource ends."""
        return None

    def is_built_in(self, cloud: Cloud, arm_id: ArmId) -> bool:
        """Whether an id of this type that the model holds no resource of exists all the same: built-in roles do."""
        return False

    def deleting(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """A delete was accepted."""

    def member_operation_ended(self, cloud: Cloud, resource: Resource) -> None:
        """An operation on something in a group has ended, while the group itself has one that goes on."""

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

    def blocks_deletion(self, resource: Resource, target: Resource) -> bool:
        """Whether this resource's reference keeps its target from being deleted."""
        return True

    def in_use_error(self, resource: Resource, by: Iterable[str]) -> AzureError:
        """The refusal to delete what others refer to."""
        users = sorted(by)
        return conflict(
            self.in_use_code, f"{resource.id.text} is in use by {', '.join(users[:3])} and cannot be deleted.", resource.id.text
        )

    def missing_reference_error(self, arm_id: ArmId, target: str) -> AzureError:
        """The refusal of a body that names what does not exist."""
        return invalid(
            f"Resource {target} referenced by resource {arm_id.text} was not found. Please make sure that the referenced resource exists, "
            "and that both resources are in the same region.",
            target,
            "InvalidResourceReference",
        )

    def respond(self, cloud: Cloud, request: Request) -> Response:
        """Answer a request about a virtual resource; whatever it is part of exists."""
        raise NotImplementedError(f"{self.type} is virtual and answers nothing")

    def find_virtual(self, cloud: Cloud, arm_id: ArmId) -> Resource | None:
        """A virtual resource as it is now, None where there is none with the id."""
        return None

    def list_virtual(self, cloud: Cloud, scope: str) -> Iterator[Resource]:
        """The virtual resources below a scope, in the order of their making, each made for the asking."""
        return iter(())

    def dump(self, state: Any) -> Any:
        """Plain JSON of a resource's state; None has none."""
        if state is not None:
            raise NotImplementedError(f"{self.type} keeps a state and does not say how it is saved")
        return None

    def load(self, data: Any) -> Any:
        """The state that dump told of."""
        return None
