"""ARM resource ids: subscription, resource group, provider, types and names, compared without regard to case.

https://learn.microsoft.com/azure/azure-resource-manager/templates/template-functions-resource#resourceid
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rehearsal.azure.errors import invalid

GROUP_TYPE = "Microsoft.Resources/resourceGroups"
SUBSCRIPTION_TYPE = "Microsoft.Resources/subscriptions"


@dataclass(frozen=True, slots=True)
class ArmId:
    """A parsed id. text keeps the caller's capitals; key is the text in lower case, by which Azure compares.

    type is provider and types (Microsoft.Network/virtualNetworks/subnets) as written; names are those below it, outermost first.
    scope is the id that the last `/providers/` hangs on (group, subscription, or another resource for extension resources).
    """

    text: str
    subscription: str
    group: str
    scope: str
    type: str
    names: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.text.lower()

    @property
    def name(self) -> str:
        return self.names[-1]

    @property
    def parent(self) -> str | None:
        """Return the id of the parent resource; None for a top-level resource."""
        return self.text.rsplit("/", 2)[0] if len(self.names) > 1 else None

    @property
    def group_id(self) -> str:
        """Return the id of the resource group; empty outside a group."""
        return f"/subscriptions/{self.subscription}/resourceGroups/{self.group}" if self.group else ""


@lru_cache(maxsize=65_536)
def parse(text: str) -> ArmId:
    """Parse an id. Raises AzureError InvalidResourceId."""
    parts = text.split("/")
    if len(parts) < 3 or parts[0] or parts[1].lower() != "subscriptions" or "" in parts[1:]:
        raise _malformed(text)
    subscription = parts[2]
    group = parts[4] if len(parts) > 4 and parts[3].lower() == "resourcegroups" else ""
    lowered = [part.lower() for part in parts]
    if "providers" not in lowered:
        if len(parts) == 3:
            return ArmId(text, subscription, "", "", SUBSCRIPTION_TYPE, (subscription,))
        if len(parts) == 5 and group:
            return ArmId(text, subscription, group, "/".join(parts[:3]), GROUP_TYPE, (group,))
        raise _malformed(text)
    last = len(lowered) - 1 - lowered[::-1].index("providers")
    tail = parts[last + 1 :]
    if len(tail) < 3 or len(tail) % 2 == 0:
        raise _malformed(text)
    return ArmId(text, subscription, group, "/".join(parts[:last]), "/".join((tail[0], *tail[1::2])), tuple(tail[2::2]))


def _malformed(text: str) -> Exception:
    return invalid(f"'{text[:200]}' is no resource id", code="InvalidResourceId")
