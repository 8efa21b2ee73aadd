"""Operations of the official clients: the statuses that each accepts, and whether it polls.

client_operations.json holds those of the azure-mgmt packages that uv.lock pins, read from their source
(https://github.com/Azure/azure-sdk-for-python). A test compares it with that source and rewrites it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from rehearsal.azure.arm_id import GROUP_TYPE

OK, CREATED, ACCEPTED, NO_CONTENT = 200, 201, 202, 204


@dataclass(frozen=True, slots=True)
class ClientOperation:
    """What an official client accepts: its methods, statuses, query parameters, and whether it polls until the operation ends."""

    names: tuple[str, ...]
    statuses: tuple[int, ...]
    polled: bool
    query: tuple[str, ...]


WITHOUT_CLIENT: Mapping[str, ClientOperation] = MappingProxyType(
    {
        # https://learn.microsoft.com/rest/api/resources/management-locks
        "PUT microsoft.authorization/locks/*": ClientOperation(("management_locks.create_or_update_by_scope",), (OK, CREATED), False, ()),
        "DELETE microsoft.authorization/locks/*": ClientOperation(("management_locks.delete_by_scope",), (OK, NO_CONTENT), False, ()),
        # https://learn.microsoft.com/rest/api/monitor/diagnostic-settings
        "PUT microsoft.insights/diagnosticsettings/*": ClientOperation(("diagnostic_settings.create_or_update",), (OK,), False, ()),
        "DELETE microsoft.insights/diagnosticsettings/*": ClientOperation(("diagnostic_settings.delete",), (OK, NO_CONTENT), False, ()),
    }
)
"""Operations of modelled types without a client among gpufleet's dependencies."""


def _lower_path(key: str) -> str:
    method, _, path = key.partition(" ")
    return f"{method} {path.lower()}"


def published_key(method: str, path: str) -> str:
    """Return the key of a request as `operation_key` does, with the capitals of the path."""
    parts, key = path.strip("/").split("/"), operation_key(method, path)
    capitals = {part.lower(): part for part in (*GROUP_TYPE.split("/"), *parts)}
    return f"{method} {'/'.join(capitals.get(part, part) for part in key.partition(' ')[2].split('/'))}"


def operation_key(method: str, path: str) -> str:
    """Return the key of a request: its method, and its types in lower case with `*` for each name."""
    parts = path.strip("/").lower().split("/")
    if "providers" not in parts:
        if parts[2:3] != ["resourcegroups"]:
            return f"{method} {'/'.join(parts[2:])}"
        return "/".join((f"{method} {GROUP_TYPE.lower()}", *("*" for _ in parts[3:4]), *parts[4:]))
    tail = parts[len(parts) - parts[::-1].index("providers") :]
    provider, kinds = tail[0] if tail else "", tail[1:]
    shown = [("*" if number % 2 or part.startswith("{") else part) for number, part in enumerate(kinds)]
    return f"{method} {'/'.join((provider, *shown))}"


def request_key(method: str, resource_type: str, action: str = "") -> str:
    """Return the key of a request for a resource of a type, or of an action on it."""
    provider, *kinds = resource_type.lower().split("/")
    named = "/".join((provider, *(f"{kind}/*" for kind in kinds)))
    return f"{method} {named}/{action.lower()}" if action else f"{method} {named}"


@cache
def operations() -> Mapping[str, ClientOperation]:
    """Return the operations of the official clients by key."""
    rows = json.loads(files("rehearsal.azure").joinpath("client_operations.json").read_text(encoding="utf-8"))
    found = {
        _lower_path(key): ClientOperation(tuple(names), tuple(statuses), polled, tuple(query))
        for key, (names, statuses, polled, query) in rows.items()
    }
    return MappingProxyType({**found, **WITHOUT_CLIENT})


def described(text: str, key: str) -> str:
    """Return a request as text, with the official client's methods for it if there are any."""
    known = operations().get(key)
    return f"{text} ({', '.join(known.names)})" if known else text


@cache
def client_operation(method: str, resource_type: str, action: str = "") -> ClientOperation | None:
    """Return the operation of a request for a resource, or of an action on it; None if no client has it."""
    key = request_key(method, resource_type, action)
    # Clients have one operation for records of all types.
    head, _, _ = key.rpartition(f"/{resource_type.lower().rpartition('/')[2]}/*")
    return operations().get(key) or operations().get(f"{head}/*/*")


def accepted_status(operation: ClientOperation | None, outcome: int, *, running: bool) -> int:
    """Return the status that the client accepts for an outcome: 200 done, 201 created, 202 begun, 204 nothing there.

    running is true if an operation continues after the response. Without a client, it is the outcome.
    """
    if operation is None or (outcome in operation.statuses and not running):
        return outcome
    # A client that accepts 201 for a new resource distinguishes it from an update in progress; one that does not, takes 202 for both.
    begun = (CREATED, ACCEPTED, OK) if outcome == CREATED else (OK, ACCEPTED) if CREATED in operation.statuses else (ACCEPTED, OK)
    order = (*begun, NO_CONTENT) if running else (OK, CREATED, NO_CONTENT, ACCEPTED)
    return next((status for status in order if status in operation.statuses), outcome)
