"""VM sizes outside the plan's table: their vCPUs, family and features, read from the name.

https://learn.microsoft.com/azure/virtual-machines/vm-naming-conventions, and for names before that convention
https://learn.microsoft.com/azure/virtual-machines/sizes-previous-gen
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from components.plan.vm_sizes import VM_SIZES, VmSize

_SOURCE = "https://learn.microsoft.com/azure/virtual-machines/vm-naming-conventions"
_FAMILIES = "A|B|D|DC|E|EB|EC|F|FX|H|HB|HC|HX|L|M|NC|NCC|ND|NG|NM|NP|NV"
_NAME = re.compile(
    rf"Standard_(?P<family>{_FAMILIES})(?P<vcpus>[1-9]\d{{0,3}})(?:-(?P<used>[1-9]\d{{0,2}}))?(?P<features>[abdefilmnoprstx]*)"
    r"(?P<rest>(?:_(?!v\d)[A-Z0-9]{1,16}){0,2})(?:_v(?P<version>[1-9]))?",
    re.IGNORECASE,
)
"""[Family] + [Sub-family] + [vCPUs] + [constrained vCPUs] + [features] + [accelerator] + [memory capacity] + [version]."""
_VERSIONED = frozenset({"A", "D", "DC", "E", "EB", "EC", "NCC", "NG", "NM"})
"""Families without a size whose name has no version, except those of _NUMBERED."""
_NUMBERED = re.compile(
    r"(?:Standard|Basic)_(?P<series>A|D|DS|G|GS)(?P<number>\d{1,2})(?:-(?P<used>\d{1,2}))?(?P<version>_v2)?", re.IGNORECASE
)
_A = {0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 2, 6: 4, 7: 8, 8: 8, 9: 16, 10: 8, 11: 16}
_D = {1: 1, 2: 2, 3: 4, 4: 8, 5: 16, 11: 2, 12: 4, 13: 8, 14: 16, 15: 20}
_G = {1: 2, 2: 4, 3: 8, 4: 16, 5: 32}
_NUMBERED_VCPUS = {"A": _A, "D": _D, "DS": _D, "G": _G, "GS": _G}
"""vCPUs of sizes whose name has a number of its own."""


@dataclass(frozen=True)
class NamedSize(VmSize):
    """A size of which only the name is known: its memory, local disks and limits are unknown, so rules about them do not apply."""


_BY_NAME = {name.lower(): size for name, size in VM_SIZES.items()}


@lru_cache(maxsize=4_096)
def vm_size(name: str) -> VmSize | None:
    """Return the size of a name in any case: a row of the plan's table, or what the name tells; None if it is no name of a size."""
    known = _BY_NAME.get(name.lower())
    if known is not None:
        return known
    numbered = _NUMBERED.fullmatch(name)
    # A sizes of version 2 follow the convention.
    return _numbered(name, numbered) if numbered and not (numbered["series"].upper() == "A" and numbered["version"]) else _named(name)


def _numbered(name: str, found: re.Match[str]) -> NamedSize | None:
    vcpus = _NUMBERED_VCPUS[found["series"].upper()].get(int(found["number"]))
    if vcpus is None:
        return None
    family = f"standard{found['series'].upper()}{(found['version'] or '').lower().lstrip('_')}Family"
    return NamedSize(name, family=family, vcpus=int(found["used"] or vcpus), memory_gib=0, source=_SOURCE)


def _named(name: str) -> NamedSize | None:
    found = _NAME.fullmatch(name)
    if found is None or (found["family"].upper() in _VERSIONED and not found["version"]):
        return None
    family, features, rest = found["family"].upper(), found["features"].upper(), found["rest"].replace("_", "").upper()
    version = f"v{found['version']}" if found["version"] else ""
    return NamedSize(
        name,
        family=f"standard{family}{features}{rest}{version}Family",
        vcpus=int(found["used"] or found["vcpus"]),
        memory_gib=0,
        infiniband_ports=1 if "R" in features else 0,
        source=_SOURCE,
    )
