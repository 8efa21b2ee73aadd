"""Resource types of instances, their network interfaces and rolling upgrades, which are stored in the state of their scale set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import upgrades
from rehearsal.azure.compute.actions import act_on_instance, delete_instance
from rehearsal.azure.compute.instances import Instance, state_of
from rehearsal.azure.compute.scale_set import SCALE_SET
from rehearsal.azure.compute.scale_set_rules import not_modelled
from rehearsal.azure.compute.views import INSTANCE, INTERFACE, instance_body, instance_interfaces, instance_view
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.preconditions import resource_not_found
from rehearsal.azure.resource import Json, Request, Resource, Response
from rehearsal.azure.resource_type import ResourceType

SET_INTERFACE = f"{SCALE_SET}/networkInterfaces"
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


class Instances(ResourceType):
    """Instances of Uniform scale sets: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms"""

    type = INSTANCE
    virtual = True

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
        if "instanceview" not in str(query.get("$expand", "")).lower():
            return resource.body
        view = instance_view(cloud, *resource.state)
        return {**resource.body, "properties": {**resource.properties, "instanceView": view}}

    def respond(self, cloud: Cloud, request: Request) -> Response:
        """Answer GET, PUT of a protection policy, DELETE and the actions."""
        pair = _of_id(cloud, request.id)
        if pair is None:
            if request.method == "DELETE":
                return Response(204)
            raise resource_not_found(request.id)
        resource, one = pair
        match request.method:
            case "GET" | "HEAD" if request.action.lower() == "instanceview":
                return Response(200, instance_view(cloud, resource, one))
            case "GET" | "HEAD" if not request.action:
                return Response(200, self.view(cloud, self._made(cloud, resource, one), request.query))
            case "PUT":
                return self._protect(cloud, resource, one, request)
            case "DELETE":
                return delete_instance(cloud, resource, one)
            case "POST":
                return act_on_instance(cloud, resource, one, request)
            case "GET" | "HEAD":
                raise resource_not_found(request.id)
            case _:
                raise _not_allowed(request.method)

    def _protect(self, cloud: Cloud, resource: Resource, one: Instance, request: Request) -> Response:
        """Set the protection policy and tags of an instance:
        https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-instance-protection
        """
        body = cloud.body_reader.checked(self, request) if cloud.body_reader else dict(request.body or {})
        known = instance_body(cloud, resource, one)
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


class Interfaces(ResourceType):
    """Network interfaces of instances, by set or by instance. They are read-only."""

    virtual = True

    def __init__(self, resource_type: str) -> None:
        self.type = resource_type

    def find_virtual(self, cloud: Cloud, arm_id: ArmId) -> Resource | None:
        """Return one interface of an instance."""
        pair = _of_id(cloud, arm_id) if len(arm_id.names) > 2 else None
        if pair is None:
            return None
        return next((one for one in self._of(*pair) if one.id.name.lower() == arm_id.name.lower()), None)

    def list_virtual(self, cloud: Cloud, scope: str) -> Iterator[Resource]:
        """Yield interfaces by set, instance and model; those of one instance if the scope is one."""
        parts = scope.split("/")
        number = parts[10] if len(parts) > 10 and parts[9].lower() == "virtualmachines" else None
        for resource in _sets(cloud, scope):
            instances = state_of(resource).instances
            chosen = list(instances.values()) if number is None else [instances[number]] if number in instances else []
            for one in chosen:
                yield from self._of(resource, one)

    def _of(self, resource: Resource, one: Instance) -> Iterator[Resource]:
        for body in instance_interfaces(resource, one):
            yield _resource(resource, body["id"], INTERFACE, (str(one.id), body["name"]), body, one)

    def respond(self, cloud: Cloud, request: Request) -> Response:
        """Answer a GET."""
        if request.method not in ("GET", "HEAD"):
            raise _not_allowed(request.method)
        found = self.find_virtual(cloud, request.id)
        if found is None or request.action:
            raise resource_not_found(request.id)
        return Response(200, found.body)


class RollingUpgrades(ResourceType):
    """The latest rolling upgrade of a scale set: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-rolling-upgrades"""

    type = ROLLING
    virtual = True

    def respond(self, cloud: Cloud, request: Request) -> Response:
        """Answer GET of latest and POST of cancel."""
        resource = cloud.get(request.id.parent or "")
        match request.method, request.id.name.lower():
            case "GET", "latest":
                return Response(200, upgrades.latest_rolling_upgrade(cloud, resource))
            case "POST", "cancel":
                return upgrades.cancel_rolling_upgrade(cloud, resource)
            case _:
                raise resource_not_found(request.id)
