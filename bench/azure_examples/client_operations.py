"""Operations of the pinned official clients by the ids of Microsoft's examples: method, path, API version, accepted statuses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from tests.support.client_sources import source_operations

_PARAMETER = re.compile(r"\{[^}]*\}")


@dataclass(frozen=True)
class ClientOperation:
    """One operation of a client: `LoadBalancers_CreateOrUpdate` is PUT to a path with parameters in braces."""

    id: str
    method: str
    path: str
    version: str
    statuses: frozenset[int]


@cache
def client_operations() -> tuple[ClientOperation, ...]:
    """Return the operations of all pinned clients that have one API version."""
    return tuple(
        ClientOperation(
            plain_id(f"{one.group}{one.name.removeprefix('begin')}"), one.method, one.path, one.version, frozenset(one.statuses)
        )
        for one in source_operations()
        if one.version
    )


def find_operation(operation_id: str, method: str = "", path: str = "") -> ClientOperation | None:
    """Return the operation of an id; ids of other clients differ in places, so that of the same method and path if they are known."""
    by_id = _by_id().get(plain_id(operation_id))
    if not path or (by_id is not None and (by_id.method, path_form(by_id.path)) == (method, path_form(path))):
        return by_id
    return _by_path().get((method, path_form(path)), by_id)


@cache
def _by_id() -> dict[str, ClientOperation]:
    return {one.id: one for one in reversed(client_operations())}


@cache
def _by_path() -> dict[tuple[str, str], ClientOperation]:
    return {(one.method, path_form(one.path)): one for one in reversed(client_operations())}


def plain_id(operation_id: str) -> str:
    """Return an operation id in the form in which ids are compared: lower case without underscores."""
    return operation_id.replace("_", "").lower()


def path_form(path: str) -> str:
    """Return a path in the form in which paths are compared, which is independent of the names of its parameters."""
    return _PARAMETER.sub("{}", path.partition("?")[0]).lower().strip("/")
