"""DNS resolver of the hub namespace: it answers from the private zones that Azure has linked to the hub's network, and refuses other names.

https://learn.microsoft.com/azure/dns/dns-private-resolver-overview; Azure's resolver also queries the internet, which the namespace lacks.
"""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import dns.exception
import dns.message
import dns.name
import dns.opcode
import dns.query
import dns.rcode
import dns.rdatatype
import dns.rrset

from components.plan import naming
from components.plan.model import RegionPlan
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.network.private_dns import APEX, RECORD_SET_TYPES, SOA, ZONE
from rehearsal.azure.network.virtual_networks import LINKS
from rehearsal.azure.resource import Resource

PORT = 53
IDLE_SECONDS = 10.0
"""Time without a query after which a TCP connection is closed."""
Lookup = Callable[[dns.message.Message], dns.message.Message]


@dataclass(frozen=True)
class RecordData:
    """Records of one name and type: time to live in seconds, and data in zone file format."""

    ttl: int
    data: tuple[str, ...]


def hub_network_id(plan: RegionPlan) -> str:
    """Return the resource id of the hub's network."""
    return naming.resource_id(plan.spec.subscription, plan.base_resource_group, "Microsoft.Network", "virtualNetworks", plan.hub.vnet_name)


def resolve(cloud: Cloud, network: str, query: dns.message.Message) -> dns.message.Message:
    """Return the response of a network's resolver: records, NXDOMAIN within a linked zone, REFUSED elsewhere."""
    response = dns.message.make_response(query, recursion_available=True)
    if query.opcode() != dns.opcode.QUERY or len(query.question) != 1:
        response.set_rcode(dns.rcode.NOTIMP)
        return response
    question = query.question[0]
    zone = _zone_of(cloud, network.lower(), question.name)
    if zone is None:
        response.set_rcode(dns.rcode.REFUSED)
        return response
    origin = dns.name.from_text(zone.id.name)
    relative = question.name.relativize(origin).to_text().lower()
    sets = {(one.id.type.rpartition("/")[2].upper(), one.id.name.lower()): one for one in _record_sets(cloud, zone)}
    found = _records(sets, dns.rdatatype.to_text(question.rdtype), relative)
    if found is not None:
        response.answer.append(dns.rrset.from_text(question.name, found.ttl, question.rdclass, question.rdtype, *found.data))
        return response
    response.authority.append(dns.rrset.from_text(origin, _SOA.ttl, question.rdclass, dns.rdatatype.SOA, *_SOA.data))
    if relative != APEX and not any(name == relative or name.endswith(f".{relative}") for _, name in sets):
        response.set_rcode(dns.rcode.NXDOMAIN)
    return response


@contextmanager
def serve_dns(address: str, lookup: Lookup) -> Iterator[None]:
    """Answer queries by UDP and TCP on an address until the context ends; raise OSError if the address cannot be used."""

    class DatagramHandler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            """Answer one query; ignore what is no query."""
            wire, listener = self.request
            with suppress(dns.exception.DNSException):
                listener.sendto(lookup(dns.message.from_wire(wire)).to_wire(), self.client_address)

    class StreamHandler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            """Answer the queries of one connection until it ends, is idle, or sends what is no query."""
            self.request.settimeout(IDLE_SECONDS)
            with suppress(dns.exception.DNSException, EOFError, OSError):
                while True:
                    dns.query.send_tcp(self.request, lookup(dns.query.receive_tcp(self.request)[0]))

    with _DatagramServer((address, PORT), DatagramHandler) as datagrams, _StreamServer((address, PORT), StreamHandler) as streams:
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


class _DatagramServer(socketserver.ThreadingUDPServer):
    allow_reuse_address = daemon_threads = True


class _StreamServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


def _soa() -> RecordData:
    record = SOA["soaRecord"]
    numbers = (record[name] for name in ("serialNumber", "refreshTime", "retryTime", "expireTime", "minimumTtl"))
    return RecordData(int(SOA["ttl"]), (f"{record['host']}. {record['email']}. {' '.join(map(str, numbers))}",))


_SOA = _soa()


def _zone_of(cloud: Cloud, network: str, name: dns.name.Name) -> Resource | None:
    """Return the zone with the longest suffix of a name, of the zones that are linked to a network."""
    zones = (cloud.resources[key] for key in list(cloud.index.of_type(ZONE)))
    linked = [zone for zone in zones if name.is_subdomain(dns.name.from_text(zone.id.name)) and _is_linked(cloud, zone, network)]
    return max(linked, key=lambda zone: len(zone.id.name), default=None)


def _is_linked(cloud: Cloud, zone: Resource, network: str) -> bool:
    """Return True if a zone is linked to a network."""
    links = (one for one in _children(cloud, zone) if one.id.type.lower() == LINKS)
    return any(
        str(link.properties["virtualNetwork"]["id"]).lower() == network and link.properties["virtualNetworkLinkState"] == "Completed"
        for link in links
    )


def _record_sets(cloud: Cloud, zone: Resource) -> Iterator[Resource]:
    """Return the record sets of a zone."""
    return (one for one in _children(cloud, zone) if one.id.type.lower() != LINKS)


def _children(cloud: Cloud, zone: Resource) -> Iterator[Resource]:
    return (cloud.resources[key] for key in list(cloud.index.children(zone.key)))


def _records(sets: dict[tuple[str, str], Resource], record_type: str, relative: str) -> RecordData | None:
    """Return the records of a type at a name within a zone, or None; only the types that the program creates are supported."""
    if (record_type, relative) == ("SOA", APEX):
        return _SOA
    one = sets.get((record_type, relative))
    if one is None or record_type not in ("A", "AAAA", "CNAME"):
        return None
    kind = RECORD_SET_TYPES[record_type]
    return RecordData(int(one.properties["ttl"]), tuple(str(record[kind.key]) for record in kind.records(one.properties)))
