"""State of a scale set: its instances, model versions, and the addresses of each ipConfiguration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, cast

from rehearsal.azure.compute.machine import DELETING, Machine
from rehearsal.azure.compute.profile_defaults import LINUX, is_ephemeral
from rehearsal.azure.resource import Json, Resource

BASE36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
COMPUTER_NAME_DIGITS = 6
PLACEMENT_GROUP_MACHINES = 100
"""Machines of one placement group:
https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-placement-groups
"""


@dataclass(frozen=True, slots=True)
class ModelIpConfiguration:
    """One ipConfiguration of a model: names of the NIC and of itself, primary flags of both, its subnet's id.

    public is the name of its public address, empty without one.
    """

    nic: str
    nic_primary: bool
    name: str
    primary: bool
    subnet: str
    public: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """One version of a scale set's model. profile is virtualMachineProfile as it was sent, with secrets.

    ip_configurations are its ipConfigurations, in the profile's order. shown contains what answers about all its instances have in
    common, once it is computed; it is no part of the model.
    """

    size: str
    profile: Json
    rest: Json
    ip_configurations: tuple[ModelIpConfiguration, ...]
    shown: Json = field(default_factory=dict, compare=False, repr=False)

    @property
    def spot(self) -> bool:
        return self.profile.get("priority") in ("Spot", "SpotPlus", "Low")

    @property
    def public_addresses(self) -> int:
        """Return the number of public addresses of each machine."""
        return sum(1 for item in self.ip_configurations if item.public)

    @property
    def ephemeral(self) -> bool:
        return is_ephemeral((self.profile.get("storageProfile") or {}).get("osDisk") or {})

    @property
    def image(self) -> Json:
        return dict((self.profile.get("storageProfile") or {}).get("imageReference") or {})

    @property
    def os_type(self) -> str:
        return str(self.rest.get("osType", LINUX))

    @property
    def reservation(self) -> str:
        """Return the id of the capacity reservation group that its machines use, empty without one."""
        group = ((self.profile.get("capacityReservation") or {}).get("capacityReservationGroup") or {}).get("id")
        return str(group or "")


@dataclass(slots=True)
class Instance(Machine):
    """One instance: id, creation time, model version, model version of its OS disk, zone, fault domain.

    addresses are IPv4 addresses as integers, in its model's order; public are the public ones of ipConfigurations that have one.
    charged is True if it counts against quota, which machines of overprovisioning do not. health is the report of its application, ""
    without one. repairs counts the automatic repairs since it was last healthy. notice is the id of the scheduled event that it waits
    for. image is the exact version of its OS disk's image, "" without one. owes is True if its removal requires a replacement.
    """

    id: int = 0
    created: float = 0.0
    model: int = 0
    os_model: int = 0
    zone: str = ""
    fault_domain: int = 0
    addresses: tuple[int, ...] = ()
    charged: bool = True
    health: str = ""
    repairs: int = 0
    notice: str = ""
    image: str = ""
    owes: bool = False
    protect_from_scale_in: bool = False
    protect_from_actions: bool = False
    tags: Json | None = None
    public: tuple[int, ...] = ()

    @property
    def going(self) -> bool:
        """Return whether it is being deleted, and so does not count for the capacity."""
        return self.state == DELETING


@dataclass(slots=True)
class SetState:
    """State of a scale set beside its body: instances by id, model versions by number, and the number of the present model.

    born is the set's uniqueId; put is the latest PUT's operation. turns counts the tasks of its instances, from a number that no
    earlier set of the same name had. spare is True while overprovisioning creates machines without charge; active counts running
    operations other than PUT and DELETE. rolling is the latest rolling upgrade. suspended is True while automatic repairs are
    suspended, and sweep is the time of their next check, 0 without one.
    """

    born: str = ""
    instances: dict[str, Instance] = field(default_factory=dict)
    models: dict[int, Model] = field(default_factory=dict)
    model: int = 0
    put: str = ""
    next_id: int = 0
    turns: int = 0
    spare: bool = False
    active: int = 0
    rolling: Json | None = None
    suspended: bool = False
    sweep: float = 0.0

    def living(self) -> list[Instance]:
        """Return the instances that are not being deleted, by id."""
        return [one for one in self.instances.values() if not one.going]

    def counted(self) -> list[Instance]:
        """Return those that count for the capacity: without the surplus of overprovisioning."""
        return [one for one in self.instances.values() if one.charged and not one.going]


def new_rolling(operation: str, now: float) -> Json:
    """Return the state of a rolling upgrade at its start, as plain JSON.

    pending, batch and upgraded are instance ids; failed has the error of each failed instance, and former each instance's model version
    before the upgrade. until is the time by which the present batch must be healthy, 0 before it is up. closing is the code with which
    the upgrade ends after its present tasks, and cancel the operation of the cancellation. step identifies the planned event.
    """
    return {
        "operation": operation,
        "running": True,
        "code": "RollingForward",
        "step": 0,
        "pending": [],
        "reimage": [],
        "batch": [],
        "upgraded": [],
        "failed": {},
        "former": {},
        "until": 0.0,
        "closing": "",
        "cancel": "",
        "started": now,
        "ended": now,
    }


def state_of(resource: Resource) -> SetState:
    """Return the state of a scale set."""
    return cast("SetState", resource.state)


def name_of(resource: Resource, one: Instance) -> str:
    """Return the name of an instance as Azure writes it."""
    return f"{resource.id.name}_{one.id}"


def instances_of(resource: Resource) -> Mapping[str, Instance]:
    """Return a scale set's instances by instance id, including those being deleted."""
    return state_of(resource).instances


def addresses_of(resource: Resource) -> Iterator[tuple[str, str, str, int]]:
    """Yield every address of a scale set's machines: instance id, NIC name, ipConfiguration name, IPv4 address as an integer."""
    state = state_of(resource)
    for key, one in state.instances.items():
        for item, address in zip(state.models[one.model].ip_configurations, one.addresses, strict=True):
            yield key, item.nic, item.name, address


def computer_name(model: Model, set_name: str, number: int) -> str:
    """Return the host name that Azure assigns to an instance: the prefix and the instance id in base 36.

    https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-instance-ids
    """
    prefix = (model.profile.get("osProfile") or {}).get("computerNamePrefix") or set_name
    return f"{prefix}{base36(number)}"


@lru_cache(maxsize=4_096)
def base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = BASE36[digit] + digits
    return digits.rjust(COMPUTER_NAME_DIGITS, "0")


def model_of(body: Json, os_type: str = LINUX) -> Model:
    """Return the model that a scale set's body describes, of an operating system."""
    properties = body.get("properties") or {}
    profile = properties.get("virtualMachineProfile") or {}
    rest = {
        "identity": body.get("identity"),
        "plan": body.get("plan"),
        "tier": (body.get("sku") or {}).get("tier", "Standard"),
        "proximityPlacementGroup": properties.get("proximityPlacementGroup"),
        "additionalCapabilities": properties.get("additionalCapabilities"),
    }
    if os_type != LINUX:
        rest["osType"] = os_type
    return Model(str(body["sku"]["name"]), profile, rest, tuple(_ip_configurations(profile)))


def _ip_configurations(profile: Json) -> Iterator[ModelIpConfiguration]:
    nics = (profile.get("networkProfile") or {}).get("networkInterfaceConfigurations") or []
    for nic in nics:
        inner = nic.get("properties") or {}
        configurations = inner.get("ipConfigurations") or []
        for one in configurations:
            settings = one.get("properties") or {}
            yield ModelIpConfiguration(
                str(nic.get("name")),
                bool(inner.get("primary", len(nics) == 1)),
                str(one.get("name")),
                bool(settings.get("primary", len(configurations) == 1)),
                str((settings.get("subnet") or {}).get("id", "")),
                str((settings.get("publicIPAddressConfiguration") or {}).get("name") or ""),
            )


_FIELDS = tuple(one.name for one in fields(Instance))
_KEPT = tuple(one.name for one in fields(SetState) if one.name not in ("instances", "models"))


def dump(state: SetState) -> Json:
    """Return a scale set's state as plain JSON."""
    return {
        **{name: getattr(state, name) for name in _KEPT},
        "models": [[number, one.size, one.profile, one.rest] for number, one in state.models.items()],
        "fields": list(_FIELDS),
        "instances": [[getattr(one, name) for name in _FIELDS] for one in state.instances.values()],
    }


def load(data: Json) -> SetState:
    """Return the state from the output of dump."""
    state = SetState(**{name: data[name] for name in _KEPT})
    for number, size, profile, rest in data["models"]:
        state.models[number] = Model(size, profile, rest, tuple(_ip_configurations(profile)))
    for row in data["instances"]:
        values: dict[str, Any] = dict(zip(data["fields"], row, strict=True))
        values["addresses"], values["public"] = tuple(values["addresses"]), tuple(values.get("public", ()))
        state.instances[str(values["id"])] = Instance(**values)
    if state.rolling is not None and "pending" not in state.rolling:
        state.rolling = _earlier_rolling(state, state.rolling)
    return state


def _earlier_rolling(state: SetState, rolling: Json) -> Json:
    """Return a rolling upgrade of an earlier version's state, which had fewer fields, with the instances that it has not yet updated."""
    behind = [number for number, one in state.instances.items() if one.model != state.model] if rolling["running"] else []
    return {**new_rolling(rolling["operation"], rolling["started"]), "pending": behind, **rolling}
