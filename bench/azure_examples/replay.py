"""Replay of one example: an empty Azure, what the example presupposes, its request, and the comparison of the answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from typing import Any

from bench.azure_examples.comparison import differing_values, is_read_only, is_sent, missing_properties
from bench.azure_examples.example import LOCATION, STAND_INS, Example, walk
from bench.azure_examples.presupposed import Presupposed, grown, sendable
from bench.azure_examples.served import Answer, Served
from components.plan.locations import ZONAL_LOCATIONS
from rehearsal.arm.url_paths import ArmPath, ListPath, ResourcePath, parse_arm_path
from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.preconditions import etag
from rehearsal.azure.resource import Json, Request, location_key

MATCHED, MISSING, DIFFERENT, REFUSED, WRONG_STATUS, NOT_MODELLED = "matched", "missing", "different", "refused", "status", "not modelled"
NOT_SENT = "not sent"
"""Category of an answer that lacks only properties that a client sets and that the example's request does not send."""
NOT_MODELLED_CODES = frozenset({"InvalidResourceType", "InvalidRequestUri", "NotModelled", "MethodNotAllowed", "InvalidResourceNamespace"})
SETS = "microsoft.compute/virtualmachinescalesets"
INSTANCES = f"{SETS}/virtualmachines"
WITHOUT_PUT = ("microsoft.keyvault/locations/deletedvaults", "microsoft.virtualmachineimages/imagetemplates/runoutputs")
"""Types whose resources Azure itself creates."""
BOOTED_SECONDS = 900.0
UPGRADE_BEGUN_SECONDS = 20.0
"""Time after a PUT within which its rolling upgrade has begun, and has not ended."""
_INSTANCE = re.compile(r"(/virtualMachineScaleSets/[^/]+/virtualMachines/)([^/]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Outcome:
    """Result of an example: category, status and code of the answer, its message, and missing or differing properties."""

    file: str
    operation: str
    type: str
    category: str
    status: int = 0
    code: str = ""
    message: str = ""
    paths: tuple[str, ...] = ()
    presupposition: str = ""

    def row(self) -> dict[str, Any]:
        """Return the outcome as JSON."""
        return {**vars(self), "paths": list(self.paths)}


def replay(server: Served, example: Example) -> Outcome:
    """Replay one example."""
    example = _with_instances(example)
    cloud = server.empty()
    target = parse_arm_path(tuple(example.path.strip("/").split("/")), cloud.resource_types)
    kind = _type_of(target)
    refused = ""
    if not _is_modelled(cloud, target, example.method):
        return Outcome(example.file, example.operation, kind, NOT_MODELLED)
    try:
        cloud, refused = _prepare(server, cloud, example, target)
    except (AzureError, RuntimeError) as error:
        refused = str(error)
    server.finish_clock()
    answer = server.call(example.method, example.target, example.body, _etag(server, example))
    outcome = Outcome(
        example.file, example.operation, kind, MATCHED, answer.status, answer.code, answer.message[:300], presupposition=refused[:300]
    )
    if answer.code in NOT_MODELLED_CODES:
        return replace(outcome, category=NOT_MODELLED)
    if answer.status not in example.statuses:
        return replace(outcome, category=REFUSED if answer.code else WRONG_STATUS)
    try:
        final = _final(server, example, answer)
    except RuntimeError as error:
        return replace(outcome, category=REFUSED, message=str(error))
    if final.code:
        return replace(outcome, category=REFUSED, status=final.status, code=final.code, message=final.message[:300])
    if example.answer is None:
        return outcome
    return _compared(outcome, example, final.body if final.body is not None else answer.body)


def _compared(outcome: Outcome, example: Example, body: Any) -> Outcome:
    missing = tuple(missing_properties(example.answer, body or {}))
    if missing:
        unsent = example.method in ("PUT", "PATCH") and not any(
            path.endswith(")") or is_read_only(outcome.type, path) or is_sent(example.body, path) for path in missing
        )
        return replace(outcome, category=NOT_SENT if unsent else MISSING, paths=missing)
    different = tuple(differing_values(example.body, example.answer, body)) if example.method in ("PUT", "PATCH") else ()
    return replace(outcome, category=DIFFERENT, paths=different) if different else outcome


def _final(server: Served, example: Example, answer: Answer) -> Answer:
    """Return the answer after the operation has ended, as the client's poller does."""
    operation, location = answer.headers.get("azure-asyncoperation"), answer.headers.get("location")
    if not operation and not location:
        return answer
    server.finish()
    if operation:
        status = server.call("GET", operation)
        if status.body and status.body.get("status") not in ("Succeeded", None):
            return status
    if example.method in ("PUT", "PATCH"):
        return server.call("GET", example.target)
    return server.call("GET", location) if location and example.method == "POST" else Answer(200, {}, None)


def _etag(server: Served, example: Example) -> str:
    """Return the present etag of the target, if the example's request has one."""
    return server.call("GET", example.target).headers.get("etag", "") if example.if_match else ""


def _type_of(target: ArmPath | None) -> str:
    match target:
        case ResourcePath(arm_id, _):
            return arm_id.type
        case ListPath(_, resource_type):
            return resource_type
        case _:
            return "Microsoft.Resources/subscriptions"


def _is_modelled(cloud: Cloud, target: ArmPath | None, method: str) -> bool:
    """Return whether the model has a path; it answers a request of another one with an error."""
    if target is None:
        return False
    resource_type = _type_of(target).lower()
    if isinstance(target, ListPath):
        return not target.type or resource_type in cloud.resource_types
    if not isinstance(target, ResourcePath):
        return True
    kind = cloud.resource_types.get(resource_type)
    if kind is None or not target.tail:
        return kind is not None
    if kind.virtual:
        return method == "POST" or target.tail.lower() == "instanceview"
    return target.tail.lower() in (kind.actions if method == "POST" else kind.gets)


def _with_instances(example: Example) -> Example:
    """Return an example with instance 0 in place of invented instance ids."""
    path = _INSTANCE.sub(lambda found: found[1] + (found[2] if found[2] in ("0", "1", "2") else "0"), example.path)
    body = deepcopy(example.body)
    if body and isinstance(body.get("instanceIds"), list):
        body["instanceIds"] = [str(number) for number, _ in enumerate(body["instanceIds"])]
    return replace(example, path=path, body=body)


def _prepare(server: Served, cloud: Cloud, example: Example, target: ArmPath | None) -> tuple[Cloud, str]:
    """Create what an example presupposes; return the model, and the refusal of the target's state if it could not be created."""
    match target:
        case ResourcePath(arm_id, _) if example.method == "PUT":
            made = _presupposed(cloud, example)
            if arm_id.group and arm_id.type != "Microsoft.Resources/resourceGroups":
                made.create(arm_id.group_id)
            if arm_id.parent:
                made.create(arm_id.parent)
            elif "/providers/" in arm_id.scope.lower():
                made.create(arm_id.scope)
            made.create_references(example.body, arm_id.text)
            _create_named_subnets(made, arm_id, example)
            if cloud.resource_types[arm_id.type.lower()].virtual:
                made.create(arm_id.text)
            return cloud, ""
        case ResourcePath(arm_id, _):
            shown = example.answer if example.method in ("GET", "PATCH") and not target.tail else None
            cloud, refused = _create_shown(server, cloud, example, arm_id.text, arm_id.type, shown)
            made = _presupposed(cloud, example)
            made.create_references(example.body, arm_id.text)
            walk(shown, lambda text: made.create_user(text, arm_id) if text.lower().startswith("/subscriptions/") else None)
            _reach_state(made, target)
            return cloud, refused
        case ListPath(scope, resource_type):
            made = _presupposed(cloud, example)
            if scope and "/resourcegroups/" in scope.lower():
                made.create(scope)
            return _create_items(server, cloud, example, scope, resource_type)
        case _:
            return cloud, ""


def _presupposed(cloud: Cloud, example: Example) -> Presupposed:
    """Return the creator of resources for an example: in the location of its body, with the names of its URL."""
    body = example.body if (example.body or {}).get("location") else example.answer or {}
    body = body or {}
    listed = (example.answer or {}).get("value")
    first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else {}
    location = str(body.get("location") or first.get("location") or "")
    low = example.path.lower()
    made = Presupposed(
        cloud,
        rolling="rollingupgrade" in low,
        spot="/simulateeviction" in low,
        delegated="/inboundendpoints" in low,
        peered="/virtualnetworkpeerings" in low,
        addresses=_static_addresses([example.body, example.answer if example.method != "PUT" else None]),
    )
    if location and location.lower() != "global":
        made.location = location
    if made.delegated:
        inner = ((example.body or example.answer or {}).get("properties") or {}).get("ipConfigurations") or [{}]
        made.network = str((inner[0].get("subnet") or {}).get("id") or "").partition("/subnets/")[0]
    if "/capacityreservations/" in low:
        made.zones = tuple(str(zone) for zone in body.get("zones") or ())
        if made.zones and location_key(made.location) not in ZONAL_LOCATIONS:
            made.location = LOCATION
    if "/virtualnetworkgateways/" in low and location_key(made.location) in ZONAL_LOCATIONS:
        made.zones = ("1", "2", "3")
    parts = example.path.split("/")
    lowered = [part.lower() for part in parts]
    if SETS.rpartition("/")[2] in lowered:
        names = {key: parts[at + 1] for at, key in enumerate(lowered[:-1])}
        made.interface = names.get("networkinterfaces", made.interface)
        made.configuration = names.get("ipconfigurations", made.configuration)
    return made


def _create_named_subnets(made: Presupposed, arm_id: ArmId, example: Example) -> None:
    """Create the subnets that a peering names, in both networks."""
    inner = (example.body or example.answer or {}).get("properties") or {}
    networks = {"localSubnetNames": arm_id.parent, "remoteSubnetNames": (inner.get("remoteVirtualNetwork") or {}).get("id")}
    for field, network in networks.items():
        for name in inner.get(field) or () if network else ():
            made.create(f"{network}/subnets/{name}")


def _static_addresses(value: Any) -> dict[str, str]:
    """Return the private IPv4 addresses of a body by the lower-case id of their subnet."""
    found: dict[str, str] = {}
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack.extend(one)
        elif isinstance(one, dict):
            stack.extend(one.values())
            subnet, address = one.get("subnet"), one.get("privateIPAddress") or one.get("privateIpAddress")
            if subnet and not address and one.get("ipConfigurations"):
                # A private endpoint has its subnet beside the list.
                address = (one["ipConfigurations"][0].get("properties") or {}).get("privateIPAddress")
            if isinstance(subnet, dict) and subnet.get("id") and _is_address(address):
                found.setdefault(str(subnet["id"]).lower(), str(address))
    return found


def _is_address(text: object) -> bool:
    try:
        return not IPv4Address(str(text)).is_reserved
    except ValueError:
        return False


def _create_items(server: Served, cloud: Cloud, example: Example, scope: str, resource_type: str) -> tuple[Cloud, str]:
    """Create the resources that a list shows, below the scope of the list."""
    refused = ""
    for item in (example.answer or {}).get("value") or ():
        name = str(item.get("name") or "presupposed").rpartition("/")[2]
        text = (
            f"{scope}/{resource_type.rpartition('/')[2]}/{name}"
            if "/providers/" in scope.lower()
            else _text(item, scope, resource_type, name)
        )
        cloud, problem = _create_shown(server, cloud, example, text, resource_type, item, keep=True)
        refused = refused or problem
    return cloud, refused


def _text(item: Mapping[str, Any], scope: str, resource_type: str, name: str) -> str:
    """Return the id of a listed resource: its own, if that is below the scope."""
    if resource_type == "Microsoft.Resources/resourceGroups":
        return f"{scope}/resourceGroups/{name}"
    try:
        own = parse(str(item.get("id", "")))
    except AzureError:
        own = None
    if own is not None and own.type.lower() == resource_type.lower() and own.key.startswith(f"{scope.lower()}/") and own.group:
        return own.text
    group = scope if "/resourcegroups/" in scope.lower() else f"{scope}/resourceGroups/listed"
    return f"{group}/providers/{resource_type}/{name}"


def _create_shown(
    server: Served, cloud: Cloud, example: Example, text: str, resource_type: str, shown: Json | None, *, keep: bool = False
) -> tuple[Cloud, str]:
    """Create a resource with the properties that the example's answer shows, as many as are accepted; return the first refusal."""
    made = _presupposed(cloud, example)
    arm_id = parse(text)
    if resource_type.lower().endswith("/virtualnetworkpeerings"):
        _create_named_subnets(made, arm_id, replace(example, body=shown))
    full = _with_password(sendable(resource_type, shown)) if shown else {}
    if resource_type.lower() in WITHOUT_PUT:
        if arm_id.parent and arm_id.group:
            made.create(arm_id.parent)
        return cloud, ""
    if not full or cloud.resource_types[resource_type.lower()].virtual:
        refused = made.create(text)
        return cloud, str(refused) if refused else ""
    smallest = made.smallest(arm_id)
    # A PUT of a resource that an item of the list has already created changes it.
    first = _try(made, text, _merged(smallest, full, list(grown(smallest, full))))
    if first is None or keep:
        if first is not None:
            _try(Presupposed(cloud, made.location), text, smallest)
        return cloud, str(first or "")
    accepted: list[tuple[str, str]] = []
    # A second time, because a property can refer to a later one.
    for step in [*grown(smallest, full)] * 2:
        cloud = server.empty()
        if step not in accepted and _try(_presupposed(cloud, example), text, _merged(smallest, full, [*accepted, step])) is None:
            accepted.append(step)
    cloud = server.empty()
    _try(_presupposed(cloud, example), text, _merged(smallest, full, accepted))
    return cloud, str(first)


def _reach_state(made: Presupposed, target: ResourcePath) -> None:
    """Bring the target into the state that an operation presupposes, beyond its existence."""
    arm_id, cloud = target.id, made.cloud
    kind, tail = arm_id.type.lower(), target.tail.lower()
    if kind == "microsoft.keyvault/locations/deletedvaults":
        vault = parse(f"/subscriptions/{arm_id.subscription}/resourceGroups/deleted/providers/Microsoft.KeyVault/vaults/{arm_id.name}")
        made.location = arm_id.names[0]
        made.create(vault.text)
        cloud.handle(Request("DELETE", vault))
        cloud.run_until_idle()
    elif (kind, tail) == ("microsoft.storage/storageaccounts/blobservices/containers/immutabilitypolicies", "extend"):
        cloud.handle(Request("POST", arm_id, "lock", if_match=etag(cloud.get(arm_id.text))))
    elif (kind, tail) == ("microsoft.virtualmachineimages/imagetemplates", "cancel"):
        cloud.handle(Request("POST", arm_id, "run"))
    elif (kind, tail) == ("microsoft.compute/virtualmachines", "generalize"):
        cloud.handle(Request("POST", arm_id, "powerOff"))
        cloud.run_until_idle()
    elif kind == "microsoft.virtualmachineimages/imagetemplates/runoutputs":
        template = cloud.get(arm_id.parent or "")
        template.sent["properties"]["distribute"][0]["runOutputName"] = arm_id.name
        cloud.handle(Request("PUT", template.id, body=template.sent))
        cloud.run_until_idle()
        cloud.handle(Request("POST", template.id, "run"))
        cloud.run_until_idle()
    elif kind == f"{SETS}/rollingupgrades":
        scale_set = cloud.get(arm_id.parent or "")
        body = deepcopy(scale_set.sent)
        body["properties"]["virtualMachineProfile"]["osProfile"]["customData"] = "IyEvYmluL3NoCg=="
        # The machines have booted and are healthy.
        cloud.advance(cloud.now + BOOTED_SECONDS)
        cloud.handle(Request("PUT", scale_set.id, body=body))
        if tail == "cancel" or arm_id.name.lower() == "cancel":
            cloud.advance(cloud.now + UPGRADE_BEGUN_SECONDS)
        else:
            cloud.run_until_idle()


def _with_password(body: Json) -> Json:
    """Return the body of a machine or a scale set with a password, which no answer shows."""
    inner = body.get("properties") or {}
    profile = (inner.get("virtualMachineProfile") or inner).get("osProfile")
    if isinstance(profile, dict):
        profile.setdefault("adminPassword", STAND_INS["adminpassword"])
    return body


def _merged(smallest: Json, full: Json, steps: list[tuple[str, str]]) -> Json:
    """Return the smallest body with some properties of the full one."""
    body = deepcopy(smallest)
    for section, name in steps:
        held, source = (body.setdefault(section, {}), full[section]) if section else (body, full)
        held[name] = deepcopy(source[name])
    return body


def _try(made: Presupposed, text: str, body: Json) -> AzureError | None:
    try:
        return made.create(text, body)
    except RuntimeError as error:
        return AzureError(409, "Unfinished", str(error))
