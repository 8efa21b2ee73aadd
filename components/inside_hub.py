"""Decides whether Pulumi runs inside the hub's network, before anything of a region is touched."""

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
    """Why this machine is not inside the hub's network, in one line; None where the hub's resolver knows the hub's private zone.

    A connection alone proves nothing: some networks accept every one.
    """
    try:
        answer = dns.query.tcp(dns.message.make_query(zone, dns.rdatatype.SOA), resolver, timeout=ANSWER_SECONDS, port=port)
        if answer.answer:
            return None
        found = f"does not know {zone} ({dns.rcode.to_text(answer.rcode())})"
    except (OSError, EOFError, dns.exception.DNSException) as error:
        found = f"does not answer within {ANSWER_SECONDS} s ({(error.strerror if isinstance(error, OSError) else None) or error})"
    return (
        f"the hub's resolver {resolver}:{port} {found}: "
        f"this machine is not in the hub's network; dial in to VPN gateway {gateway}, or use a machine in the hub's runner subnet"
    )


class InsideHubProvider(ResourceProvider):
    """Looks whenever Pulumi previews or updates the stack, and keeps nothing."""

    waits_for_cloud: ClassVar[bool] = True
    serialize_as_secret_always = False

    def check(self, _olds: Mapping[str, Any], news: dict[str, Any]) -> CheckResult:
        """Refuse to go on from outside the hub's network."""
        reason = outside(news["resolver"], int(news["port"]), news["zone"], news["gateway"])
        return CheckResult(news, [] if reason is None else [CheckFailure("resolver", reason)])

    def create(self, props: Mapping[str, Any]) -> CreateResult:
        """Nothing is left to do once the check has passed."""
        return CreateResult(str(props["resolver"]), dict(props))

    def update(self, _id: str, _olds: Mapping[str, Any], news: Mapping[str, Any]) -> UpdateResult:
        """Nothing is left to do once the check has passed."""
        return UpdateResult(dict(news))


@dataclass(frozen=True)
class InsideHubArgs:
    hub: HubPlan


class InsideHub(Resource, module="inside_hub", name="InsideHub"):
    """Stands for being inside the hub's network: API servers have no address outside it."""

    def __init__(self, name: str, args: InsideHubArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        hub = args.hub
        props = {"resolver": hub.resolver_address, "port": DNS_PORT, "zone": hub.private_zone, "gateway": hub.gateway_name}
        super().__init__(InsideHubProvider(), name, props, opts)
