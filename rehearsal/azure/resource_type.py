"""Base class of resource types: hooks for their specific behavior; the model handles everything else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.resource import Json, Operation, Request, Resource, Response
from rehearsal.azure.scenario import operation_seconds

if TYPE_CHECKING:
    from rehearsal.azure.arm_id import ArmId
    from rehearsal.azure.cloud import Cloud

READS = frozenset({"GET", "HEAD"})
Action = Callable[["Cloud", Resource, Request], Response]


class ResourceType:
    """One resource type. Every hook has a default for a plain resource. A hook rejects a request by raising AzureError.

    Order of a PUT: check, complete (add defaults and computed properties), look up references, store, accepted (allocate addresses, quota,
    …), put_seconds, and finished after that time.

    Order of a DELETE: check_deletable, deleting, delete_seconds, removed.
    """

    type: str
    """Type as Azure writes it: Microsoft.Network/virtualNetworks/subnets."""
    actions: Mapping[str, Action] = {}
    """POST actions by lower-case name."""
    gets: Mapping[str, Action] = {}
    """GET paths below the resource that are not resources (instanceView, skus), by lower-case name."""
    in_use_code = "InUseCannotBeDeleted"
    locks_with_parent = False
    """True if a change also locks the parent: changes below one parent then run one after another."""
    put_duration = ""
    """Name of a PUT's duration in the scenario, empty for a PUT that is done at once."""
    delete_duration = ""
    """Name of a DELETE's duration in the scenario, empty for a DELETE that is done at once."""
    state_type: Callable[..., Any] | None = None
    """Dataclass of the resource's state, for a type that saves its fields as they are."""
    interruptible = False
    """True if a new PUT is accepted while an earlier one runs."""
    deletable_in_use = False
    """True if it can be deleted while others refer to it; Azure allows this for identities and images of machines."""
    always_global = False
    """True if its only location is global; the type then checks the location itself."""
    delete_returns_body = False
    """True if a DELETE returns the deleted resource."""
    has_provisioning_state = True
    """True if its body has a provisioningState."""
    virtual = False
    """True if these are part of another resource's state (a scale set's instances). The resource type itself then responds to requests
    and lists them."""

    def paths_below(self, method: str) -> Collection[str]:
        """Return the modelled paths below a resource for a method, in lower case: actions of a POST, read-only paths of a GET."""
        return self.actions if method == "POST" else self.gets if method in READS else ()

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Reject an invalid body or a change that Azure does not allow."""

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Return the body with defaults and computed properties. The model adds id, name, type, etag and provisioningState."""
        return body

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Allocate what the resource needs (addresses, quota). previous is the body before. An AzureError undoes the PUT."""

    def patch_base(self, cloud: Cloud, resource: Resource) -> Json:
        """Return the body that a PATCH is merged into."""
        return resource.sent

    def put_seconds(self, cloud: Cloud, resource: Resource, previous: Json | None) -> float | None:
        """Return the seconds of a PUT: 0 ends at once; None if the type calls cloud.finish_operation itself."""
        return operation_seconds(cloud, self.put_duration, resource.key, resource.version) if self.put_duration else 0.0

    def begun(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """Start the PUT's operation; a type that ends it itself plans its events here."""

    def finished(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """End the PUT. An AzureError makes the operation fail."""

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Reject a deletion for reasons of the type. The model checks references from other resources."""

    def delete_response(self, cloud: Cloud, resource: Resource, request: Request) -> Response | None:
        """Return the type's own response to a client's DELETE; None for the usual deletion."""
        return None

    def is_built_in(self, cloud: Cloud, arm_id: ArmId) -> bool:
        """Return whether an id without a resource in the model exists, as built-in roles do."""
        return False

    def deleting(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """React to an accepted deletion."""

    def member_operation_ended(self, cloud: Cloud, resource: Resource) -> None:
        """React to the end of an operation on a member of a group while an operation of the group runs."""

    def delete_seconds(self, cloud: Cloud, resource: Resource) -> float | None:
        """Return the seconds of a deletion, as put_seconds does."""
        return operation_seconds(cloud, self.delete_duration, resource.key, "delete") if self.delete_duration else 0.0

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Release what the resource held; it is already removed from the model."""

    def restored(self, cloud: Cloud, resource: Resource) -> None:
        """Restore allocations of a resource that was loaded from a saved state, without new decisions."""

    def event(self, cloud: Cloud, resource: Resource, name: str, args: tuple[Any, ...]) -> None:
        """Handle an event that this type planned."""
        raise NotImplementedError(f"{self.type} planned {name} and does not know it")

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body of a GET."""
        return resource.body

    def blocks_deletion(self, resource: Resource, target: Resource) -> bool:
        """Return whether this resource's reference prevents the deletion of its target."""
        return True

    def in_use_error(self, resource: Resource, by: Iterable[str]) -> AzureError:
        """Return the error for the deletion of a resource in use."""
        users = sorted(by)
        return conflict(
            self.in_use_code, f"{resource.id.text} is in use by {', '.join(users[:3])} and cannot be deleted.", resource.id.text
        )

    def missing_reference_error(self, arm_id: ArmId, target: str) -> AzureError:
        """Return the error for a reference to a missing resource."""
        return invalid(
            f"Resource {target} referenced by resource {arm_id.text} was not found. Please make sure that the referenced resource exists, "
            "and that both resources are in the same region.",
            target,
            "InvalidResourceReference",
        )

    def respond(self, cloud: Cloud, request: Request) -> Response:
        """Respond to a request for a virtual resource; its parent exists."""
        raise NotImplementedError(f"{self.type} is virtual and answers nothing")

    def find_virtual(self, cloud: Cloud, arm_id: ArmId) -> Resource | None:
        """Return a resource that is part of another one's state, as it is now; None if there is none."""
        return None

    def list_virtual(self, cloud: Cloud, scope: str) -> Iterator[Resource]:
        """Return the resources below a scope that are parts of other ones' state, in creation order, created for this call."""
        return iter(())

    def dump(self, state: Any) -> Any:
        """Return a resource's state as plain JSON: the fields of a dataclass, or a plain value."""
        return asdict(state) if is_dataclass(state) and not isinstance(state, type) else state

    def load(self, data: Any) -> Any:
        """Return the state from the output of dump."""
        return self.state_type(**data) if self.state_type and data is not None else data
