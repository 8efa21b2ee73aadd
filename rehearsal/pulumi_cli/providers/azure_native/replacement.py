"""Says which inputs of a type Azure decides at creation, so that azure-native makes a resource anew for another value."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rehearsal.pulumi_cli.providers.azure_native.resource_types import Kind

EVERYWHERE = frozenset({"location"})
"""Of every type: what is in a resource's path beside, and its location (`x-ms-mutability: create, read` of the types' specifications,
https://github.com/Azure/azure-rest-api-specs; the rest Azure refuses to move, InvalidResourceLocation)."""

REPLACING: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "authorization:RoleAssignment": frozenset({"principalId"}),
        "network:LoadBalancer": frozenset({"mode"}),
        "network:PrivateEndpoint": frozenset({"subnet"}),
        "network:PublicIPAddress": frozenset({"publicIPAddressVersion", "publicIPPrefix", "sku"}),
        "storage:StorageAccount": frozenset({"isHnsEnabled"}),
        "virtualmachineimages:Trigger": frozenset({"kind"}),
    }
)
"""By type, from `forceNewMap` of https://github.com/pulumi/pulumi-azure-native/blob/master/provider/pkg/gen/replacement.go and from
`x-ms-mutability`. Whatever else Azure fixed at creation it refuses itself, and so does the update then, as with azure-native."""


def replacing(kind: Kind) -> frozenset[str]:
    """The top-level inputs whose change makes a resource anew."""
    return frozenset(kind.names) | EVERYWHERE | REPLACING.get(kind.token, frozenset())
