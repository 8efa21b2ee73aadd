"""Reader and validation of network.json, the machine's network settings."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cni.node.errors import NodeNetworkError, shown

PATH = Path("/etc/gpufleet/network.json")
VERSION = 1
MODES = ("native", "azure-vnet")
REMEDY = "roll the machine out again from its region file"
T = TypeVar("T")


@dataclass(frozen=True)
class Shaping:
    """Shaping of a machine's internet rate: Mbit/s of the machine, minimum and maximum of a pod, weights by team, connections of a pod."""

    machine_mbit: int
    floor_mbit: int
    ceiling_mbit: int
    weights: Mapping[str, int]
    default_weight: int
    connections_per_pod: int


@dataclass(frozen=True)
class Settings:
    """network.json: networks are ADDRESS/LENGTH, IPv4 or IPv6; mtu is in bytes; planned_pods counts pods with their own address."""

    mode: str
    internal: tuple[str, ...]
    not_masqueraded: tuple[str, ...]
    service_cidr: str
    snat: bool
    mtu: int
    planned_pods: int
    host_network_pods: int
    shaping: Shaping | None

    @property
    def native(self) -> bool:
        """Return whether the stock plugins assign pods' addresses, not Microsoft's."""
        return self.mode == "native"


def read(path: Path = PATH) -> Settings:
    """Return the settings of a file; NodeNetworkError, which names the key, where it is missing or invalid."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise NodeNetworkError(str(path), error.strerror or "unreadable", "a file that the program may read", REMEDY) from None
    except (ValueError, RecursionError):
        raise NodeNetworkError(str(path), "no JSON", "an object in JSON", REMEDY) from None
    return parse(document, str(path))


def parse(document: object, where: str) -> Settings:
    """Return the settings of a JSON document; NodeNetworkError, which names `where` and the key, where it is invalid."""
    table = _Table(where, document)
    version = table.take("version", _number(VERSION, VERSION))
    found = Settings(
        mode=table.take("mode", _one_of(MODES)),
        internal=table.take("internal", _list_of(_network)),
        not_masqueraded=table.take("not_masqueraded", _list_of(_network)),
        service_cidr=table.take("service_cidr", _network),
        snat=table.take("snat", _boolean),
        mtu=table.take("mtu", _number(1280, 65_535)),
        planned_pods=table.take("planned_pods", _number(1, 255)),
        host_network_pods=table.take("host_network_pods", _number(0, 255)),
        shaping=table.take("shaping", lambda value: None if value is None else _shaping(where, value)),
    )
    table.all_taken(version)
    return found


def _shaping(where: str, document: object) -> Shaping:
    table = _Table(f"{where}: shaping", document)
    mbit = _number(1, 1_000_000)
    found = Shaping(
        machine_mbit=table.take("machine_mbit", mbit),
        floor_mbit=table.take("floor_mbit", mbit),
        ceiling_mbit=table.take("ceiling_mbit", mbit),
        weights=table.take("weights", _weights),
        default_weight=table.take("default_weight", _number(1, 10_000)),
        connections_per_pod=table.take("connections_per_pod", _number(1, 10_000_000)),
    )
    table.all_taken(VERSION)
    return found


class _InvalidValueError(Exception):
    """A value is not what its key takes; the message says what that is."""


class _Table:
    """A JSON object whose keys are taken one by one, so that an unknown key is found."""

    def __init__(self, where: str, document: object) -> None:
        self.where = where
        if not isinstance(document, dict):
            raise NodeNetworkError(where, shown(document), "an object in JSON", REMEDY)
        self.left = dict(document)

    def take(self, key: str, as_what: Callable[[object], T]) -> T:
        if key not in self.left:
            raise NodeNetworkError(self.where, f"{key} is missing", "every key is there", REMEDY)
        value = self.left.pop(key)
        try:
            return as_what(value)
        except _InvalidValueError as unfit:
            raise NodeNetworkError(self.where, f"{key} is {shown(value)}", str(unfit), REMEDY) from None

    def all_taken(self, version: int) -> None:
        if self.left:
            raise NodeNetworkError(self.where, f"unknown key {shown(min(self.left))}", f"the keys of version {version}", REMEDY)


def _number(least: int, most: int) -> Callable[[object], int]:
    def taken(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise _InvalidValueError(f"it is a whole number from {least} to {most}")
        return value

    return taken


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise _InvalidValueError("it is true or false")
    return value


def _one_of(words: tuple[str, ...]) -> Callable[[object], str]:
    def taken(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise _InvalidValueError(f"it is {' or '.join(words)}")
        return value

    return taken


def _name(value: object) -> str:
    if not isinstance(value, str) or not value.isascii() or not 0 < len(value) <= 63 or not all(c.isalnum() or c == "-" for c in value):
        raise _InvalidValueError("it is a namespace: letters, digits and -, 63 at most")
    return value


def _network(value: object) -> str:
    try:
        if not isinstance(value, str) or "/" not in value:
            raise ValueError
        return str(ipaddress.ip_network(value))
    except ValueError:
        raise _InvalidValueError("it is a network, ADDRESS/LENGTH, without host bits") from None


def _list_of(each: Callable[[object], str]) -> Callable[[object], tuple[str, ...]]:
    def taken(value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise _InvalidValueError("it is a list")
        return tuple(each(one) for one in value)

    return taken


def _weights(value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        raise _InvalidValueError("it is an object of weights by team")
    return {_name(team): _number(1, 10_000)(weight) for team, weight in value.items()}
