"""Changes of the embedded Azure as plain JSON: recorded for the journal, applied the first time or on replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rehearsal.azure.arm_id import parse
from rehearsal.azure.client_operations import client_operation
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.repairs import set_health
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.resource import Json, Request, Response
from rehearsal.azure.scheduled_events import scheduled_events_of
from rehearsal.azure.vaults import data_plane, vault_named

ARM, APPROVE, HEALTH, SECRET, TIME = "arm", "approve", "health", "secret", "time"

INSTANCE = "microsoft.compute/virtualmachinescalesets/virtualmachines"


def change_of_request(request: Request) -> Json:
    """Return a request as a change. Its preconditions are omitted, because they held when it was accepted."""
    return {
        "do": ARM,
        "method": request.method,
        "id": request.id.text,
        "action": request.action,
        "version": request.api_version,
        "body": request.body,
        "query": dict(request.query),
        "principal": request.principal,
    }


def apply_change(cloud: Cloud, change: Json) -> Any:
    """Apply a change at its time and return its result. Raises AzureError if Azure rejects it."""
    cloud.advance(change["at"])
    return _MAKERS[change["do"]](cloud, change)


def ask(cloud: Cloud, request: Request) -> Response:
    """Handle the request of a client; what its client does not poll ends with the response, as a call that Azure holds open.

    Raises AzureError if Azure rejects it.
    """
    answer = cloud.handle(request)
    operation, known = answer.operation, client_operation(request.method, request.id.type, request.action)
    if operation is None or not operation.running or known is None or known.polled:
        return answer
    cloud.finish_planned(operation)
    if operation.error is not None:
        return Response(409, {"error": operation.error}, answer.headers)
    resource = cloud.find(operation.key)
    body = cloud.resource_type_of(resource.id).view(cloud, resource, {}) if resource is not None and answer.body is not None else None
    return Response(answer.status, body, answer.headers)


def _ask(cloud: Cloud, change: Json) -> Response:
    return ask(
        cloud,
        Request(
            change["method"],
            parse(change["id"]),
            change["action"],
            change["version"],
            change["body"],
            change["query"],
            principal=change["principal"],
        ),
    )


def _approve(cloud: Cloud, change: Json) -> None:
    for event_id in change["events"]:
        scheduled_events_of(cloud).approve(cloud, event_id)


def _report(cloud: Cloud, change: Json) -> None:
    arm_id = parse(change["id"])
    if arm_id.type.lower() != INSTANCE:
        raise invalid(f"{arm_id.text[:300]} is no instance of a scale set.", "id")
    set_health(cloud, cloud.get(str(arm_id.parent)), arm_id.name, change["health"])


def _write_secret(cloud: Cloud, change: Json) -> Json | None:
    vault, name, owner = vault_named(cloud, change["vault"]), change["name"], change["owner"]
    if vault is None:
        raise AzureError(404, "VaultNotFound", f"There is no vault '{change['vault']}'.")
    match change["verb"]:
        case "set":
            return data_plane.set_secret(cloud, vault, name, change["body"], owner)
        case "update":
            return data_plane.update_secret(cloud, vault, name, change["version"], change["body"])
        case "delete":
            return data_plane.delete_secret(cloud, vault, name)
        case "recover":
            return data_plane.recover_secret(cloud, vault, name, owner)
        case _:
            data_plane.purge_secret(vault, name)
            return None


def _wait(cloud: Cloud, change: Json) -> None:
    """Only advance the time."""


_MAKERS: Mapping[str, Callable[[Cloud, Json], Any]] = {ARM: _ask, APPROVE: _approve, HEALTH: _report, SECRET: _write_secret, TIME: _wait}
