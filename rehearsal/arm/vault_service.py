"""Data plane of the vaults, below /keyvault/<vault>: https://learn.microsoft.com/rest/api/keyvault/secrets."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from aiohttp import web

from rehearsal.arm.http_request import HttpRequest
from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.responses import reply
from rehearsal.azure import change_log
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.vaults import data_plane, vault_named
from rehearsal.azure.vaults.data_plane import PAGE, SecretPage
from rehearsal.azure.vaults.secrets import VaultError

VERSIONS = ("7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "2025-07-01", "2026-04-01")
"""https://github.com/Azure/azure-sdk-for-python/tree/main/sdk/keyvault/azure-keyvault-secrets"""
TEXT, FLAG, MOMENT = (str,), (bool,), (int,)
ATTRIBUTES: Mapping[str, tuple[type, ...]] = {"enabled": FLAG, "nbf": MOMENT, "exp": MOMENT, "created": MOMENT, "updated": MOMENT}
RETURNED_ATTRIBUTES = ("recoveryLevel", "recoverableDays")
"""Attributes that a client may send back unchanged."""


def vault_response(call: HttpRequest, live: LiveModel, base: str, principal: str) -> web.Response:
    """Return the response to a call to a vault; raise the AzureError with which a vault rejects it."""
    version = call.query.get("api-version", "")
    if version not in VERSIONS:
        problem = f"The specified version ({version[:40]}) is not recognized." if version else "api-version must be specified."
        raise bad_parameter(f"{problem} Consider using the latest supported version ({VERSIONS[-1]}).")
    vault = find_vault(live.cloud, call.parts[1] if len(call.parts) > 1 else "")
    what = {"do": change_log.SECRET, "vault": vault.id.name, "owner": principal}
    match call.method, _lower_first(call.parts[2:]):
        case "PUT", ("secrets", name):
            return reply(200, live.make({**what, "verb": "set", "name": name, "body": check_secret_body(call.json(), value=True)}))
        case "PATCH", ("secrets", name, secret_version):
            body = check_secret_body(call.json(), value=False)
            return reply(200, live.make({**what, "verb": "update", "name": name, "version": secret_version, "body": body}))
        case "DELETE", ("secrets", name):
            return reply(200, live.make({**what, "verb": "delete", "name": name}))
        case "POST", ("deletedsecrets", name, "recover"):
            return reply(200, live.make({**what, "verb": "recover", "name": name}))
        case "DELETE", ("deletedsecrets", name):
            live.make({**what, "verb": "purge", "name": name})
            return reply(204)
        case "GET", tail:
            return reply(200, _read(call, live.cloud, vault, tail, base))
        case _:
            raise VaultError(405, "MethodNotAllowed", f"The method {call.method} is not allowed here.", "MethodNotAllowed")


def find_vault(cloud: Cloud, name: str) -> Resource:
    """Return the vault of a name; raise AzureError if there is none or it is not ready."""
    vault = vault_named(cloud, name)
    if vault is None:
        raise AzureError(404, "VaultNotFound", f"There is no vault {name[:30]!r}: in Azure its name would not resolve.")
    return vault


def check_secret_body(body: Json | None, *, value: bool) -> Json:
    """Return the body of a secret without nulls; raise AzureError BadParameter if it is invalid."""
    fields = dict(body or {})
    known = {"contentType": TEXT, "attributes": (dict,), "tags": (dict,), **({"value": TEXT} if value else {})}
    _check_types(fields, known, "")
    _check_types(fields.get("attributes") or {}, {**ATTRIBUTES, **dict.fromkeys(RETURNED_ATTRIBUTES, (str, int))}, "attributes.")
    tags = fields.get("tags") or {}
    _check_types(tags, dict.fromkeys(tags, TEXT), "tags.")
    if value and fields.get("value") is None:
        raise bad_parameter("The parameter value is not specified.")
    return {key: one for key, one in fields.items() if one is not None}


def bad_parameter(message: str) -> VaultError:
    """Return the error for an invalid parameter."""
    return VaultError(400, "BadParameter", message, "BadParameter")


def _check_types(fields: Json, known: Mapping[str, tuple[type, ...]], where: str) -> None:
    for key, one in fields.items():
        if key not in known:
            raise bad_parameter(f"Property {where}{key[:60]} is not known.")
        flag = isinstance(one, bool)
        if one is not None and (not isinstance(one, known[key]) or (flag and bool not in known[key])):
            raise bad_parameter(f"Property {where}{key[:60]} is of the wrong type.")


def _read(call: HttpRequest, cloud: Cloud, vault: Resource, tail: tuple[str, ...], base: str) -> Json:
    start, most = _number(call, "$skiptoken", 0, 10**9), _number(call, "maxresults", PAGE, PAGE)
    match tail:
        case ("secrets",):
            return _page(call, base, data_plane.list_secrets(cloud, vault, start, most))
        case ("secrets", name):
            return data_plane.get_secret(cloud, vault, name)
        case ("secrets", name, "versions"):
            return _page(call, base, data_plane.list_versions(cloud, vault, name, start, most))
        case ("secrets", name, version):
            return data_plane.get_secret(cloud, vault, name, version)
        case ("deletedsecrets",):
            return _page(call, base, data_plane.list_deleted(vault, start, most))
        case ("deletedsecrets", name):
            return data_plane.get_deleted(vault, name)
        case _:
            raise VaultError(404, "NotFound", "A vault has secrets and deletedsecrets here.", "NotFound")


def _page(call: HttpRequest, base: str, page: SecretPage) -> Json:
    if page.next is None:
        return {"value": page.value, "nextLink": None}
    parameters = "".join(f"{quote(key)}={quote(value)}&" for key, value in call.query.items() if key != "$skiptoken")
    return {"value": page.value, "nextLink": f"{base}{call.path}?{parameters}$skiptoken={page.next}"}


def _number(call: HttpRequest, name: str, default: int, most: int) -> int:
    text = call.query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 10 or not int(text) <= most or (name == "maxresults" and int(text) < 1):
        raise bad_parameter(f"Parameter {name} must be a whole number, up to {most}.")
    return int(text)


def _lower_first(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts after the vault's name; words of the service are in lower case."""
    words = ("secrets", "deletedsecrets", "versions", "recover")
    return tuple(part.lower() if number != 1 and part.lower() in words else part for number, part in enumerate(parts))
