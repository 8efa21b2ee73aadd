"""Decides from a provider's configuration and its environment which Azure is asked, and as whom."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from rehearsal.program.graph import reveal
from rehearsal.pulumi_cli.providers.errors import ProviderError
from rehearsal.pulumi_cli.providers.pulumi_values import Json

FROM_ENVIRONMENT: Mapping[str, str] = {
    "clientId": "ARM_CLIENT_ID",
    "clientSecret": "ARM_CLIENT_SECRET",
    "location": "ARM_LOCATION",
    "metadataHost": "ARM_METADATA_HOST",
    "subscriptionId": "ARM_SUBSCRIPTION_ID",
    "tenantId": "ARM_TENANT_ID",
}
"""Configuration that the environment gives where the provider resource does not:
https://www.pulumi.com/registry/packages/azure-native/installation-configuration/"""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where Azure is described (a host, with its port), and who asks; location serves resources that name none, empty for none."""

    metadata_host: str
    subscription: str
    tenant: str
    client: str
    secret: str = field(repr=False)
    location: str


def read_settings(config: Json, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings; Failed, in one sentence, for what is missing."""
    given = {key: reveal(value) for key, value in config.items()}

    def value(key: str) -> str:
        return str(given.get(key) or environment.get(FROM_ENVIRONMENT[key], ""))

    host = value("metadataHost").removeprefix("https://").rstrip("/")
    if not host:
        raise ProviderError(
            "ARM_METADATA_HOST is not set, and this azure-native talks to the embedded Azure alone; start `gpufleet azure` and set what it "
            "prints, or take this provider's folder out of PULUMI_HOME to use Pulumi's own"
        )
    for key in ("subscriptionId", "tenantId", "clientId", "clientSecret"):
        if not value(key):
            raise ProviderError(f"neither the provider's {key} nor {FROM_ENVIRONMENT[key]} is set; set what `gpufleet azure` prints")
    return Settings(host, value("subscriptionId"), value("tenantId"), value("clientId"), value("clientSecret"), value("location"))
