"""Says what the model keeps of a resource and of a long-running operation, and what a request and its answer are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rehearsal.azure.arm_id import ArmId

Json = dict[str, Any]

IN_PROGRESS, SUCCEEDED, FAILED, CANCELED = "InProgress", "Succeeded", "Failed", "Canceled"


def location_key(name: object) -> str:
    """A location as the model compares it: Sweden Central is swedencentral."""
    return str(name).lower().replace(" ", "")


@dataclass(slots=True)
class Resource:
    """One resource: its body as a GET answers it, moments in seconds since 1970, who made it, and what its kind keeps beside the body.

    sent is the body as it was last asked for, without anything that Azure adds: what a PATCH is merged into, and a PUT is compared with.
    operation is the id of the running operation that holds it, empty when it is idle. state is the kind's own (a dataclass), None for most.
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
        """The inner properties of the body, an empty dict put there where it has none."""
        inner: Json = self.body.setdefault("properties", {})
        return inner

    @property
    def location(self) -> str:
        """Location in lower case without spaces, empty for what has none."""
        return location_key(self.body.get("location", ""))


@dataclass(slots=True)
class Operation:
    """A long-running operation: what it does to which resource, when (seconds since 1970), how it ended, and what its result is."""

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
    """What a client asks: an HTTP method, the resource id it is about, for POST the action, the API version, query and body.

    Of headers only if_match and if_none_match matter to the model; principal says who asks.
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
    """What is answered: HTTP status, body, headers, and the operation that goes on where one does."""

    status: int
    body: Json | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    operation: Operation | None = None
