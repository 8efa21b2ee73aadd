"""One published example: the request as the official client sends it, and Azure's answer.

The files have the form of https://github.com/Azure/azure-rest-api-specs (folders `examples`): `parameters` and `responses` by status.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from bench.azure_examples.client_operations import ClientOperation, find_operation
from components.errors import GpufleetError
from rehearsal.azure.locations import LOCATIONS
from rehearsal.azure.resource import Json, location_key

SUBSCRIPTION = "11111111-1111-4111-8111-111111111111"
TENANT = "7b0c9a44-2f0e-4f57-9c39-6a1f0f0f5a10"
LOCATION = "eastus"
# A blob of 32-bit lengths and values, as RFC 4253 section 6.6 defines it: the type, the exponent, and a modulus of 2,048 bits.
_BLOB = b"\0\0\0\7ssh-rsa" + b"\0\0\0\3\1\0\1" + b"\0\0\1\1\0" + b"\xc5" * 256
STAND_INS = {
    "tenantid": TENANT,
    "adminpassword": "Presupposed-1-password",
    "keydata": f"ssh-rsa {base64.b64encode(_BLOB).decode()} presupposed",
}
"""Values in place of placeholders, by the lower-case name of the property."""
"""Location in place of one that does not exist."""
_SUBSCRIPTION = re.compile(r"(?:^|/)(subscriptions/)[^/]+", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"[{<]([\w-]+)[}>]")
_PARAMETER = re.compile(r"\{(\w+)\}")
_SCOPES = ("scope", "resourceid", "resourceuri", "roleassignmentid", "roleid")


class ExampleError(GpufleetError):
    """A file that is no example, or an example of an operation that no pinned client has."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{file}: {reason}")


@dataclass(frozen=True)
class Example:
    """A request and the answer to it; statuses are those that the client accepts, and answer is None without a body."""

    file: str
    operation: str
    method: str
    path: str
    query: Mapping[str, str]
    if_match: bool
    body: Json | None
    statuses: frozenset[int]
    answer: Json | None

    @property
    def target(self) -> str:
        """Return the URL with the query."""
        return f"{quote(self.path)}?{'&'.join(f'{quote(key)}={quote(value)}' for key, value in self.query.items())}"


def read_examples(folder: Path) -> tuple[list[Example], list[ExampleError]]:
    """Return the examples of all JSON files below a folder, and the errors of those that cannot be replayed."""
    examples: list[Example] = []
    errors: list[ExampleError] = []
    for file in sorted(folder.rglob("*.json")):
        try:
            examples.append(read_example(file, str(file.relative_to(folder))))
        except ExampleError as error:
            errors.append(error)
    return examples, errors


def read_example(file: Path, name: str) -> Example:
    """Read one file; raise ExampleError."""
    try:
        document = json.loads(file.read_bytes())
        parameters, responses = dict(document["parameters"]), dict(document["responses"])
        operation_id = str(document["operationId"])
    except (ValueError, LookupError, TypeError) as error:
        raise ExampleError(file, f"not an example with operationId, parameters and responses ({error!r})") from None
    operation = find_operation(operation_id, document.get("method", ""), document.get("path_template", ""))
    if operation is None:
        if not document.get("path_template"):
            raise ExampleError(file, f"no pinned client has the operation {operation_id}")
        version = str(document.get("api_version", ""))
        operation = ClientOperation(operation_id, document["method"], document["path_template"], version, frozenset({200}))
    sent = str((document.get("request") or {}).get("url") or "")
    path = unquote(urlsplit(sent).path) if sent else _path(file, operation, parameters)
    query = {"api-version": operation.version, **{key: str(value) for key, value in parameters.items() if key.startswith("$")}}
    body = next((value for value in parameters.values() if isinstance(value, dict)), None)
    answers = [found["body"] for _, found in sorted(responses.items()) if isinstance(found, Mapping) and found.get("body")]
    return Example(
        name,
        operation_id,
        operation.method,
        replayable(path),
        query,
        any(key.lower() == "if-match" for key in parameters),
        replayable(body),
        operation.statuses,
        replayable(answers[0]) if answers and isinstance(answers[0], dict) else None,
    )


def _path(file: Path, operation: ClientOperation, parameters: Mapping[str, Any]) -> str:
    """Return the path of an operation with the parameters of an example."""
    given = {key.lower(): str(value) for key, value in parameters.items() if not isinstance(value, dict | list)}
    path = operation.path
    for name in _PARAMETER.findall(path):
        value = given.get(name.lower())
        if value is None:
            raise ExampleError(file, f"no parameter {name} for {operation.path}")
        path = path.replace(f"{{{name}}}", value.strip("/") if name.lower() in _SCOPES else value)
    return path


def replayable(value: Any, key: str = "") -> Any:
    """Return a value with this Azure's subscription, tenant and locations in place of placeholders and invented ones."""
    if isinstance(value, dict):
        return {replayable(name): replayable(item, name.lower()) for name, item in value.items()}
    if isinstance(value, list):
        return [replayable(item, key) for item in value]
    if not isinstance(value, str):
        return value
    if key in STAND_INS:
        return STAND_INS[key]
    if key == "location" and location_key(value) not in LOCATIONS and value.lower() != "global":
        return LOCATION
    return _PLACEHOLDER.sub(r"\1", _SUBSCRIPTION.sub(rf"/\g<1>{SUBSCRIPTION}", value))


def walk(value: Any, visit: Callable[[str], None]) -> None:
    """Call a function with every string of a value, keys included."""
    stack: list[Any] = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            visit(one)
        elif isinstance(one, Mapping):
            stack.extend((*one.keys(), *one.values()))
        elif isinstance(one, Iterable):
            stack.extend(one)
