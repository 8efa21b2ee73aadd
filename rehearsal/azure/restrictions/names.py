"""Names and tags of resources.

https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules,
https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rehearsal.azure.arm_id import GROUP_TYPE
from rehearsal.azure.restrictions.restriction import AtMost, Fields, Matches, Restriction, Subject, Where

_RULES = "https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules"
_TAGS = "https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources#limitations"
_NETWORK = "Microsoft.Network"
TAGS, TAG_NAME, TAG_VALUE, STORAGE_TAG_NAME = 50, 512, 256, 128
FORBIDDEN_IN_TAGS = "<>%&\\?/"

NETWORK_TYPES = tuple(
    f"{_NETWORK}/{one}"
    for one in (
        "loadBalancers",
        "natGateways",
        "networkInterfaces",
        "networkSecurityGroups",
        "networkSecurityGroups/securityRules",
        "publicIPAddresses",
        "publicIPPrefixes",
        "routeTables",
        "routeTables/routes",
        "virtualNetworkGateways",
        "virtualNetworks/subnets",
        "virtualNetworks/virtualNetworkPeerings",
    )
)
_NETWORK_NAME = (
    "Resource name {value} is invalid. The name can be up to 80 characters long. It must begin with a word character, and it must end with "
    "a word character or with '_'. The name may contain word characters or '.', '-', '_'."
)
_NETWORK_SOURCE = "https://github.com/rh-mobb/documentation/pull/204"


def _name(key: str, types: Iterable[str], pattern: str, words: str, message: str, source: str, code: str, **more: Any) -> Restriction:
    return Restriction(key, dict.fromkeys(types, "name"), Matches(pattern, words), message, source, code, **more)


def _entity(key: str, resource_type: str, pattern: str, words: str, entity: str) -> Restriction:
    message = f"The entity name '{entity}' is invalid according to its validation rule: ^{{pattern}}$. The value is '{{value}}'."
    source = "https://github.com/Azure/azure-powershell/issues/4706"
    return _name(key, (resource_type,), pattern, words, message, source, "InvalidParameter", target=entity)


def _tag_name_characters(tags: Any, _subject: Subject) -> Fields | None:
    found = [name for name in tags if any(one in FORBIDDEN_IN_TAGS for one in name)]
    return {"value": ", ".join(found)} if found else None


def _tag_name_length(tags: Any, subject: Subject) -> Fields | None:
    most = STORAGE_TAG_NAME if subject.id.type.lower() == "microsoft.storage/storageaccounts" else TAG_NAME
    found = [name for name in tags if len(name) > most]
    return {"value": found[0], "most": most} if found else None


def _tag_value_length(tags: Any, _subject: Subject) -> Fields | None:
    found = [value for value in tags.values() if len(str(value)) > TAG_VALUE]
    return {"value": found[0]} if found else None


_EVERY = {"*": "tags"}
ROWS: tuple[Restriction, ...] = (
    Restriction(
        "tags",
        _EVERY,
        AtMost(TAGS),
        "Too many tags: the resource '{name}' has {value} tags. Maximum number of tags allowed on a resource: " + f"'{TAGS}'.",
        _TAGS,
        "InvalidTagCount",
        code_assumed=True,
    ),
    Restriction(
        "tag names",
        _EVERY,
        Where(f"none of the characters {' '.join(FORBIDDEN_IN_TAGS)}", _tag_name_characters),
        "The tag names '{value}' have reserved characters '<,>,%,&,\\,?,/' or control characters.",
        _TAGS,
        "InvalidTagNameCharacters",
    ),
    Restriction(
        "tag name length",
        _EVERY,
        Where(f"at most {TAG_NAME} characters, {STORAGE_TAG_NAME} for storage accounts", _tag_name_length),
        "Tag name too large. Following tag name '{value}' exceeded the maximum length. Maximum allowed length for tag name - '{most}' "
        "characters.",
        _TAGS,
        "InvalidTagNameLength",
        code_assumed=True,
    ),
    Restriction(
        "tag value length",
        _EVERY,
        Where(f"at most {TAG_VALUE} characters", _tag_value_length),
        "Tag value too large. Following tag value '{value}' exceeded the maximum length. Maximum allowed length for tag value - "
        f"'{TAG_VALUE}' characters.",
        "https://github.com/Azure-Samples/azure-search-openai-demo/issues/1997",
        "InvalidTagValueLength",
    ),
    _name(
        "resourceGroups",
        (GROUP_TYPE,),
        r"[^\x00-,/:-@\[-^`{-\x7f]{0,89}[^\x00-',*-/:-@\[-^`{-\x7f]|[\w().-]{0,89}[\w()-]",
        "1 to 90 letters, digits, underscores, hyphens, periods and parentheses; no period at the end",
        "The provided resource group name '{value}' has these invalid characters or a length over 90. The name can only be a letter, "
        "digit, '-', '.', '(', ')' or '_', and cannot end with a period.",
        "https://github.com/Azure/azure-cli/issues/14481",
        "InvalidResourceGroup",
    ),
    _name(
        "virtualNetworks",
        (f"{_NETWORK}/virtualNetworks",),
        r"[A-Za-z0-9][\w.-]{0,62}\w",
        "2 to 64 letters, digits, underscores, periods and hyphens; a letter or digit first; no period or hyphen last",
        _NETWORK_NAME.replace("80", "64"),
        _RULES,
        "InvalidResourceName",
    ),
    _name(
        "network resources",
        NETWORK_TYPES,
        r"[A-Za-z0-9]([\w.-]{0,78}\w)?",
        "1 to 80 letters, digits, underscores, periods and hyphens; a letter or digit first; no period or hyphen last",
        _NETWORK_NAME,
        _NETWORK_SOURCE,
        "InvalidResourceName",
    ),
    _name(
        "privateEndpoints",
        (f"{_NETWORK}/privateEndpoints", f"{_NETWORK}/privateLinkServices"),
        r"[A-Za-z0-9]([\w.-]{0,78}\w)?",
        "1 to 80 letters, digits, underscores, periods and hyphens; a letter or digit first; no period or hyphen last",
        _NETWORK_NAME,
        _NETWORK_SOURCE,
        "InvalidResourceName",
    ),
    _name(
        "privateDnsZones",
        (f"{_NETWORK}/privateDnsZones",),
        r"(?=.{1,253}$)[\w-]{1,63}(\.[\w-]{1,63}){1,33}",
        "2 to 34 labels of 1 to 63 letters, digits, hyphens and underscores",
        "The domain name '{value}' is invalid. The provided domain name has an invalid number of labels or invalid characters: {bound}.",
        "https://learn.microsoft.com/azure/dns/private-dns-privatednszone#restrictions",
        "BadRequest",
        code_assumed=True,
    ),
    _name(
        "virtualMachineScaleSets",
        ("Microsoft.Compute/virtualMachineScaleSets",),
        r"[A-Za-z0-9]([\w-]{0,62}\w)?",
        "1 to 64 letters, digits, hyphens and underscores; no hyphen at either end",
        "The name '{value}' is not valid: {bound}.",
        _RULES,
        "InvalidResourceName",
        code_assumed=True,
    ),
    _name(
        "virtualMachines",
        ("Microsoft.Compute/virtualMachines",),
        r"[A-Za-z0-9]([\w.-]{0,62}\w)?",
        "1 to 64 letters, digits, underscores, periods and hyphens; no period or hyphen at the end",
        "The name '{value}' is not valid: {bound}.",
        _RULES,
        "InvalidResourceName",
        code_assumed=True,
    ),
    _name(
        "disks",
        ("Microsoft.Compute/disks",),
        r"[A-Za-z0-9]([\w.-]{0,78}\w)?",
        "1 to 80 letters, digits, underscores, periods and hyphens; no period or hyphen at the end",
        "The value '{value}' of parameter disk.name is invalid.",
        "https://github.com/microsoft/AzureStorageExplorer/issues/4425",
        "InvalidParameter",
        target="disk.name",
    ),
    _name(
        "compute groups",
        ("Microsoft.Compute/proximityPlacementGroups", "Microsoft.Compute/capacityReservationGroups"),
        r"[A-Za-z0-9]([\w.-]{0,78}\w)?",
        "1 to 80 letters, digits, underscores, periods and hyphens; no period or hyphen at the end",
        "The name '{value}' is not valid: {bound}.",
        _RULES,
        "InvalidResourceName",
        code_assumed=True,
    ),
    _entity(
        "galleries",
        "Microsoft.Compute/galleries",
        r"[A-Za-z0-9]([\w.]{0,78}\w)?",
        "1 to 80 letters, digits, underscores and periods; a letter or digit first; no period last",
        "gallery.name",
    ),
    _entity(
        "gallery images",
        "Microsoft.Compute/galleries/images",
        r"[A-Za-z0-9]([\w.-]{0,78}\w)?",
        "1 to 80 letters, digits, underscores, periods and hyphens; a letter or digit first; no period or hyphen last",
        "galleryImage.name",
    ),
    _name(
        "storageAccounts",
        ("Microsoft.Storage/storageAccounts",),
        r"[a-z0-9]{3,24}",
        "3 to 24 lower-case letters and digits",
        "{value} is not a valid storage account name. Storage account name must be between 3 and 24 characters in length and use numbers "
        "and lower-case letters only.",
        "https://github.com/microsoft/AzureSuperpowers/pull/6",
        "AccountNameInvalid",
        target="accountName",
    ),
    _name(
        "containers",
        ("Microsoft.Storage/storageAccounts/blobServices/containers",),
        r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*|\$root|\$web|\$logs",
        "3 to 63 lower-case letters, digits and single hyphens; no hyphen at either end",
        "The specified resource name '{value}' contains invalid characters or has an invalid length.",
        "https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata#container-names",
        "InvalidResourceName",
        target="containerName",
        code_assumed=True,
    ),
    _name(
        "vaults",
        ("Microsoft.KeyVault/vaults",),
        r"[a-zA-Z](?!.*--)[a-zA-Z0-9-]{1,22}[a-zA-Z0-9]",
        "3 to 24 letters, digits and single hyphens; a letter first; a letter or digit last",
        "The vault name '{value}' is invalid. A vault's name must be between 3-24 alphanumeric characters. The name must begin with a "
        "letter, end with a letter or digit, and not contain consecutive hyphens. Follow this link for more information: "
        "https://go.microsoft.com/fwlink/?linkid=2147742",
        "https://github.com/Azure/AI-in-a-Box/issues/104",
        "VaultNameNotValid",
        target="vaultName",
    ),
    _name(
        "userAssignedIdentities",
        ("Microsoft.ManagedIdentity/userAssignedIdentities",),
        r"[a-zA-Z0-9][\w-]{2,127}",
        "3 to 128 letters, digits, hyphens and underscores; a letter or digit first",
        "The identity name '{value}' is not valid: {bound}.",
        f"{_RULES}#microsoftmanagedidentity",
        "InvalidResourceName",
        target="resourceName",
        code_assumed=True,
    ),
    _name(
        "federatedIdentityCredentials",
        ("Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials",),
        r"[a-zA-Z0-9][\w-]{2,119}",
        "3 to 120 letters, digits, hyphens and underscores; a letter or digit first",
        "The credential name '{value}' is not valid: {bound}.",
        "https://learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations",
        "InvalidResourceName",
        code_assumed=True,
    ),
)
