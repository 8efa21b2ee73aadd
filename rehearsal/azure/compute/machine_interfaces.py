"""Network interfaces that a virtual machine creates itself, from networkInterfaceConfigurations of its PUT.

https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update#virtualmachinenetworkinterfaceconfiguration
"""

from __future__ import annotations

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.references import references
from rehearsal.azure.resource import SUCCEEDED, Json, Resource
from rehearsal.azure.validation import value_at

INTERFACE, ADDRESS = "Microsoft.Network/networkInterfaces", "Microsoft.Network/publicIPAddresses"
_OF_INTERFACE = ("dnsSettings", "enableAcceleratedNetworking", "enableIPForwarding", "networkSecurityGroup", "disableTcpStateTracking")
_OF_CONFIGURATION = ("loadBalancerBackendAddressPools", "applicationSecurityGroups", "primary", "privateIPAddressVersion", "subnet")
_OF_ADDRESS = ("dnsSettings", "idleTimeoutInMinutes", "ipTags", "publicIPAddressVersion", "publicIPPrefix")


def interface_configurations(body: Json) -> list[Json]:
    """Return the configurations of interfaces in the body of a virtual machine."""
    return value_at(body, "properties.networkProfile.networkInterfaceConfigurations") or []


def check_configurations(body: Json) -> None:
    """Refuse configurations beside existing interfaces, without networkApiVersion, or without names of their own."""
    given = interface_configurations(body)
    profile = value_at(body, "properties.networkProfile") or {}
    if not given:
        return
    if profile.get("networkInterfaces"):
        message = "networkInterfaces and networkInterfaceConfigurations cannot both be given; give one of them."
        raise invalid(message, "networkProfile.networkInterfaceConfigurations")
    if not profile.get("networkApiVersion"):
        message = "Required parameter 'networkApiVersion' is missing (null); networkInterfaceConfigurations need it."
        raise invalid(message, "networkProfile.networkApiVersion")
    names = [str(one.get("name") or "").lower() for one in given]
    if "" in names or len(set(names)) != len(names):
        raise invalid(
            f"The networkInterfaceConfigurations have the names {names}; each needs one of its own.", "networkInterfaceConfigurations"
        )
    for one in given:
        if not (one.get("properties") or {}).get("ipConfigurations"):
            raise invalid(f"The networkInterfaceConfiguration '{one['name']}' has no ipConfigurations.", "ipConfigurations")


def network_profile(body: Json, previous: Resource | None) -> Json:
    """Return the networkProfile of a machine: with the interfaces that it has if the body describes them anew."""
    given = value_at(body, "properties.networkProfile") or {}
    return dict(previous.properties["networkProfile"]) if previous is not None and interface_configurations(body) else given


def create_interfaces(cloud: Cloud, machine: Resource) -> list[Resource]:
    """Create the interfaces and public addresses of a new virtual machine and refer to them: all, or AzureError and none."""
    made: list[Resource] = []
    given = interface_configurations(machine.sent)
    if not given:
        return made
    links = []
    try:
        for one in given:
            inner = one["properties"]
            nic = _create(cloud, machine, INTERFACE, str(one["name"]), _interface_body(cloud, machine, one, made))
            made.append(nic)
            options = {name: inner[name] for name in ("deleteOption",) if name in inner}
            links.append({"id": nic.id.text, "properties": {"primary": bool(inner.get("primary", len(given) == 1)), **options}})
    except AzureError:
        remove_interfaces(cloud, made)
        raise
    machine.properties["networkProfile"] = {"networkInterfaces": links}
    cloud.index.add(machine.id, references(machine.body, machine.key))
    return made


def remove_interfaces(cloud: Cloud, made: list[Resource]) -> None:
    """Remove what create_interfaces created, the newest first."""
    for one in reversed(made):
        cloud.remove(one)


def _interface_body(cloud: Cloud, machine: Resource, one: Json, made: list[Resource]) -> Json:
    inner = one["properties"]
    configurations = []
    for item in inner["ipConfigurations"]:
        settings = item.get("properties") or {}
        properties = {name: settings[name] for name in _OF_CONFIGURATION if name in settings}
        if public := settings.get("publicIPAddressConfiguration"):
            address = _create(cloud, machine, ADDRESS, str(public["name"]), _address_body(machine, public))
            made.append(address)
            option = (public.get("properties") or {}).get("deleteOption")
            properties["publicIPAddress"] = {"id": address.id.text, **({"properties": {"deleteOption": option}} if option else {})}
        configurations.append({"name": item["name"], "properties": properties})
    own = {name: inner[name] for name in _OF_INTERFACE if name in inner}
    tags = {"tags": one["tags"]} if one.get("tags") else {}
    return {"location": machine.body["location"], **tags, "properties": {**own, "ipConfigurations": configurations}}


def _address_body(machine: Resource, public: Json) -> Json:
    inner = public.get("properties") or {}
    body: Json = {
        "location": machine.body["location"],
        "sku": {"name": "Standard", **(public.get("sku") or {})},
        "properties": {"publicIPAllocationMethod": "Static", **{name: inner[name] for name in _OF_ADDRESS if name in inner}},
    }
    for name, value in (("tags", public.get("tags")), ("zones", machine.body.get("zones"))):
        if value:
            body[name] = value
    return body


def _create(cloud: Cloud, machine: Resource, kind_name: str, name: str, body: Json) -> Resource:
    """Create a resource beside the machine; its name gets a suffix, because a configuration's name is not unique in the group."""
    suffix = cloud.stable_uuid(kind_name, machine.key, name)[:8]
    arm_id: ArmId = parse(f"{machine.id.group_id}/providers/{kind_name}/{name}-{suffix}")
    kind = cloud.resource_types[kind_name.lower()]
    if kind_name == INTERFACE and any("subnet" in item["properties"] for item in body["properties"]["ipConfigurations"]):
        # An interface without a subnet has no address; Microsoft's examples of a virtual machine create one.
        kind.check(cloud, arm_id, body, None)
    resource = cloud.insert(arm_id, kind.complete(cloud, arm_id, body, None), machine.owner, sent=body)
    try:
        kind.accepted(cloud, resource, None)
    except AzureError:
        del cloud.resources[resource.key]
        cloud.index.remove(resource.id)
        raise
    cloud.set_provisioning_state(resource, SUCCEEDED)
    return resource
