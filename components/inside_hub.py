"""Check that Pulumi runs inside the hub's network, before any resource of a region changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, Resource, ResourceProvider, UpdateResult

from components.plan.model import HubPlan

DNS_PORT = 53
ANSWER_SECONDS = 5


def outside(resolver: str, port: int, zone: str, gateway: str) -> str | None:
    """Return the reason why this machine is not inside the hub's network; None if the hub's resolver serves the hub's private zone.

    A connection alone is no proof, since some networks accept all connections.
    """
    try:
        answer = dns.query.tcp(dns.message.make_query(zone, dns.rdatatype.SOA), resolver, timeout=ANSWER_SECONDS, port=port)
        if answer.answer:
            return None
        found = f"does not serve {zone} ({dns.rcode.to_text(answer.rcode())})"
    except (OSError, EOFError, dns.exception.DNSException) as error:
        found = f"does not answer within {ANSWER_SECONDS} s ({(error.strerror if isinstance(error, OSError) else None) or error})"
    return (
        f"the hub's resolver {resolver}:{port} {found}: "
        f"this machine is not in the hub's network; dial in to VPN gateway {gateway}, or use a machine in the hub's runner subnet"
    )


class InsideHubProvider(ResourceProvider):
    """Check at each preview and update of the stack; the resource has no state."""

    waits_for_cloud: ClassVar[bool] = True
    serialize_as_secret_always = False

    def check(self, _olds: Mapping[str, Any], news: dict[str, Any]) -> CheckResult:
        """Return a failure outside the hub's network."""
        reason = outside(news["resolver"], int(news["port"]), news["zone"], news["gateway"])
        return CheckResult(news, [] if reason is None else [CheckFailure("resolver", reason)])

    def create(self, props: Mapping[str, Any]) -> CreateResult:
        """Return the inputs; the check does all work."""
        return CreateResult(str(props["resolver"]), dict(props))

    def update(self, _id: str, _olds: Mapping[str, Any], news: Mapping[str, Any]) -> UpdateResult:
        """Return the inputs; the check does all work."""
        return UpdateResult(dict(news))


@dataclass(frozen=True)
class InsideHubArgs:
    hub: HubPlan


class InsideHub(Resource, module="inside_hub", name="InsideHub"):
    """Resource for the check; API servers have no address outside the hub's network."""

    def __init__(self, name: str, args: InsideHubArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        hub = args.hub
        props = {"resolver": hub.resolver_address, "port": DNS_PORT, "zone": hub.private_zone, "gateway": hub.gateway_name}
        super().__init__(InsideHubProvider(), name, props, opts)
