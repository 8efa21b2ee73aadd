"""Discovery and sign-in endpoints: login URLs, public keys, and the other endpoints of the cloud.

https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc
"""

from __future__ import annotations

import base64
import time
from typing import Any

from aiohttp import web

from rehearsal.arm.http_request import HttpRequest
from rehearsal.arm.responses import reply
from rehearsal.arm.tokens import ALGORITHM, MANAGEMENT, IdentityPlatform, InvalidTokenError
from rehearsal.azure.resource import Json

FIRST_DICTIONARY = "2020-06-01"
"""First API version of /metadata/endpoints that returns one environment; earlier versions return a list."""


def sign_in_response(call: HttpRequest, tokens: IdentityPlatform) -> web.Response | None:
    """Return the response to a sign-in call, None for another call; raise InvalidTokenError."""
    tail = tuple(part.lower() for part in call.parts[1:])
    tenant = call.parts[0]
    match call.method, tail:
        case "POST", ("oauth2", "v2.0", "token"):
            return reply(200, tokens.grant(call.form(), tenant, call.headers.get("Authorization", "")))
        case "POST", ("oauth2", "token"):
            return reply(200, _version_one(call, tokens))
        case "GET", ("v2.0", ".well-known", "openid-configuration") | (".well-known", "openid-configuration"):
            tokens.check_tenant(tenant)
            return reply(200, openid_configuration(tokens))
        case "GET", ("discovery", "v2.0", "keys") | ("discovery", "keys"):
            tokens.check_tenant(tenant)
            return reply(200, public_keys(tokens))
        case "GET", ("discovery", "instance") if tenant.lower() == "common":
            return reply(200, instance_discovery(tokens))
        case "GET", ("endpoints",) if tenant.lower() == "metadata":
            one = cloud_endpoints(tokens)
            old = call.query.get("api-version", FIRST_DICTIONARY) < FIRST_DICTIONARY
            return reply(200, [one] if old else one)
        case _:
            return None


def token_error_response(error: InvalidTokenError) -> web.Response:
    """Return an error in the format of the identity platform."""
    return reply(error.status, error.body(), {"Cache-Control": "no-store"})


def cloud_endpoints(tokens: IdentityPlatform) -> Json:
    """Return the endpoints of this cloud for clients with a metadata host; missing services have names that do not resolve.

    https://github.com/pulumi/pulumi-azure-native/blob/0ca7570c3443ba3247c6b16e2ebd117deb6760fd/provider/pkg/azure/cloud/metadata/client.go
    """
    return {
        # Clients take any other name, and any other identity provider, for an Azure Stack.
        "name": "AzureCloud",
        "portal": tokens.base,
        "authentication": {
            "loginEndpoint": tokens.base,
            "audiences": [tokens.base, *MANAGEMENT],
            "tenant": "common",
            "identityProvider": "AAD",
        },
        "resourceManager": tokens.base,
        "graph": f"{tokens.base}/graph",
        "graphAudience": f"{tokens.base}/graph",
        "microsoftGraphResourceId": f"{tokens.base}/graph",
        "gallery": tokens.base,
        "batch": f"{tokens.base}/batch",
        "media": f"{tokens.base}/media",
        "sqlManagement": f"{tokens.base}/sql",
        "vmImageAliasDoc": f"{tokens.base}/aliases.json",
        "activeDirectoryDataLake": f"{tokens.base}/datalake",
        "suffixes": {
            "keyVaultDns": "vault.invalid",
            "storage": "storage.invalid",
            "acrLoginServer": "registry.invalid",
            "sqlServerHostname": "sql.invalid",
            "mhsmDns": "managedhsm.invalid",
            "mysqlServerEndpoint": "mysql.invalid",
            "postgresqlServerEndpoint": "postgresql.invalid",
            "mariadbServerEndpoint": "mariadb.invalid",
            "attestationEndpoint": "attestation.invalid",
            "synapseAnalytics": "synapse.invalid",
            "storageSyncEndpointSuffix": "storagesync.invalid",
            "azureFrontDoorEndpointSuffix": "frontdoor.invalid",
            "azureDataLakeStoreFileSystem": "datalake.invalid",
            "azureDataLakeAnalyticsCatalogAndJob": "datalakeanalytics.invalid",
        },
    }


def instance_discovery(tokens: IdentityPlatform) -> Json:
    """Return the hosts of this cloud: only this one."""
    host = tokens.base.removeprefix("https://")
    return {
        "tenant_discovery_endpoint": f"{tokens.base}/{tokens.tenant}/v2.0/.well-known/openid-configuration",
        "api-version": "1.1",
        "metadata": [{"preferred_network": host, "preferred_cache": host, "aliases": [host]}],
    }


def openid_configuration(tokens: IdentityPlatform) -> Json:
    """Return the OpenID Connect discovery document: https://openid.net/specs/openid-connect-discovery-1_0.html"""
    base = f"{tokens.base}/{tokens.tenant}"
    return {
        "issuer": f"{base}/v2.0",
        "token_endpoint": f"{base}/oauth2/v2.0/token",
        "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
        "device_authorization_endpoint": f"{base}/oauth2/v2.0/devicecode",
        "jwks_uri": f"{base}/discovery/v2.0/keys",
        "response_types_supported": ["code", "id_token", "token"],
        "subject_types_supported": ["pairwise"],
        "scopes_supported": ["openid"],
        "claims_supported": ["aud", "iss", "iat", "nbf", "exp", "appid", "azp", "oid", "sub", "tid", "ver"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
        "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
        "tenant_region_scope": None,
        "cloud_instance_name": tokens.base.removeprefix("https://"),
    }


def public_keys(tokens: IdentityPlatform) -> Json:
    """Return the public key as a JSON web key set."""
    numbers = tokens.identity.key.public_key().public_numbers()
    key = {"kty": "RSA", "use": "sig", "kid": tokens.identity.key_id, "alg": ALGORITHM, "n": _number(numbers.n), "e": _number(numbers.e)}
    return {"keys": [key]}


def version_one_token(granted: dict[str, Any], resource: str) -> Json:
    """Return a granted token in the first version of the protocol, also that of the metadata service: numbers are strings."""
    now = int(time.time())
    lasting = granted["expires_in"]
    return {
        "token_type": "Bearer",
        "expires_in": str(lasting),
        "ext_expires_in": str(lasting),
        "expires_on": str(now + lasting),
        "not_before": str(now),
        "resource": resource,
        "access_token": granted["access_token"],
    }


def _version_one(call: HttpRequest, tokens: IdentityPlatform) -> Json:
    form = call.form()
    if "resource" not in form:
        raise InvalidTokenError(400, "invalid_request", "AADSTS900144: The request body must contain the following parameter: 'resource'.")
    granted = tokens.grant(form, call.parts[0], call.headers.get("Authorization", ""))
    return version_one_token(granted, form["resource"])


def _number(value: int) -> str:
    return base64.urlsafe_b64encode(value.to_bytes((value.bit_length() + 7) // 8)).rstrip(b"=").decode()
