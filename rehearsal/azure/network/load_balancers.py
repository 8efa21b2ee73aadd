"""Load balancers: frontends, pools, probes and rules, the members of backend pools, and the members that answer a probe.

https://learn.microsoft.com/rest/api/load-balancer/load-balancers,
https://learn.microsoft.com/azure/load-balancer/backend-pool-management,
https://learn.microsoft.com/azure/load-balancer/load-balancer-custom-probe-overview. Error codes are those of
https://learn.microsoft.com/azure/load-balancer/load-balancer-troubleshoot-deployment-errors, or marked as assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import Model, state_of
from rehearsal.azure.compute.machine import RUNNING, Machine
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.network.ip_configurations import AddressHolder, allocated_addresses, check_public_address_free
from rehearsal.azure.network.network_resource_type import id_of, list_of, properties_of, users_by_type
from rehearsal.azure.network.subnets import INTERFACES
from rehearsal.azure.resource import Json, Resource

FRONTENDS, POOLS, PROBES, RULES = "frontendIPConfigurations", "backendAddressPools", "probes", "loadBalancingRules"
MAX_ITEMS = {FRONTENDS: 600, RULES: 1_500}
"""https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#load-balancer"""
IDLE_MINUTES = 4
"""Idle timeout of a rule by default: https://learn.microsoft.com/azure/load-balancer/load-balancer-tcp-idle-timeout"""
SCALE_SETS, LINKS = "microsoft.compute/virtualmachinescalesets", "microsoft.network/privatelinkservices"

RULE_REFERENCES = {"frontendIPConfiguration": FRONTENDS, "backendAddressPool": POOLS, "probe": PROBES}
"""Fields of a rule that name another item of the load balancer, and the list that contains the item."""
NAMING_ITEMS = (RULES, "inboundNatRules", "inboundNatPools", "outboundRules")
"""Lists of items that name other items."""
NAMED_BY: Mapping[str, str] = {
    **RULE_REFERENCES,
    "frontendIPConfigurations": FRONTENDS,
    "backendAddressPools": POOLS,
}
"""Fields with which an item names others, one or a list of them, and the list that contains these."""
ITEM_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    FRONTENDS: {"privateIPAllocationMethod": "Dynamic", "privateIPAddressVersion": "IPv4"},
    RULES: {
        "enableFloatingIP": False,
        "enableTcpReset": False,
        "idleTimeoutInMinutes": IDLE_MINUTES,
        "loadDistribution": "Default",
        "disableOutboundSnat": False,
    },
    PROBES: {"intervalInSeconds": 15, "probeThreshold": 1, "numberOfProbes": 1},
    "inboundNatRules": {"enableFloatingIP": False, "enableTcpReset": False, "idleTimeoutInMinutes": IDLE_MINUTES},
    "inboundNatPools": {"enableFloatingIP": False, "enableTcpReset": False, "idleTimeoutInMinutes": IDLE_MINUTES},
    "outboundRules": {"allocatedOutboundPorts": 0, "enableTcpReset": False, "idleTimeoutInMinutes": IDLE_MINUTES},
}
"""Defaults of items by list: https://learn.microsoft.com/rest/api/load-balancer/load-balancers/create-or-update"""


class LoadBalancer(AddressHolder):
    """A Standard load balancer.

    Not modelled: Basic load balancers (retired), pools by address, outbound and inbound NAT rules except their names, packets.
    """

    type = "Microsoft.Network/loadBalancers"
    noun = "Load balancer"
    in_use_code = "InUseLoadBalancerCannotBeDeleted"
    codes_by_user: Mapping[str, str] = {
        SCALE_SETS: "LoadBalancerInUseByVirtualMachineScaleSet",
        LINKS: "CannotDeleteLoadBalancerWithPrivateLinkService",
    }
    put_duration = "load_balancer.put"
    configurations = FRONTENDS
    items = (FRONTENDS, POOLS, PROBES, RULES, "inboundNatRules", "inboundNatPools", "outboundRules")
    defaults: Mapping[str, Any] = {name: [] for name in items}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a body whose rules collide or name items of another load balancer, or that leaves out an item in use."""
        super().check(cloud, arm_id, body, previous)
        if (body.get("sku") or {}).get("name") not in ("Standard", "Gateway"):
            raise invalid(f"Load balancer {arm_id.text} needs sku Standard; Basic has been retired.", "sku.name", "BasicSkuNotSupported")
        for name, most in MAX_ITEMS.items():
            if len(found := list_of(body, name)) > most:
                # Azure publishes the bound; the code is assumed.
                message = f"Load balancer {arm_id.text} would have {len(found)} {name}, of at most {most}."
                raise invalid(message, name, "LoadBalancerItemCountLimitReached")
        if not list_of(body, FRONTENDS) and any(list_of(body, name) for name in self.items):
            message = f"Load balancer {arm_id.text} has no frontend IP configuration and cannot have child resources."
            raise invalid(message, arm_id.text, "LoadBalancerWithoutFrontendIPCantHaveChildResources")
        for item in list_of(body, FRONTENDS):
            _check_frontend(cloud, arm_id, item)
        for item in list_of(body, PROBES):
            _check_probe(arm_id, item)
        self._check_rules(arm_id, body)
        if previous is not None:
            _check_items_stay(cloud, previous, body, self.items)

    def _check_rules(self, arm_id: ArmId, body: Json) -> None:
        known = {f"{arm_id.key}/{name}/{item['name']}".lower() for name in (FRONTENDS, POOLS, PROBES) for item in list_of(body, name)}
        ports: dict[tuple[str, str, int], str] = {}
        pools: dict[tuple[str, str, int], str] = {}
        for rule in list_of(body, RULES):
            inner, name = properties_of(rule), str(rule["name"])
            for field in RULE_REFERENCES:
                target = id_of(inner.get(field))
                if target and target.lower() not in known:
                    raise self.missing_reference_error(arm_id, target)
            if not id_of(inner.get("frontendIPConfiguration")):
                raise invalid(f"Load balancing rule {name} of {arm_id.text} has no frontendIPConfiguration.", name, "InvalidRequestFormat")
            protocol = str(inner.get("protocol", "")).lower()
            front = (id_of(inner["frontendIPConfiguration"]).lower(), protocol, int(inner["frontendPort"]))
            _check_free(ports, front, name, "RulesUseSameFrontendPortProtocolAndIPConfig", "frontend IP configuration, port and protocol")
            if not inner.get("enableFloatingIP"):
                back = (id_of(inner.get("backendAddressPool")).lower(), protocol, int(inner["backendPort"]))
                _check_free(pools, back, name, "RulesUseSameBackendPortProtocolAndPool", "backend pool, port and protocol")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults, and to every item the rules that name it."""
        whole = super().complete(cloud, arm_id, body, previous)
        whole["sku"].setdefault("tier", "Regional")
        inner: Json = whole["properties"]
        for name, usual in ITEM_DEFAULTS.items():
            for item in inner[name]:
                item["properties"] = {**usual, **item["properties"]}
        named = _users_of_items(inner)
        for item in (one for name in (FRONTENDS, POOLS, PROBES) for one in inner[name]):
            item["properties"] |= {name: [{"id": one} for one in users] for name, users in named.get(item["id"].lower(), {}).items()}
        return whole


def _users_of_items(properties: Json) -> dict[str, dict[str, list[str]]]:
    """Return the ids of the items that name an item, by the lower-case id of the named item and by the list of the naming ones."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in NAMING_ITEMS:
        for item in properties[name]:
            values = (item["properties"].get(field) for field in NAMED_BY)
            targets = [id_of(one) for value in values for one in (value if isinstance(value, list) else [value])]
            for target in dict.fromkeys(one.lower() for one in targets if one):
                found.setdefault(target, {}).setdefault(name, []).append(item["id"])
    return found


def _check_frontend(cloud: Cloud, arm_id: ArmId, item: Json) -> None:
    inner = properties_of(item)
    public, subnet, prefix = (id_of(inner.get(name)) for name in ("publicIPAddress", "subnet", "publicIPPrefix"))
    if sum(1 for one in (public, subnet, prefix) if one) != 1:
        message = f"Frontend {item['name']} of load balancer {arm_id.text} must name one of subnet, publicIPAddress and publicIPPrefix."
        raise invalid(message, str(item["name"]), "LoadBalancerFrontendIPConfigMustReferenceSubnetOrPublicIP")
    if not subnet and item.get("zones"):
        message = f"Frontend {item['name']} of {arm_id.text} cannot have zones: those of its public address hold."
        raise invalid(message, str(item["name"]), "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress")
    check_public_address_free(cloud, arm_id, public)


def _check_probe(arm_id: ArmId, item: Json) -> None:
    inner, name = properties_of(item), str(item["name"])
    protocol = str(inner.get("protocol", "")).lower()
    if protocol not in ("tcp", "http", "https"):
        message = f"Probe {name} of load balancer {arm_id.text} has protocol {inner.get('protocol')}, none of Tcp, Http, Https."
        raise invalid(message, name, "InvalidLoadBalancerProbe")


def _check_free(taken: dict[tuple[str, str, int], str], key: tuple[str, str, int], name: str, code: str, what: str) -> None:
    if key in taken:
        raise invalid(f"Load balancing rules {taken[key]} and {name} use the same {what}: {key[1]} {key[2]}.", name, code)
    taken[key] = name


def _check_items_stay(cloud: Cloud, previous: Resource, body: Json, names: Iterable[str]) -> None:
    """Refuse a body that leaves out an item in use. The code is assumed."""
    for name in names:
        requested = {str(item["name"]).lower() for item in list_of(body, name)}
        for item in list_of(previous.body, name):
            users = [cloud.resources[key].id.text for key in cloud.index.users(str(item["id"]).lower()) if key != previous.key]
            if str(item["name"]).lower() not in requested and users:
                message = f"{item['id']} is in use by {', '.join(users[:3])} and cannot be left out."
                raise AzureError(400, "InUseLoadBalancerItemCannotBeDeleted", message, target=item["id"])


MEMBERS_PER_POOL = 5_000
"""https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#load-balancer"""
HEALTHY = "Healthy"
MACHINES = "microsoft.compute/virtualmachines"


@dataclass(frozen=True, slots=True)
class BackendMember:
    """One ipConfiguration in a pool.

    The fields are: id of its interface or scale set, instance id (empty outside a scale set), names of the interface and of the
    ipConfiguration, IPv4 address as an integer, and whether its machine runs, is up and was not reported unhealthy.
    """

    owner: str
    instance: str
    interface: str
    configuration: str
    address: int
    answers: bool


def backend_members(cloud: Cloud, pool_id: str) -> Iterator[BackendMember]:
    """Yield every member of a pool, in the order in which interfaces and scale sets joined it; none for a pool that does not exist."""
    for key in cloud.index.users(pool_id.lower()):
        user = cloud.resources[key]
        kind = user.id.type.lower()
        if kind == INTERFACES:
            yield from _of_interface(cloud, user, pool_id.lower())
        elif kind == SCALE_SETS:
            yield from _of_set(cloud, user, pool_id.lower())


def probe_answers(cloud: Cloud, load_balancer: str) -> dict[str, list[BackendMember]]:
    """Return the members that receive traffic, by pool name: those that answer the probe if a rule of the pool has one, else all.

    load_balancer is an id; AzureError ResourceNotFound.
    """
    found = cloud.get(load_balancer)
    rules = [properties_of(rule) for rule in list_of(found.body, RULES)]
    probed = {id_of(rule.get("backendAddressPool")).lower() for rule in rules if id_of(rule.get("probe"))}
    return {
        str(pool["name"]): [one for one in backend_members(cloud, pool["id"]) if one.answers or pool["id"].lower() not in probed]
        for pool in list_of(found.body, POOLS)
    }


def check_pool_room(cloud: Cloud, pool_id: str, more: int) -> None:
    """Refuse more members than a pool can have. Azure publishes the limit, but not the code; this code is assumed."""
    members = sum(1 for _ in backend_members(cloud, pool_id))
    if members + more > MEMBERS_PER_POOL:
        name = parse(pool_id).name
        message = (
            f"Backend pool {name} has {members} members and would get {more} more, of at most {MEMBERS_PER_POOL}. Spread them over several "
            "load balancers."
        )
        raise invalid(message, pool_id, "LoadBalancerBackendPoolMemberCountLimitReached")


def _of_interface(cloud: Cloud, interface: Resource, pool: str) -> Iterator[BackendMember]:
    addresses = allocated_addresses(interface)
    machines = [cloud.get(one) for one in users_by_type(cloud, interface).get(MACHINES, [])]
    answers = any(_answers(cloud, one.state) for one in machines)
    for item in list_of(interface.body, "ipConfigurations"):
        name = str(item["name"])
        if _in_pool(item, pool) and name.lower() in addresses:
            yield BackendMember(interface.id.text, "", interface.id.name, name, addresses[name.lower()], answers)


def _of_set(cloud: Cloud, scale_set: Resource, pool: str) -> Iterator[BackendMember]:
    state = state_of(scale_set)
    positions = {number: _positions_in_pool(model, pool) for number, model in state.models.items()}
    for number, instance in state.instances.items():
        if instance.going or not instance.addresses:
            continue
        answers = _answers(cloud, instance) and instance.health in ("", HEALTHY)
        for position in positions[instance.model]:
            one = state.models[instance.model].ip_configurations[position]
            yield BackendMember(scale_set.id.text, number, one.nic, one.name, instance.addresses[position], answers)


def _positions_in_pool(model: Model, pool: str) -> list[int]:
    """Return the positions of a model's ipConfigurations that are in a pool."""
    interfaces = (model.profile.get("networkProfile") or {}).get("networkInterfaceConfigurations") or ()
    named = {
        (str(nic["name"]), str(item["name"])) for nic in interfaces for item in list_of(nic, "ipConfigurations") if _in_pool(item, pool)
    }
    return [number for number, one in enumerate(model.ip_configurations) if (one.nic, one.name) in named]


def _in_pool(item: Json, pool: str) -> bool:
    return any(id_of(one).lower() == pool for one in list_of(item, "loadBalancerBackendAddressPools"))


def _answers(cloud: Cloud, machine: object) -> bool:
    return isinstance(machine, Machine) and machine.power == RUNNING and bool(machine.ready) and machine.ready <= cloud.now
