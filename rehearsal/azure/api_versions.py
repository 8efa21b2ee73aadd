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

_RESOURCES = (
    *("2015-01-01", "2015-11-01", "2016-02-01", "2016-06-01", "2016-07-01", "2016-09-01"),
    *("2017-03-01", "2017-05-01", "2017-05-10", "2017-06-01", "2017-08-01", "2017-12-01"),
    *("2018-01-01", "2018-02-01", "2018-05-01", "2018-06-01", "2018-07-01", "2018-08-01", "2018-09-01", "2018-11-01"),
    *("2019-03-01", "2019-05-01", "2019-05-10", "2019-06-01", "2019-07-01", "2019-08-01", "2019-09-01", "2019-10-01", "2019-11-01"),
    *("2020-01-01", "2020-05-01", "2020-06-01", "2020-07-01", "2020-08-01", "2020-09-01", "2020-10-01"),
    *("2021-01-01", "2021-04-01", "2022-01-01", "2022-05-01", "2022-06-01", "2022-09-01", "2022-12-01"),
    *("2023-07-01", "2024-03-01", "2024-07-01", "2024-08-01", "2024-11-01", "2025-03-01", "2025-04-01"),
)
"""Resource Manager's own versions for subscriptions, resource groups and lists of resources, without those before 2015 and previews:
https://github.com/Azure/bicep/issues/17091 has Azure's list."""

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
        "Microsoft.ResourceGraph": ("2021-03-01", "2022-10-01", "2024-04-01"),
        "Microsoft.Resources": _RESOURCES,
        "Microsoft.Storage": ("2024-01-01", "2026-09-01"),
        "Microsoft.VirtualMachineImages": ("2024-02-01", "2025-10-01"),
    }
)
"""Provider, or the types of one that have versions of their own, to versions, the oldest first.

Of azure-native 3.29 (https://github.com/pulumi/pulumi-azure-native/releases/tag/v3.29.0) and of the azure-mgmt packages that uv.lock pins
(https://github.com/Azure/azure-sdk-for-python).
"""

CLI_VERSIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Microsoft.Authorization": ("2016-09-01",),
        "Microsoft.Compute": ("2019-04-01", "2021-10-01", "2023-09-01", "2024-07-01", "2025-04-01"),
        "Microsoft.KeyVault": ("2026-02-01",),
        "Microsoft.ManagedIdentity": ("2025-05-31-preview",),
        "Microsoft.Network": (
            *("2018-09-01", "2022-01-01", "2023-09-01", "2023-11-01", "2024-03-01", "2025-01-01", "2025-07-01", "2025-09-01"),
            "2026-01-01",
        ),
        "Microsoft.Storage": ("2025-08-01",),
        "Microsoft.VirtualMachineImages": ("2023-07-01",),
    }
)
"""Versions of each provider that commands of the Azure CLI 2.91.0 send beside those above: https://pypi.org/project/azure-cli/2.91.0

Bodies are checked and answered as in the version of the official client.
"""

_BY_KEY = {name.lower(): versions for name, versions in API_VERSIONS.items()}

_OF_CLI = {name.lower(): versions for name, versions in CLI_VERSIONS.items()}


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
    if version.lower() in supported or version.lower() in _OF_CLI.get(provider.lower(), ()):
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
