"""Settings with which Azure's official Python clients use the embedded Azure: credential and endpoints."""

from __future__ import annotations

from typing import Any

from azure.identity import ClientSecretCredential


def credential(base: str, authority: str, tenant: str, client: str, secret: str) -> ClientSecretCredential:
    """Who signs in, at a base URL that proves itself by a certificate authority's file."""
    return ClientSecretCredential(tenant, client, secret, authority=base, disable_instance_discovery=True, connection_verify=authority)


def options(base: str, authority: str) -> dict[str, Any]:
    """Arguments of every management client."""
    return {"base_url": base, "credential_scopes": [f"{base}/.default"], "connection_verify": authority}
