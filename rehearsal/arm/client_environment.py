"""Environment variables with which clients find the embedded Azure and sign in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rehearsal.arm.tokens import ClientIdentity


@dataclass(frozen=True)
class ClientSettings:
    """Endpoint and sign-in of an embedded Azure: base URL, certificate authority's file, tenant, subscription, identity."""

    base: str
    authority: Path
    tenant: str
    subscription: str
    identity: ClientIdentity

    def of_sdks(self) -> dict[str, str]:
        """Return the variables of azure-identity and Azure's SDKs for Python.

        https://learn.microsoft.com/python/api/overview/azure/identity-readme#environment-variables
        """
        return {
            "AZURE_AUTHORITY_HOST": self.base,
            "AZURE_TENANT_ID": self.tenant,
            "AZURE_CLIENT_ID": self.identity.client,
            "AZURE_CLIENT_SECRET": self.identity.secret,
            "AZURE_SUBSCRIPTION_ID": self.subscription,
            "REQUESTS_CA_BUNDLE": str(self.authority.resolve()),
        }

    def of_providers(self) -> dict[str, str]:
        """Return the variables of Pulumi's azure-native provider, and of Go's TLS.

        https://www.pulumi.com/registry/packages/azure-native/installation-configuration/
        """
        return {
            "ARM_METADATA_HOST": self.base.removeprefix("https://"),
            "ARM_TENANT_ID": self.tenant,
            "ARM_CLIENT_ID": self.identity.client,
            "ARM_CLIENT_SECRET": self.identity.secret,
            "ARM_SUBSCRIPTION_ID": self.subscription,
            "ARM_DISABLE_INSTANCE_DISCOVERY": "true",
            "SSL_CERT_FILE": str(self.authority.resolve()),
        }
