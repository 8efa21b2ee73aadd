"""Instance metadata service of one machine, below /imds and the machine's resource id.

https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service,
https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events,
https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from components.errors import GpufleetError
from rehearsal.arm.attested_data import Signer
from rehearsal.arm.http_request import HttpRequest
from rehearsal.arm.instance_document import instance_document
from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.responses import reply
from rehearsal.arm.sign_in import version_one_token
from rehearsal.arm.tokens import IdentityPlatform
from rehearsal.azure import change_log
from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.scheduled_events import scheduled_events_of

VERSIONS = ("2017-04-02", "2017-08-01", "2018-02-01", "2019-06-01", "2020-09-01", "2021-01-01", "2021-02-01", "2021-12-13", "2023-07-01")
"""Versions of the instance document; newer versions only add properties."""
EVENT_VERSIONS = ("2017-08-01", "2019-01-01", "2019-08-01", "2020-07-01")
ATTESTED_VERSIONS = tuple(version for version in VERSIONS if version >= "2018-10-01")
"""Versions of attested data, which began with 2018-10-01; subscriptionId is in all of them here, in Azure from 2019-04-30."""
NONCE_CHARACTERS = 32
"""https://github.com/Azure/azure-rest-api-specs/tree/main/specification/imds"""
TOKEN_VERSIONS = ("2018-02-01", "2019-08-01")
INSTANCE, MACHINE = "microsoft.compute/virtualmachinescalesets/virtualmachines", "microsoft.compute/virtualmachines"


class MetadataRequestError(GpufleetError):
    """A request that the service rejects: HTTP status, sentence, and further properties of the response."""

    def __init__(self, status: int, sentence: str, **details: Any) -> None:
        self.status, self.sentence, self.details = status, sentence, details
        super().__init__(sentence)

    def body(self) -> Json:
        return {"error": self.sentence, **self.details}


def metadata_response(call: HttpRequest, live: LiveModel, tokens: IdentityPlatform, attestation: Callable[[], Signer]) -> web.Response:
    """Return the response to a machine; raise MetadataRequestError."""
    if call.headers.get("Metadata", "").lower() != "true":
        raise MetadataRequestError(400, "Bad request. Required metadata header not specified")
    if "X-Forwarded-For" in call.headers:
        raise MetadataRequestError(400, "Bad request. The X-Forwarded-For header is not allowed")
    machine, tail = _machine(live.cloud, call.parts[1:])
    match call.method, tail:
        case "GET", ("versions",):
            return reply(200, {"apiVersions": list(VERSIONS)})
        case "GET", ("instance", *path):
            _check_version(call, VERSIONS)
            return _shown(_inside(instance_document(live.cloud, machine), path), call)
        case "GET", ("attested", "document"):
            _check_version(call, ATTESTED_VERSIONS)
            return reply(200, attestation().document(instance_document(live.cloud, machine)["compute"], _nonce(call), time.time()))
        case "GET", ("scheduledevents",):
            _check_version(call, EVENT_VERSIONS)
            return reply(200, _events(live.cloud, machine.id))
        case "POST", ("scheduledevents",):
            _check_version(call, EVENT_VERSIONS)
            _approve(call, live, machine.id)
            return reply(200)
        case "GET", ("identity", "oauth2", "token"):
            _check_version(call, TOKEN_VERSIONS)
            return reply(200, _token(call, live.cloud, machine, tokens))
        case _:
            raise MetadataRequestError(404, "Not found")


def _machine(cloud: Cloud, parts: Sequence[str]) -> tuple[Resource, tuple[str, ...]]:
    """Return the machine whose id a path begins with, and the parts after /metadata."""
    lowered = [part.lower() for part in parts]
    if "metadata" not in lowered:
        raise MetadataRequestError(404, "Not found. The path is /imds<resource id of the instance>/metadata/...")
    split = len(lowered) - 1 - lowered[::-1].index("metadata")
    try:
        arm_id = parse("/" + "/".join(parts[:split]))
        if arm_id.type.lower() not in (INSTANCE, MACHINE):
            raise MetadataRequestError(404, f"Not found. {arm_id.text[:300]} is no machine")
        return cloud.get(arm_id.text), tuple(lowered[split + 1 :])
    except AzureError as error:
        raise MetadataRequestError(404, f"Not found. {error.message}") from None


def _check_version(call: HttpRequest, versions: Sequence[str]) -> None:
    version = call.query.get("api-version", "")
    if version not in versions:
        reason = f"api-version {version[:40]!r} is not known" if version else "api-version was not specified in the request"
        message = f"Bad request. {reason}. For more information refer to aka.ms/azureimds"
        raise MetadataRequestError(400, message, **{"newest-versions": list(reversed(versions[-3:]))})


def _nonce(call: HttpRequest) -> str:
    """Return the nonce of a request for attested data: letters and digits, empty without one."""
    nonce = call.query.get("nonce", "")
    if nonce and not (nonce.isascii() and nonce.isalnum() and len(nonce) <= NONCE_CHARACTERS):
        raise MetadataRequestError(400, f"Bad request. nonce is not a string of up to {NONCE_CHARACTERS} alphanumeric characters")
    return nonce


def _inside(found: Any, path: Sequence[str]) -> Any:
    """Return the value at a path of the document; names match in any case."""
    for part in path:
        if isinstance(found, dict):
            named = {key.lower(): value for key, value in found.items()}
            if part not in named:
                raise MetadataRequestError(404, "Not found")
            found = named[part]
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            raise MetadataRequestError(404, "Not found")
    return found


def _shown(found: Any, call: HttpRequest) -> web.Response:
    """Return JSON for an object, and text for a value or, if the request is for text, for the names of an object."""
    if isinstance(found, dict | list) and call.query.get("format", "json").lower() != "text":
        return reply(200, found)
    if isinstance(found, dict | list):
        names = [f"{key}/" if isinstance(value, dict | list) else str(key) for key, value in _items(found)]
        return web.Response(text="\n".join(names))
    return web.Response(text=str(found))


def _items(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else enumerate(value)


def _events(cloud: Cloud, arm_id: ArmId) -> Json:
    if arm_id.type.lower() == MACHINE:
        return {"DocumentIncarnation": 1, "Events": []}
    return scheduled_events_of(cloud).document(cloud, str(arm_id.parent).lower(), arm_id.name)


def _approve(call: HttpRequest, live: LiveModel, arm_id: ArmId) -> None:
    """Approve events in the machine's document, all of them or none."""
    try:
        requests = (call.json() or {}).get("StartRequests")
    except AzureError as error:
        raise MetadataRequestError(400, f"Bad request. {error.message}") from None
    event_ids = [one.get("EventId") if isinstance(one, dict) else None for one in requests] if isinstance(requests, list) else [None]
    if not event_ids or not all(isinstance(one, str) for one in event_ids):
        raise MetadataRequestError(400, 'Bad request. The body is {"StartRequests": [{"EventId": "..."}]}')
    known = {event["EventId"] for event in _events(live.cloud, arm_id)["Events"]}
    for one in event_ids:
        if str(one).upper() not in known:
            raise MetadataRequestError(400, f"Bad request. There is no scheduled event {str(one)[:60]!r}; read the document again")
    live.make({"do": change_log.APPROVE, "events": [str(one) for one in event_ids]})


def _token(call: HttpRequest, cloud: Cloud, machine: Resource, tokens: IdentityPlatform) -> Json:
    """Return a token of one of the machine's identities: the requested one, its own, or its only one."""
    resource = call.query.get("resource", "")
    if not resource:
        raise _no_token("Required audience parameter not specified")
    identities = _identities(cloud, machine)
    criteria = {
        key: call.query[key].lower() for key in ("client_id", "object_id", "principal_id", "msi_res_id", "mi_res_id") if key in call.query
    }
    matching = [one for one in identities if all(one[_KEYS[key]].lower() == value for key, value in criteria.items())]
    if not criteria:
        matching = [one for one in identities if not one["id"]] or identities
    if not matching:
        raise _no_token("Identity not found")
    if len(matching) > 1:
        raise _no_token(
            "Multiple user assigned identities exist, please specify the clientId / resourceId of the identity in the token request"
        )
    who = matching[0]
    granted = tokens.issue(who["clientId"], resource.removesuffix("/.default").rstrip("/"), who["principalId"])
    return {**version_one_token(granted, resource), "client_id": who["clientId"]}


_KEYS = {"client_id": "clientId", "object_id": "principalId", "principal_id": "principalId", "msi_res_id": "id", "mi_res_id": "id"}


def _identities(cloud: Cloud, machine: Resource) -> list[dict[str, str]]:
    """Return the identities of a machine, with client id, principal id and resource id, which is empty for its own."""
    owner = cloud.get(str(machine.id.parent)) if machine.id.type.lower() == INSTANCE else machine
    identity = owner.body.get("identity") or {}
    identities = []
    if identity.get("principalId"):
        client = cloud.stable_uuid(owner.key, "client")
        identities.append({"id": "", "clientId": client, "principalId": str(identity["principalId"])})
    for text in identity.get("userAssignedIdentities") or {}:
        found = cloud.find(text)
        if found is not None:
            identities.append({"id": text, "clientId": found.properties["clientId"], "principalId": found.properties["principalId"]})
    return identities


def _no_token(sentence: str) -> MetadataRequestError:
    return MetadataRequestError(400, "invalid_request", error_description=sentence)
