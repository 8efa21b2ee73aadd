"""Data of the model: resources, long-running operations, requests and responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rehearsal.azure.arm_id import ArmId

Json = dict[str, Any]

IN_PROGRESS, SUCCEEDED, FAILED, CANCELED = "InProgress", "Succeeded", "Failed", "Canceled"


def location_key(name: object) -> str:
    """Return a location in the form that the model compares: Sweden Central is swedencentral."""
    return str(name).lower().replace(" ", "")


@dataclass(slots=True)
class Resource:
    """One resource: its body as a GET answers it, moments in seconds since 1970, its creator, and the state of its type.

    sent is the last requested body, without values that Azure adds; a PATCH is merged into it, and a PUT is compared with it.
    operation is the id of the running operation that locks it, empty without one. state is the type's own dataclass, None for most.
    """

    id: ArmId
    body: Json
    sent: Json
    owner: str
    created: float
    changed: float
    version: int = 1
    operation: str = ""
    state: Any = None

    @property
    def key(self) -> str:
        return self.id.key

    @property
    def properties(self) -> Json:
        """Return the properties of the body; an empty dict is added if there are none."""
        inner: Json = self.body.setdefault("properties", {})
        return inner

    @property
    def location(self) -> str:
        """Return the location in lower case without spaces; empty without a location."""
        return location_key(self.body.get("location", ""))


@dataclass(slots=True)
class Operation:
    """Long-running operation: its name and resource, times in seconds since 1970, status, error and result."""

    id: str
    key: str
    name: str
    location: str
    started: float
    ended: float | None = None
    status: str = IN_PROGRESS
    error: Json | None = None
    result: Json | None = None
    waits_for: int = 0
    failures: list[Json] = field(default_factory=list)

    @property
    def running(self) -> bool:
        return self.status == IN_PROGRESS


@dataclass(frozen=True, slots=True)
class Request:
    """Request of a client: HTTP method, resource id, action of a POST, API version, query and body.

    Of the headers, only if_match and if_none_match matter. principal is the identity of the client.
    """

    method: str
    id: ArmId
    action: str = ""
    api_version: str = ""
    body: Json | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    if_match: str = ""
    if_none_match: str = ""
    principal: str = "somebody"


@dataclass(frozen=True, slots=True)
class Response:
    """Response: HTTP status, body, headers, and the operation if one runs."""

    status: int
    body: Json | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    operation: Operation | None = None
