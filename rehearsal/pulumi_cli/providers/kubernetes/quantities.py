"""When two ways of writing an amount mean the same: the API server writes 1000m as 1, and 1024Mi as 1Gi.

https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType

from rehearsal.pulumi_cli.providers.kubernetes.immutable import Path

HOLDERS = frozenset(
    {"capacity", "default", "defaultRequest", "divisor", "hard", "limits", "max", "min", "overhead", "requests", "sizeLimit"}
)
"""Fields that are amounts, or hold them by resource."""
FACTORS: Mapping[str, Decimal] = MappingProxyType(
    {
        **{unit: Decimal(1024) ** (power + 1) for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
        **{unit: Decimal(1000) ** (power - 3) for power, unit in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"))},
    }
)
_QUANTITY = re.compile(r"([+-]?[0-9]*\.?[0-9]+)(?:([eE][+-]?[0-9]+)|([KMGTPE]i|[numkMGTPE]?))")


def same_amount(path: Path, one: object, other: object) -> bool:
    """Whether two values are the same amount, where amounts stand."""
    if HOLDERS.isdisjoint(part for part in path if isinstance(part, str)):
        return False
    amount = _amount(one)
    return amount is not None and amount == _amount(other)


def _amount(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if not (match := _QUANTITY.fullmatch(str(value))):
        return None
    number, exponent, unit = match.groups()
    try:
        return Decimal(number + exponent) if exponent else Decimal(number) * FACTORS[unit]
    except InvalidOperation:
        return None
