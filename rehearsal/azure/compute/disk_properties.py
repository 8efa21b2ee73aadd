"""Properties that Azure adds to managed disks: size in bytes, encryption, performance of a tier.

https://learn.microsoft.com/rest/api/compute/disks/create-or-update and https://learn.microsoft.com/azure/virtual-machines/disks-types
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from rehearsal.azure.resource import Json

_GIB = 1024**3
_SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_767)
_NUMBERS = (1, 2, 3, 4, 6, 10, 15, 20, 30, 40, 50, 60, 70, 80)
"""Greatest size in GiB and number of each tier: https://learn.microsoft.com/azure/virtual-machines/disks-types#premium-ssd-size"""
_P_IOPS = (120, 120, 120, 120, 240, 500, 1_100, 2_300, 5_000, 7_500, 7_500, 16_000, 18_000, 20_000)
_P_MBPS = (25, 25, 25, 25, 50, 100, 125, 150, 200, 250, 250, 500, 750, 900)
_E_IOPS, _E_MBPS = (*(500,) * 11, 2_000, 4_000, 6_000), (*(100,) * 11, 400, 600, 750)
_S_IOPS, _S_MBPS = (*(500,) * 11, 1_300, 2_000, 2_000), (*(60,) * 11, 300, 500, 500)
_TIERS: Mapping[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {
    "premium": ("P", _P_IOPS, _P_MBPS),
    "standardssd": ("E", _E_IOPS, _E_MBPS),
    "standard": ("S", _S_IOPS, _S_MBPS),
}
"""Letter, IOPS and MB/s of each tier by the first word of the SKU; Premium SSD v2 and Ultra disks have no tiers."""


def completed_disk_properties(given: Json) -> Json:
    """Return the properties of a disk with defaults that do not depend on its size."""
    image = "imageReference" in (given.get("creationData") or {}) or "galleryImageReference" in (given.get("creationData") or {})
    return {
        **({"hyperVGeneration": "V2", "supportedCapabilities": {"acceleratedNetwork": True}} if image else {}),
        "networkAccessPolicy": "AllowAll",
        "publicNetworkAccess": "Enabled",
        **given,
        "encryption": {"type": "EncryptionAtRestWithPlatformKey", **(given.get("encryption") or {})},
    }


def disk_performance(sku: str, properties: Json) -> Json:
    """Return the size in bytes, and for a SKU with tiers the tier (Premium only), IOPS and MB/s of a disk without given ones."""
    size = int(properties["diskSizeGB"])
    result: Json = {"diskSizeBytes": size * _GIB}
    row = _TIERS.get(sku.lower().partition("_")[0])
    if row is None:
        return result
    letter, iops, mbps = row
    index = min(bisect_left(_SIZES, size), len(_SIZES) - 1)
    if letter == "P":
        tier = str(properties.get("tier") or f"P{_NUMBERS[index]}")
        index = _NUMBERS.index(int(tier[1:])) if tier[1:].isdigit() and int(tier[1:]) in _NUMBERS else index
        result["tier"] = tier
    return {**result, "diskIOPSReadWrite": iops[index], "diskMBpsReadWrite": mbps[index]}
