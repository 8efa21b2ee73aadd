"""Resource types of instances, their network interfaces and rolling upgrades, which are stored in the state of their scale set."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import rolling_upgrades
from rehearsal.azure.compute.actions import INSTANCE_ACTIONS, act_on_instance, delete_instance
from rehearsal.azure.compute.instance_network import (
    CONFIGURATION,
    INSTANCE,
    INTERFACE,
    PUBLIC_ADDRESS,
    instance_interfaces,
    instance_ip_configurations,
    instance_public_addresses,
)
from rehearsal.azure.compute.instances import Instance, state_of
from rehearsal.azure.compute.profile_defaults import USER_DATA, expands
from rehearsal.azure.compute.scale_set import SCALE_SET
from rehearsal.azure.compute.views import instance_body, instance_user_data, instance_view
from rehearsal.azure.errors import AzureError, invalid, not_modelled
from rehearsal.azure.preconditions import resource_not_found
from rehearsal.azure.resource import Json, Request, Resource, Response
from rehearsal.azure.resource_type import READS, ResourceType

ROLLING = f"{SCALE_SET}/rollingUpgrades"
_OWN = ("protectionPolicy",)


def _not_allowed(method: str) -> AzureError:
    return AzureError(405, "MethodNotAllowed", f"The HTTP method '{method}' is not supported at this location.")


def _sets(cloud: Cloud, scope: str) -> Iterator[Resource]:
    """Yield the scale sets below a scope, or the one that is the scope or contains it."""
    parsed = parse(scope) if "/providers/" in scope.lower() else None
    if parsed is None:
        yield from cloud.list(scope, SCALE_SET)
    elif parsed.type.lower().startswith(SCALE_SET.lower()):
        found = cloud.resources.get("/".join(scope.lower().split("/")[:9]))
        if found is not None:
            yield found


def _of_id(cloud: Cloud, arm_id: ArmId) -> tuple[Resource, Instance] | None:
    """Return the scale set and the instance that an id names, or is below."""
    resource = cloud.resources.get("/".join(arm_id.key.split("/")[:9]))
    one = state_of(resource).instances.get(arm_id.names[1]) if resource is not None else None
    return (resource, one) if resource is not None and one is not None else None


def _resource(resource: Resource, text: str, resource_type: str, names: tuple[str, ...], body: Json, one: Instance | None) -> Resource:
    owner = resource.id
    arm_id = ArmId(text, owner.subscription, owner.group, owner.scope, resource_type, (owner.name, *names))
    created = one.created if one is not None else resource.created
    return Resource(arm_id, body, body, resource.owner, created, resource.changed, state=(resource, one))


def _expanded(cloud: Cloud, resource: Resource, one: Instance, body: Json, query: Mapping[str, str], reported: str = "") -> Json:
    """Return an instance's body with the instance view or the user data if $expand requests it."""
    more: Json = {}
    if expands(query, "instanceView"):
        more["instanceView"] = instance_view(cloud, resource, one, reported)
    if expands(query, USER_DATA):
        more |= instance_user_data(resource, one)
    return {**body, "properties": {**body["properties"], **more}} if more else body


def answered_instance(cloud: Cloud, resource: Resource, one: Instance, query: Mapping[str, str], reported: str = "") -> Json:
    """Return an instance as a GET or a list answers it; reported is the time of its agent's status, the present time if empty."""
    return _expanded(cloud, resource, one, instance_body(cloud, resource, one), query, reported)


class Instances(ResourceType):
    """Instances of Uniform scale sets: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms"""

    type = INSTANCE
    virtual = True

    def paths_below(self, method: str) -> Collection[str]:
        """Return the actions of an instance, and its instance view."""
        return (*INSTANCE_ACTIONS, "simulateeviction") if method == "POST" else ("instanceview",) if method in READS else ()

    def find_virtual(self, cloud: Cloud, arm_id: ArmId) -> Resource | None:
        """Return one instance."""
        pair = _of_id(cloud, arm_id)
        return self._made(cloud, *pair) if pair else None

    def list_virtual(self, cloud: Cloud, scope: str) -> Iterator[Resource]:
        """Yield instances by set and by id."""
        for resource in _sets(cloud, scope):
            for one in list(state_of(resource).instances.values()):
                yield self._made(cloud, resource, one)

    def _made(self, cloud: Cloud, resource: Resource, one: Instance) -> Resource:
        body = instance_body(cloud, resource, one)
        return _resource(resource, body["id"], INSTANCE, (str(one.id),), body, one)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body, with the instance view if $expand requests it."""
        scale_set, one = resource.state
        return _expanded(cloud, scale_set, one, resource.body, query)

    def respond(self, cloud: Cloud, request: Request) -> Response:
        """Answer GET, PUT of a protection policy, DELETE and the actions."""
        pair = _of_id(cloud, request.id)
        if pair is None:
            if request.method == "DELETE":
                return Response(204)
            raise resource_not_found(request.id)
        resource, one = pair
        match request.method:
            case "GET" | "HEAD" if request.action:
                return Response(200, instance_view(cloud, resource, one))
            case "GET" | "HEAD":
                return Response(200, answered_instance(cloud, resource, one, request.query))
            case "PUT":
                return self._protect(cloud, resource, one, request)
            case "DELETE":
                return delete_instance(cloud, resource, one)
            case "POST":
                return act_on_instance(cloud, resource, one, request)
            case _:
                raise _not_allowed(request.method)

    def _protect(self, cloud: Cloud, resource: Resource, one: Instance, request: Request) -> Response:
        """Set the protection policy and tags of an instance:
        https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-instance-protection
        """
        known = instance_body(cloud, resource, one)
        body = dict(request.body or {})
        if cloud.body_reader:
            # The reader removes read-only properties, so that a body can be sent as it was read.
            body, known = cloud.body_reader.checked(self, request), cloud.body_reader.checked(self, replace(request, body=known))
        for name, value in (body.get("properties") or {}).items():
            if name not in _OWN and value != known["properties"].get(name) and name != "instanceView":
                raise not_modelled(f"a change of '{name}' of one instance, only of its protectionPolicy and tags", name)
        policy = (body.get("properties") or {}).get("protectionPolicy")
        if policy is not None:
            actions = bool(policy.get("protectFromScaleSetActions"))
            if actions and policy.get("protectFromScaleIn") is False:
                message = "protectFromScaleIn cannot be false while protectFromScaleSetActions is true, which protects from scale-in too."
                raise invalid(message, "protectionPolicy")
            one.protect_from_actions = actions
            one.protect_from_scale_in = actions or bool(policy.get("protectFromScaleIn"))
        if "tags" in body:
            one.tags = body["tags"]
        return Response(200, instance_body(cloud, resource, one))


Bodies = Callable[[Cloud, Resource, Instance], Iterator[Json]]


class InstanceParts(ResourceType):
    """Parts of instances that are read-only: network interfaces, ipConfigurations or public addresses.

    They are listed below a set, an instance or what contains them. shown is the type of the parts, and type that of the path.
    """

    virtual = True

    def __init__(self, path_type: str, shown: str, bodies: Bodies) -> None:
        self.type, self._shown, self._bodies = path_type, shown, bodies

    def find_virtual(self, cloud: Cloud, arm_id: ArmId) -> Resource | None:
        """Return one part of an instance."""
        pair = _of_id(cloud, arm_id) if len(arm_id.names) > 2 else None
        return next((one for one in self._of(cloud, *pair) if one.key == arm_id.key), None) if pair is not None else None

    def list_virtual(self, cloud: Cloud, scope: str) -> Iterator[Resource]:
        """Yield parts by set, instance and model; those below one instance or part if the scope is one."""
        parts = scope.split("/")
        number = parts[10] if len(parts) > 10 and parts[9].lower() == "virtualmachines" else None
        below = f"{scope.lower().rstrip('/')}/"
        for resource in _sets(cloud, scope):
            instances = state_of(resource).instances
            chosen = list(instances.values()) if number is None else [instances[number]] if number in instances else []
            for one in chosen:
                yield from (part for part in self._of(cloud, resource, one) if part.key.startswith(below))

    def _of(self, cloud: Cloud, resource: Resource, one: Instance) -> Iterator[Resource]:
        for body in self._bodies(cloud, resource, one):
            names = tuple(body["id"].split("/")[10::2])
            yield _resource(resource, body["id"], self._shown, names, body, one)

    def respond(self, cloud: Cloud, request: Request) -> Response:
        """Answer a GET."""
        if request.method not in ("GET", "HEAD"):
            raise _not_allowed(request.method)
        found = self.find_virtual(cloud, request.id)
        if found is None or request.action:
            raise resource_not_found(request.id)
        return Response(200, found.body)


INSTANCE_PARTS: tuple[ResourceType, ...] = (
    InstanceParts(INTERFACE, INTERFACE, instance_interfaces),
    InstanceParts(f"{SCALE_SET}/networkInterfaces", INTERFACE, instance_interfaces),
    InstanceParts(CONFIGURATION, CONFIGURATION, instance_ip_configurations),
    InstanceParts(PUBLIC_ADDRESS, PUBLIC_ADDRESS, instance_public_addresses),
    InstanceParts(f"{SCALE_SET}/publicIPAddresses", PUBLIC_ADDRESS, instance_public_addresses),
)


class RollingUpgrades(ResourceType):
    """The latest rolling upgrade of a scale set: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-rolling-upgrades"""

    type = ROLLING
    virtual = True

    def paths_below(self, method: str) -> Collection[str]:
        """Return cancel as the name of a POST, which Azure has in the place of an upgrade's name."""
        return ("",) if method == "POST" else ()

    def respond(self, cloud: Cloud, request: Request) -> Response:
        """Answer GET of latest and POST of cancel."""
        resource = cloud.get(request.id.parent or "")
        match request.method, request.id.name.lower():
            case "GET", "latest":
                return Response(200, rolling_upgrades.latest_rolling_upgrade(cloud, resource))
            case "POST", "cancel":
                return Response(202, operation=rolling_upgrades.cancel_rolling_upgrade(cloud, resource))
            case _:
                raise resource_not_found(request.id)
