"""What a raw region document says of its location and its quotas that cannot be meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from components.plan.locations import ZONAL_LOCATIONS
from components.plan.subscription_limits import ALL_FAMILIES, SPOT_FAMILY
from components.plan.validation_error import SIZES_LISTED, Contradiction, Raw, nearest
from components.plan.vm_sizes import VM_SIZES

FAMILIES = (*sorted({size.family for size in VM_SIZES.values()}), ALL_FAMILIES, SPOT_FAMILY)


def region_contradictions(document: Raw) -> Iterator[Contradiction]:
    """Contradictions of the region's own keys; what has not the right shape is the model's to tell."""
    location = document.get("location")
    if isinstance(location, str) and location not in ZONAL_LOCATIONS:
        remedy = nearest(location, ZONAL_LOCATIONS)
        yield Contradiction(("location",), location, "is no location of public Azure with availability zones", remedy)
    yield from _quotas(document)


def _quotas(document: Raw) -> Iterator[Contradiction]:
    """Quotas of families that no VM size has, and quotas given twice."""
    quotas = document.get("quotas")
    seen: dict[tuple[str, object], int] = {}
    for index, quota in enumerate(quotas if isinstance(quotas, list) else ()):
        family = quota.get("family") if isinstance(quota, Mapping) else None
        if not isinstance(family, str):
            continue
        place = ("quotas", index, "family")
        if family not in FAMILIES:
            reason = (
                f"is neither {ALL_FAMILIES} (all families together) nor {SPOT_FAMILY} (spot) nor the family of a size in {SIZES_LISTED}"
            )
            yield Contradiction(place, family, reason, nearest(family, FAMILIES))
        subscription = quota.get("subscription")
        key = (family, subscription if isinstance(subscription, str) else document.get("subscription"))
        if key in seen:
            reason = f"is declared already, by quotas[{seen[key]}]"
            yield Contradiction(place, family, reason, "leave one of the two out; a grant is one number per family and subscription")
        seen.setdefault(key, index)
