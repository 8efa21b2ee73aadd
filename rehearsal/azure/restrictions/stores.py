"""Properties of vaults, storage accounts, images of galleries, image templates, identities and locks."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

from rehearsal.azure.restrictions.restriction import AtMost, Between, Fields, Matches, Restriction, Subject, Where

VAULT, ACCOUNT = "Microsoft.KeyVault/vaults", "Microsoft.Storage/storageAccounts"
BLOB_SERVICE = f"{ACCOUNT}/blobServices"
IMAGE = "Microsoft.Compute/galleries/images"
_ACCOUNTS = "https://learn.microsoft.com/azure/storage/common/storage-network-security#grant-access-from-an-internet-ip-range"


def _retention(value: Any, _subject: Subject) -> Fields | None:
    """Refuse a number of days out of range, also of a disabled policy, and an enabled policy without one."""
    days = value.get("days")
    wrong = bool(value.get("enabled")) if days is None else not (isinstance(days, int) and 1 <= days <= 365)
    return {"value": days} if wrong else None


PRIVATE_NETWORKS = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))


def _address_rule(value: Any, _subject: Subject) -> Fields | None:
    """Refuse what is no public IPv4 address or CIDR; storage accounts have no rules of /31 and /32."""
    text = str(value)
    try:
        network = IPv4Network(text)
    except ValueError:
        # IPv6 is accepted in some regions.
        return None if ":" in text else {"value": text}
    return {"value": text} if any(network.subnet_of(one) for one in PRIVATE_NETWORKS) or ("/" in text and network.prefixlen > 30) else None


def _vault_rule(value: Any, _subject: Subject) -> Fields | None:
    try:
        # Microsoft's example has the value in quotes.
        IPv4Network(str(value).strip("'"))
    except ValueError:
        return {"value": value}
    return None


def _identifier(part: str, most: int) -> Restriction:
    return Restriction(
        f"identifier.{part}",
        {IMAGE: f"properties.identifier.{part}"},
        Matches(rf"[A-Za-z0-9]([\w.-]{{0,{most - 2}}}[A-Za-z0-9])?", f"1 to {most} letters, digits, hyphens, underscores and periods"),
        f"The entity name 'galleryImage.properties.identifier.{part}' is invalid according to its validation rule: ^{{pattern}}$. "
        "The value is '{value}'.",
        "https://learn.microsoft.com/rest/api/compute/gallery-images/create-or-update#galleryimageidentifier",
        target=f"galleryImage.properties.identifier.{part}",
        code_assumed=True,
    )


ROWS: tuple[Restriction, ...] = (
    Restriction(
        "softDeleteRetentionInDays",
        {VAULT: "properties.softDeleteRetentionInDays"},
        Between(7, 90),
        'The property "softDeleteRetentionInDays" is {value}; it must be from 7 to 90 days.',
        "https://learn.microsoft.com/azure/key-vault/general/soft-delete-overview#soft-delete-behavior",
        "BadRequest",
        code_assumed=True,
    ),
    Restriction(
        "accessPolicies",
        {VAULT: "properties.accessPolicies"},
        AtMost(1_024),
        "The vault '{name}' has {value} access policies, of at most 1024.",
        "https://learn.microsoft.com/azure/key-vault/general/assign-access-policy",
        "BadRequest",
        code_assumed=True,
    ),
    *(
        Restriction(
            f"networkAcls.{name}",
            {VAULT: f"properties.networkAcls.{name}"},
            AtMost(most),
            f"The vault '{{name}}' has {{value}} {name}, of at most {most}.",
            "https://learn.microsoft.com/azure/key-vault/general/network-security",
            "BadRequest",
            code_assumed=True,
        )
        for name, most in (("virtualNetworkRules", 200), ("ipRules", 1_000))
    ),
    *(
        Restriction(
            f"storage networkAcls.{name}",
            {ACCOUNT: f"properties.networkAcls.{name}"},
            AtMost(400),
            f"The storage account '{{name}}' has {{value}} {name}, of at most 400.",
            _ACCOUNTS,
            "NetworkAclsValidationFailure",
            code_assumed=True,
        )
        for name in ("virtualNetworkRules", "ipRules")
    ),
    Restriction(
        "storage ip rule",
        {ACCOUNT: "properties.networkAcls.ipRules[].value"},
        Where("a public IPv4 address, or a public CIDR of at most /30", _address_rule),
        "Values for request parameters are invalid: networkAcls.ipRule[*].value. The value is '{value}'. For more information, see - "
        "https://aka.ms/storagenetworkruleset",
        _ACCOUNTS,
        "InvalidValuesForRequestParameters",
        code_assumed=True,
    ),
    Restriction(
        "vault ip rule",
        {VAULT: "properties.networkAcls.ipRules[].value"},
        Where("an IPv4 address, or a CIDR without host bits", _vault_rule),
        "The vault '{name}' has the IP rule '{value}', which is no IPv4 address and no CIDR.",
        "https://learn.microsoft.com/rest/api/keyvault/keyvault/vaults/create-or-update#iprule",
        "BadRequest",
        code_assumed=True,
    ),
    *(
        Restriction(
            f"{name}.days",
            {BLOB_SERVICE: f"properties.{name}"},
            Where("1 to 365", _retention),
            f"Values for request parameters are invalid: {name}.days. The value is {{value}}, outside 1 to 365.",
            "https://learn.microsoft.com/rest/api/storagerp/blob-services/set-service-properties#deleteretentionpolicy",
            "InvalidValuesForRequestParameters",
            code_assumed=True,
        )
        for name in ("deleteRetentionPolicy", "containerDeleteRetentionPolicy")
    ),
    Restriction(
        "changeFeed.retentionInDays",
        {BLOB_SERVICE: "properties.changeFeed.retentionInDays"},
        Between(1, 146_000),
        "Values for request parameters are invalid: changeFeed.retentionInDays. The value is {value}, outside {bound}.",
        "https://learn.microsoft.com/rest/api/storagerp/blob-services/set-service-properties#changefeed",
        "InvalidValuesForRequestParameters",
        code_assumed=True,
    ),
    _identifier("publisher", 128),
    _identifier("offer", 64),
    _identifier("sku", 64),
    Restriction(
        "buildTimeoutInMinutes",
        {"Microsoft.VirtualMachineImages/imageTemplates": "properties.buildTimeoutInMinutes"},
        Between(0, 960),
        "The value '{value}' of properties.buildTimeoutInMinutes is invalid: it must be {bound}.",
        "https://learn.microsoft.com/azure/virtual-machines/linux/image-builder-json#properties-buildtimeoutinminutes",
        "ValidationFailed",
        code_assumed=True,
    ),
    *(
        Restriction(
            f"credential {name}",
            {"Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials": f"properties.{name}"},
            AtMost(600),
            f"The {name} of the federated identity credential '{{name}}' has {{value}} characters, of at most 600.",
            "https://learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations",
            "BadRequest",
            code_assumed=True,
        )
        for name in ("issuer", "subject")
    ),
    Restriction(
        "notes",
        {"Microsoft.Authorization/locks": "properties.notes"},
        AtMost(512),
        "The notes of the lock '{name}' have {value} characters, of at most 512.",
        "https://learn.microsoft.com/rest/api/resources/management-locks/create-or-update-by-scope",
        "InvalidLockNotes",
        code_assumed=True,
    ),
)
