"""Settings with which Azure's official Python clients use the embedded Azure: credential and endpoints."""

from __future__ import annotations

from typing import Any

from azure.identity import ClientSecretCredential


def credential(base: str, authority: str, tenant: str, client: str, secret: str) -> ClientSecretCredential:
    """Return the credential of a client at a base URL, whose certificate the authority's file verifies."""
    return ClientSecretCredential(tenant, client, secret, authority=base, disable_instance_discovery=True, connection_verify=authority)


def options(base: str, authority: str) -> dict[str, Any]:
    """Return the arguments of every management client."""
    return {"base_url": base, "credential_scopes": [f"{base}/.default"], "connection_verify": authority}
