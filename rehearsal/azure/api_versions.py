"""API versions of each resource provider: those that azure-native and the official clients send by default.

https://learn.microsoft.com/azure/azure-resource-manager/management/resource-providers-and-types
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rehearsal.azure.errors import AzureError, invalid

_COMPUTE = ("2024-11-01", "2026-04-01")
_DISKS = ("2024-03-02", "2026-03-02")
_GALLERIES = ("2024-03-03", "2026-03-03")
_NETWORK = ("2024-05-01", "2026-03-01")
_PRIVATE_DNS = ("2024-06-01",)
_RESOLVERS = ("2023-07-01-preview", "2025-05-01")
_INTERFACES_OF_MACHINES = ("2018-10-01",)

API_VERSIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Microsoft.Authorization": ("2022-04-01",),
        "Microsoft.Authorization/locks": ("2020-05-01",),
        "Microsoft.Authorization/roleDefinitions": ("2022-04-01", "2022-05-01-preview"),
        "Microsoft.Compute": _COMPUTE,
        "Microsoft.Compute/diskEncryptionSets": _DISKS,
        "Microsoft.Compute/disks": _DISKS,
        "Microsoft.Compute/galleries": _GALLERIES,
        # A client polls an operation with the version with which it began it.
        "Microsoft.Compute/locations": tuple(sorted({*_COMPUTE, *_DISKS, *_GALLERIES})),
        "Microsoft.Compute/skus": ("2021-07-01",),
        "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces": _INTERFACES_OF_MACHINES,
        "Microsoft.Compute/virtualMachineScaleSets/publicIPAddresses": _INTERFACES_OF_MACHINES,
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces": _INTERFACES_OF_MACHINES,
        "Microsoft.Insights": ("2021-05-01-preview",),
        "Microsoft.KeyVault": ("2024-11-01", "2026-05-15"),
        "Microsoft.ManagedIdentity": ("2023-01-31", "2024-11-30"),
        "Microsoft.Network": _NETWORK,
        "Microsoft.Network/dnsResolvers": _RESOLVERS,
        "Microsoft.Network/locations": tuple(sorted({*_NETWORK, *_PRIVATE_DNS, *_RESOLVERS})),
        "Microsoft.Network/privateDnsZones": _PRIVATE_DNS,
        "Microsoft.Resources": ("2024-03-01", "2024-11-01", "2025-04-01"),
        # What the Key Vault client lists vaults by.
        "Microsoft.Resources/resources": ("2015-11-01", "2024-03-01", "2024-11-01", "2025-04-01"),
        "Microsoft.Storage": ("2024-01-01", "2026-09-01"),
        "Microsoft.VirtualMachineImages": ("2024-02-01", "2025-10-01"),
    }
)
"""Provider, or the types of one that have versions of their own, to versions, the oldest first.

Of azure-native 3.29 (https://github.com/pulumi/pulumi-azure-native/releases/tag/v3.29.0) and of the azure-mgmt packages that uv.lock pins
(https://github.com/Azure/azure-sdk-for-python).
"""

_BY_KEY = {name.lower(): versions for name, versions in API_VERSIONS.items()}


def api_versions(resource_type: str) -> tuple[str, ...]:
    """Return the versions of a type, oldest first; empty for an unknown provider. A type without its own versions has its parent's."""
    key = resource_type.lower()
    while key:
        if key in _BY_KEY:
            return _BY_KEY[key]
        key = key.rpartition("/")[0]
    return ()


def check_api_version(resource_type: str, version: str, location: str = "") -> None:
    """Raise AzureError for a request without an API version, or with an unsupported one. `location` appears in Azure's message."""
    if not version:
        raise invalid("The api-version query parameter (?api-version=) is required for all requests.", code="MissingApiVersionParameter")
    supported = api_versions(resource_type)
    provider, _, path = resource_type.partition("/")
    if not supported:
        raise AzureError(404, "InvalidResourceNamespace", f"The resource namespace '{provider}' is invalid.")
    if version.lower() in supported:
        return
    shown = version[:40]
    if provider.lower() == "microsoft.resources":
        newest_first = ",".join(reversed(supported))
        message = f"The api-version '{shown}' is invalid. The supported versions are '{newest_first}'."
        raise invalid(message, code="InvalidApiVersionParameter")
    where = f"location '{location}' and " if location else ""
    message = (
        f"No registered resource provider found for {where}API version '{shown}' for type '{path}'. "
        f"The supported api-versions are '{', '.join(supported)}'."
    )
    raise invalid(message, code="NoRegisteredProviderFound")
