"""Clients of the pinned azure-mgmt packages for tests, with a transport of the test's own instead of a network."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from azure.core.credentials import AccessToken

CLIENTS = {
    "compute": "ComputeManagementClient",
    "network": "NetworkManagementClient",
    "storage": "StorageManagementClient",
    "keyvault": "KeyVaultManagementClient",
    "privatedns": "PrivateDnsManagementClient",
    "dnsresolver": "DnsResolverManagementClient",
    "imagebuilder": "ImageBuilderClient",
    "msi": "ManagedServiceIdentityClient",
    "authorization": "AuthorizationManagementClient",
    "resource": "ResourceManagementClient",
}
"""Package below azure.mgmt to the name of its client."""


class Credential:
    """A credential with one token that nothing checks."""

    def get_token(self, *_scopes: str, **_: Any) -> AccessToken:
        return AccessToken("token", int(datetime(2100, 1, 1, tzinfo=UTC).timestamp()))


def sdk_client(package: str, subscription: str, **options: Any) -> Any:
    """Return the client of a package; options go to the client, for example transport and base_url."""
    module = import_module("azure.mgmt.resource.resources" if package == "resource" else f"azure.mgmt.{package}")
    return getattr(module, CLIENTS[package])(Credential(), subscription, **options)
