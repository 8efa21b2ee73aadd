"""Domain types of the region file: names, address blocks, versions and ids."""

from __future__ import annotations

import ipaddress
import re
from datetime import date
from string import hexdigits
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints

from components.spec.ssh_key import ssh_public_key

INTERNAL = ipaddress.IPv4Network("10.0.0.0/8")
"""Addresses that the traffic accounting counts as internal: https://openai.com/index/scaling-kubernetes-to-7500-nodes/"""

USUAL_LENGTH = 13
"""Prefix length of a region with one cluster, for examples."""
SHORTEST_RANGE = 8
"""Shortest prefix of a site's range; 172.16.0.0/12 and 192.168.0.0/16 are longer."""
RESERVED_LABELS = ("kubernetes.io", "k8s.io", "gpufleet.io")
"""Domains of labels that a region file must not set: kubelets refuse unknown keys of the first two; the plan sets those of the third:
https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction"""
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
"""Form of a date."""
YEARS = range(2000, 2100)
"""Years of dates."""


class Model(BaseModel):
    """Base of all models of the region file: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True)


def internal_block(value: str) -> str:
    """Return the value if it is an IPv4 network in 10.0.0.0/8 without host bits; otherwise raise ValueError."""
    try:
        network = ipaddress.IPv4Network(value, strict=False)
    except ValueError as error:
        raise ValueError("is no IPv4 network; write it as 10.A.B.C/LENGTH, for example 10.32.0.0/11") from error
    if "/" not in value:
        raise ValueError(f"has no prefix length; add it, for example {ipaddress.IPv4Network((value, USUAL_LENGTH), strict=False)}")
    if str(network) != value:
        raise ValueError(f"has host bits set or is not in canonical form; write {network}")
    if not network.subnet_of(INTERNAL):
        raise ValueError(f"lies outside {INTERNAL}, the addresses that traffic accounting counts as internal; choose a block inside it")
    return value


def outside_range(value: str) -> str:
    """Return the value if it is an IPv4 network outside 10.0.0.0/8, at most a /8, without host bits; otherwise raise ValueError."""
    try:
        network = ipaddress.IPv4Network(value, strict=False)
    except ValueError as error:
        raise ValueError("is no IPv4 network; write it as A.B.C.D/LENGTH, for example 172.16.0.0/12") from error
    if "/" not in value:
        raise ValueError(f"has no prefix length; write {value}/32 for one address, or the length of the range")
    if str(network) != value:
        raise ValueError(f"has host bits set or is not in canonical form; write {network}")
    if network.overlaps(INTERNAL):
        raise ValueError(f"overlaps {INTERNAL}, which is never translated; give ranges outside it")
    if network.prefixlen < SHORTEST_RANGE:
        raise ValueError(f"is larger than a /{SHORTEST_RANGE}, and most of the internet would not answer; give the ranges of your site")
    return value


def uuid_text(value: str) -> str:
    """Return the value if it is a UUID in canonical lower-case form; otherwise raise ValueError."""
    try:
        canonical = str(UUID(value))
    except ValueError as error:
        wrong = next((letter for letter in value if letter not in f"{hexdigits}-"), None)
        reason = (
            f"{len(value.replace('-', ''))} hexadecimal digits, not 32" if wrong is None else f"{wrong!r}, which is no hexadecimal digit"
        )
        raise ValueError(f"is no UUID: it has {reason}; write 8-4-4-4-12 hexadecimal digits") from error
    if canonical != value:
        raise ValueError(f"is not in canonical form; write {canonical}")
    return value


def team_name(value: str) -> str:
    """Return the value if it is not the name of a system namespace, since a team's namespace has its name; otherwise raise ValueError."""
    if value == "default" or value.startswith(("kube-", "gpufleet-")):
        raise ValueError("is a system namespace; give the team another name")
    return value


def calendar_date(value: object) -> object:
    """Return the date of a text YYYY-MM-DD of this century, and a date unchanged; otherwise raise ValueError."""
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or not DATE.fullmatch(value):
        raise ValueError('is no date; write year, month and day in quotes: "2026-12-19"')
    try:
        found = date.fromisoformat(value)
    except ValueError as error:
        raise ValueError(f"is no day of the calendar ({error}); correct the month or the day") from error
    if found.year not in YEARS:
        raise ValueError(f"is not in the years {YEARS[0]} to {YEARS[-1]}; correct the year")
    return found


def free_label_key(value: str) -> str:
    """Return the value if its prefix is not reserved for Kubernetes or gpufleet; otherwise raise ValueError."""
    prefix = value.rpartition("/")[0]
    if prefix in RESERVED_LABELS or prefix.endswith(tuple(f".{domain}" for domain in RESERVED_LABELS)):
        raise ValueError(f"is reserved for {prefix}: the kubelet or the API server would reject it; use another prefix, or none")
    return value


FORMS: dict[str, str] = {}
"""Description of each pattern: error messages and the reference page show the description, JSON schemas the pattern."""


EXAMPLES: dict[str, str] = {}
"""Text that matches each pattern: error messages compare a wrong text with it."""


def form(pattern: str, words: str, *, example: str = "", max_length: int | None = None) -> StringConstraints:
    """Return a constraint for a pattern, and register its description and an example, by default the description's last word."""
    FORMS[pattern] = words
    EXAMPLES[pattern] = example or words.rpartition(" ")[2].strip('"')
    return StringConstraints(pattern=pattern, max_length=max_length)


Cidr = Annotated[str, AfterValidator(internal_block)]
OutsideRange = Annotated[str, AfterValidator(outside_range)]
Uuid = Annotated[str, AfterValidator(uuid_text)]
SshPublicKey = Annotated[str, AfterValidator(ssh_public_key)]
RegionName = Annotated[str, form(r"^[a-z][a-z0-9]{1,19}$", "2 to 20 lower-case letters and digits, a letter first: southcentralus")]
ClusterName = Annotated[
    str,
    form(
        r"^[a-z][a-z0-9-]{0,10}[a-z0-9]$", "2 to 12 lower-case letters, digits and hyphens, a letter first and no hyphen last: research-a"
    ),
]
PoolName = Annotated[
    str, form(r"^[a-z][a-z0-9-]{0,14}[a-z0-9]$", "2 to 16 lower-case letters, digits and hyphens, a letter first and no hyphen last: h100")
]
TeamName = Annotated[
    str,
    form(
        r"^[a-z][a-z0-9-]{0,38}[a-z0-9]$", "2 to 40 lower-case letters, digits and hyphens, a letter first and no hyphen last: pretraining"
    ),
    AfterValidator(team_name),
]
AzureLocation = Annotated[str, form(r"^[a-z][a-z0-9]{2,29}$", "a location as Azure names it, in lower case without spaces: southcentralus")]
VmSizeName = Annotated[str, form(r"^Standard_[A-Za-z0-9_]{2,40}$", "a VM size as Azure names it: Standard_ND96isr_H100_v5")]
KubernetesVersion = Annotated[str, form(r"^1\.[0-9]{2}\.[0-9]{1,3}$", 'a whole version in quotes, without a v: "1.36.3"')]
Domain = Annotated[
    str,
    form(
        r"^[a-z0-9][a-z0-9-]{0,30}(\.[a-z0-9][a-z0-9-]{0,30}){1,4}$",
        "2 to 5 lower-case words with dots between them: fleet.internal",
        max_length=100,
    ),
]
ImagePin = Annotated[
    str, form(r"^[a-z][a-z0-9-]{0,30}@[0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,9}$", "name@version, as published: nd-h100@2026.11.0")
]
ImageName = Annotated[str, form(r"^[a-z][a-z0-9-]{0,30}$", "1 to 31 lower-case letters, digits and hyphens, a letter first: nd-h100")]
ImageVersion = Annotated[str, form(r"^[0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,9}$", 'MAJOR.MINOR.PATCH in quotes: "2026.11.0"')]
LabelKey = Annotated[
    str,
    form(
        r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$",
        "a label key: at most 63 letters, digits, hyphens, dots and underscores, a domain and a slash before them if need be: role",
    ),
    AfterValidator(free_label_key),
]
LabelValue = Annotated[
    str,
    form(
        r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$",
        "at most 63 letters, digits, hyphens, dots and underscores, a letter or digit first and last: services",
    ),
]
TimeOfDay = Annotated[str, form(r"^([01][0-9]|2[0-3]):[0-5][0-9]$", 'a time of day in quotes, "00:00" to "23:59"')]
TimeZone = Annotated[
    str,
    form(
        r"^[A-Za-z][A-Za-z0-9_+-]{1,30}(/[A-Za-z0-9_+-]{1,30}){0,2}$",
        "UTC, or a time zone of the IANA database, Area/City: America/Chicago",
    ),
]
Date = Annotated[date, BeforeValidator(calendar_date)]
ReservationGroupId = Annotated[
    str,
    form(
        r"^/subscriptions/[0-9a-f-]{36}/resourceGroups/[^/]{1,90}/providers/Microsoft\.Compute/capacityReservationGroups/[^/]{1,80}$",
        "the id of a capacity reservation group: /subscriptions/…/resourceGroups/…/providers/Microsoft.Compute/capacityReservationGroups/…",
        example="/subscriptions/000000000000000000000000000000000000/resourceGroups/a/providers/Microsoft.Compute/capacityReservationGroups/a",
    ),
]
CaptureId = Annotated[
    str,
    form(
        r"^/subscriptions/[0-9a-f-]{36}/resourceGroups/[^/]{1,90}/providers/Microsoft\.Compute/(images|virtualMachines)/[^/]{1,80}$",
        "the id of a managed image or of a generalised machine: /subscriptions/…/resourceGroups/…/providers/Microsoft.Compute/images/…",
        example="/subscriptions/000000000000000000000000000000000000/resourceGroups/a/providers/Microsoft.Compute/images/a",
    ),
]
