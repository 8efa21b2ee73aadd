"""Answers names as the resolver of the hub's network does: from the private zones that Azure has and that network knows, and no others.

https://learn.microsoft.com/azure/dns/dns-private-resolver-overview; Azure's also asks the internet, of which there is none inside.
"""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdatatype
import dns.rrset

from components.plan import naming
from components.plan.model import RegionPlan
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.network.private_dns import APEX, SOA, TYPES, ZONE
from rehearsal.azure.network.virtual_networks import LINKS
from rehearsal.azure.resource import Resource

PORT = 53
IDLE_SECONDS = 10.0
"""Seconds after which a connection without a question is closed."""
LENGTH = struct.Struct("!H")
"""What stands before a message on TCP: https://www.rfc-editor.org/rfc/rfc1035#section-4.2.2"""
Lookup = Callable[[dns.message.Message], dns.message.Message]


@dataclass(frozen=True)
class RecordData:
    """Records of one name and type: seconds to live, and data as a zone file has them."""

    ttl: int
    data: tuple[str, ...]


def hub_network_id(plan: RegionPlan) -> str:
    """Resource id of the hub's network."""
    return naming.resource_id(plan.spec.subscription, plan.base_resource_group, "Microsoft.Network", "virtualNetworks", plan.hub.vnet_name)


def resolve(cloud: Cloud, network: str, question: dns.message.Message) -> dns.message.Message:
    """What the resolver of a network says: records, NXDOMAIN within a zone that it knows, REFUSED elsewhere."""
    said = dns.message.make_response(question, recursion_available=True)
    if question.opcode() != dns.opcode.QUERY or len(question.question) != 1:
        said.set_rcode(dns.rcode.NOTIMP)
        return said
    asked = question.question[0]
    zone = _zone_of(cloud, network.lower(), asked.name)
    if zone is None:
        said.set_rcode(dns.rcode.REFUSED)
        return said
    origin = dns.name.from_text(zone.id.name)
    relative = asked.name.relativize(origin).to_text().lower()
    sets = {(one.id.type.rpartition("/")[2].upper(), one.id.name.lower()): one for one in _below(cloud, zone)}
    found = _records(sets, dns.rdatatype.to_text(asked.rdtype), relative)
    if found is not None:
        said.answer.append(dns.rrset.from_text(asked.name, found.ttl, asked.rdclass, asked.rdtype, *found.data))
        return said
    said.authority.append(dns.rrset.from_text(origin, _SOA.ttl, asked.rdclass, dns.rdatatype.SOA, *_SOA.data))
    if relative != APEX and not any(name == relative or name.endswith(f".{relative}") for _, name in sets):
        said.set_rcode(dns.rcode.NXDOMAIN)
    return said


@contextmanager
def serve_dns(address: str, lookup: Lookup) -> Iterator[None]:
    """Answer by UDP and TCP on an address as long as the context lasts; OSError where it is not ours to listen on."""

    def reply(wire: bytes) -> bytes | None:
        try:
            return lookup(dns.message.from_wire(wire)).to_wire()
        except dns.exception.DNSException:
            # No message, or an answer, which nobody answers.
            return None

    with _Datagrams(address, reply) as datagrams, _Streams(address, reply) as streams:
        threads = [threading.Thread(target=one.serve_forever, args=(0.1,), name="resolver", daemon=True) for one in (datagrams, streams)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for one in (datagrams, streams):
                one.shutdown()
            for thread in threads:
                thread.join()


def _soa() -> RecordData:
    told = SOA["soaRecord"]
    numbers = (told[name] for name in ("serialNumber", "refreshTime", "retryTime", "expireTime", "minimumTtl"))
    return RecordData(int(SOA["ttl"]), (f"{told['host']}. {told['email']}. {' '.join(map(str, numbers))}",))


_SOA = _soa()


def _zone_of(cloud: Cloud, network: str, name: dns.name.Name) -> Resource | None:
    """The zone, of those that a network knows, that has the longest part of a name."""
    zones = (cloud.resources[key] for key in list(cloud.index.of_type(ZONE)))
    known = [zone for zone in zones if name.is_subdomain(dns.name.from_text(zone.id.name)) and _linked(cloud, zone, network)]
    return max(known, key=lambda zone: len(zone.id.name), default=None)


def _linked(cloud: Cloud, zone: Resource, network: str) -> bool:
    """Whether a network knows a zone."""
    links = (one for one in _children(cloud, zone) if one.id.type.lower() == LINKS)
    return any(
        str(link.properties["virtualNetwork"]["id"]).lower() == network and link.properties["virtualNetworkLinkState"] == "Completed"
        for link in links
    )


def _below(cloud: Cloud, zone: Resource) -> Iterator[Resource]:
    """Record sets of a zone."""
    return (one for one in _children(cloud, zone) if one.id.type.lower() != LINKS)


def _children(cloud: Cloud, zone: Resource) -> Iterator[Resource]:
    return (cloud.resources[key] for key in list(cloud.index.children(zone.key)))


def _records(sets: dict[tuple[str, str], Resource], record_type: str, relative: str) -> RecordData | None:
    """Records of a type at a name within a zone; those of types that nobody here makes are not told."""
    if (record_type, relative) == ("SOA", APEX):
        return _SOA
    one = sets.get((record_type, relative))
    if one is None or record_type not in ("A", "AAAA", "CNAME"):
        return None
    kind = TYPES[record_type]
    return RecordData(int(one.properties["ttl"]), tuple(str(record[kind.key]) for record in kind.records(one.properties)))


class _Datagrams(socketserver.ThreadingUDPServer):
    """Questions by UDP."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: str, reply: Callable[[bytes], bytes | None]) -> None:
        self.reply = reply
        super().__init__((address, PORT), _Datagram)


class _Datagram(socketserver.BaseRequestHandler):
    server: _Datagrams

    def handle(self) -> None:
        """One question."""
        wire, listening = self.request
        if (said := self.server.reply(wire)) is not None:
            listening.sendto(said, self.client_address)


class _Streams(socketserver.ThreadingTCPServer):
    """Questions by TCP."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: str, reply: Callable[[bytes], bytes | None]) -> None:
        self.reply = reply
        super().__init__((address, PORT), _Stream)


class _Stream(socketserver.StreamRequestHandler):
    server: _Streams
    timeout = IDLE_SECONDS

    def handle(self) -> None:
        """Questions of one connection, until it ends."""
        try:
            while len(head := self.rfile.read(LENGTH.size)) == LENGTH.size:
                said = self.server.reply(self.rfile.read(LENGTH.unpack(head)[0]))
                if said is None:
                    return
                self.wfile.write(LENGTH.pack(len(said)) + said)
        except (TimeoutError, ConnectionError):
            return
