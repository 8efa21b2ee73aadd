"""The restrictions of all types, and their check before a type sees a request."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.restrictions import disks, images, machines, names, networks, placement, stores
from rehearsal.azure.restrictions.restriction import Restriction, Subject, values_at

RESTRICTIONS: tuple[Restriction, ...] = (
    *names.ROWS,
    *machines.ROWS,
    *disks.ROWS,
    *images.ROWS,
    *placement.ROWS,
    *networks.ROWS,
    *stores.ROWS,
)

LISTED_IN = {
    "Microsoft.Network/networkSecurityGroups/securityRules": ("Microsoft.Network/networkSecurityGroups", "securityRules"),
    "Microsoft.Network/routeTables/routes": ("Microsoft.Network/routeTables", "routes"),
    "Microsoft.Network/virtualNetworks/subnets": ("Microsoft.Network/virtualNetworks", "subnets"),
}
"""Child types that the body of their parent can list: the parent's type and its property."""


class RestrictionCheck:
    """Check of a PUT, or of the PUT that a PATCH amounts to. It implements `RequestCheck` of rehearsal/azure/cloud.py."""

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None, /) -> None:
        """Raise AzureError for the first restriction that the request breaks."""
        subject = Subject(cloud, arm_id, body, previous)
        for steps, row in rows_of(arm_id.type.lower()):
            if row.creation_only and previous is not None:
                continue
            for value in (arm_id.name,) if steps == ("name",) else values_at(body, steps):
                fields = row.rule.broken(value, subject)
                if fields is not None:
                    raise row.refusal(subject, fields)


@cache
def rows_of(resource_type: str) -> tuple[tuple[tuple[str, ...], Restriction], ...]:
    """Return the rows of a type in lower case with their places as steps; * is a row of every type."""
    return tuple((steps, row) for kind, steps, row in _places() if kind in ("*", resource_type))


def _places() -> Iterable[tuple[str, tuple[str, ...], Restriction]]:
    for row in RESTRICTIONS:
        for kind, place in row.places.items():
            yield kind.lower(), tuple(place.split(".")) if place else (), row
            if kind in LISTED_IN:
                parent, collection = LISTED_IN[kind]
                yield parent.lower(), ("properties", f"{collection}[]", *place.split(".")), row
