"""Requests to Azure's instance metadata service, and validation of its answers."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import re
import socket
import threading
import time
import urllib.parse
from collections.abc import Sequence

from cni.node.errors import NodeNetworkError, shown
from cni.node.machine import Link, Machine, link_of

METADATA_URL = "http://169.254.169.254"
PATH = "/metadata/instance/network?api-version=2021-02-01"
"""https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service"""
SECONDS = 5.0
"""Time limit of one whole answer; the service runs on the machine's own host."""
LONGEST_ANSWER_BYTES = 1 << 20
"""A card has at most 256 addresses, of about 60 bytes each:
https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#azure-resource-manager-virtual-networking-limits
"""
REMEDY = "the request is repeated; if the error persists, look at the machine's network card in Azure"
MAC = re.compile(r"[0-9A-Fa-f]{12}")
PREFIX = re.compile(r"[0-9]{1,2}")


def request_machine(url: str, found: Sequence[Link]) -> Machine:
    """Return the machine as the service at url (http://HOST[:PORT]) describes it now; NodeNetworkError for any invalid answer."""
    try:
        document = json.loads(_get(url))
    except (ValueError, RecursionError):
        raise NodeNetworkError(url, "the answer is no JSON", "an object in JSON", REMEDY) from None
    return parse_machine(document, found)


def _get(url: str) -> bytes:
    """Return the body of one answer 200, without proxy or redirect, of bounded size, complete within SECONDS."""
    end = time.monotonic() + SECONDS
    connection = _connection(url)
    try:
        connection.connect()
    except OSError as error:
        raise NodeNetworkError(url, f"no connection ({error.strerror or type(error).__name__})", "HTTP 200", REMEDY) from None
    cut = threading.Timer(SECONDS, _cut, (connection.sock,))
    cut.start()
    try:
        connection.request("GET", PATH, headers={"Metadata": "true"})
        with connection.getresponse() as answer:
            body = _body(url, answer)
        if time.monotonic() > end:
            raise TimeoutError
        if answer.length:
            raise NodeNetworkError(url, f"an answer cut off {answer.length} bytes before its end", "a whole answer", REMEDY)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, TimeoutError) or time.monotonic() >= end:
            raise NodeNetworkError(url, f"no whole answer within {SECONDS:.0f} s", "an answer in that time", REMEDY) from None
        raise NodeNetworkError(url, f"no answer ({getattr(error, 'strerror', None) or type(error).__name__})", "HTTP 200", REMEDY) from None
    else:
        return body
    finally:
        cut.cancel()
        connection.close()


def _body(url: str, answer: http.client.HTTPResponse) -> bytes:
    if answer.status != http.client.OK:
        raise NodeNetworkError(url, f"HTTP {answer.status}", "HTTP 200", REMEDY)
    body = b""
    while piece := answer.read1(65_536):
        body += piece
        if len(body) > LONGEST_ANSWER_BYTES:
            raise NodeNetworkError(url, f"an answer of more than {LONGEST_ANSWER_BYTES} bytes", "that many at most", REMEDY)
    return body


def _connection(url: str) -> http.client.HTTPConnection:
    try:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError
        return http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=SECONDS)
    except (ValueError, http.client.InvalidURL):
        raise NodeNetworkError("--imds", shown(url), "http://HOST[:PORT]", "leave it out on a machine of Azure") from None


def _cut(connected: socket.socket) -> None:
    """Shut down a connection: a socket's own time limit restarts with every byte."""
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def parse_machine(document: object, found: Sequence[Link]) -> Machine:
    """Return the machine that a network document describes, given its links; NodeNetworkError for an invalid document.

    The card is the only one of the document, or the one whose link has the default route. Its first address is the machine's own, which the
    link must have. All addresses differ and are in one of the card's subnets.
    """
    cards = _objects(_field(document, "interface", "document"), "interface")
    macs = [_mac(card) for card in cards]
    if len(set(macs)) != len(macs):
        raise _invalid("interface", f"two cards of one address among {', '.join(macs)}", "every card has an address of its own")
    pairs = [(card, link) for card in cards if (link := link_of(_mac(card), found)) is not None]
    if len(cards) > 1:
        pairs = [(card, link) for card, link in pairs if link.default_route]
    if len(pairs) != 1:
        what = f"cards {', '.join(macs) or '(none)'}, links {', '.join(f'{link.name} {link.mac}' for link in found)}"
        raise _invalid("interface", what, "one card is that of one link, with the default route where there are several cards")
    card, link = pairs[0]
    return _of_card(card, link)


def _of_card(card: dict[str, object], link: Link) -> Machine:
    ipv4 = _field(card, "ipv4", "interface")
    rows = _objects(_field(ipv4, "ipAddress", "ipv4"), "ipAddress")
    addresses = [_address(_field(row, "privateIpAddress", "ipAddress"), "privateIpAddress") for row in rows]
    if len(addresses) < 2:
        raise _invalid("ipAddress", f"{len(addresses)} addresses", "the machine's own and at least one for a pod")
    if len(set(addresses)) != len(addresses):
        twice = next(one for one in addresses if addresses.count(one) > 1)
        raise _invalid("ipAddress", f"{twice} twice", "every address once")
    primary = addresses[0]
    if str(primary) not in link.addresses:
        has = ", ".join(link.addresses) or "none"
        raise _invalid("ipAddress", f"{primary} first", f"the first address is the machine's own, of which link {link.name} has {has}")
    subnet = _subnet_of(primary, _objects(_field(ipv4, "subnet", "ipv4"), "subnet"))
    for one in addresses:
        if one not in subnet or one in (subnet.network_address, subnet.broadcast_address):
            raise _invalid("ipAddress", str(one), f"it is an address for machines in subnet {subnet}")
    # Sorted: the same addresses in another order are the same machine.
    return Machine(link.name, link.mac, str(primary), tuple(str(one) for one in sorted(addresses[1:])), subnet.prefixlen)


def _subnet_of(primary: ipaddress.IPv4Address, rows: list[dict[str, object]]) -> ipaddress.IPv4Network:
    for row in rows:
        address, prefix = _address(_field(row, "address", "subnet"), "address"), _field(row, "prefix", "subnet")
        if not isinstance(prefix, str) or not PREFIX.fullmatch(prefix) or not 8 <= int(prefix) <= 29:
            raise _invalid("prefix", shown(prefix), 'it is a text from "8" to "29"')
        try:
            subnet = ipaddress.IPv4Network((int(address), int(prefix)))
        except ValueError:
            raise _invalid("subnet", f"{address}/{prefix}", "it is a network without host bits") from None
        if primary in subnet:
            return subnet
    raise _invalid("subnet", f"{len(rows)} subnets without {primary}", "one of them holds the machine's own address")


def _invalid(what: str, value: str, bound: str) -> NodeNetworkError:
    return NodeNetworkError(f"{what} of the metadata service's answer", value, bound, REMEDY)


def _field(value: object, name: str, where: str) -> object:
    if not isinstance(value, dict) or name not in value:
        raise _invalid(where, shown(value), f"an object that has {name}")
    return value[name]


def _objects(value: object, where: str) -> list[dict[str, object]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise _invalid(where, shown(value), "a list of objects")
    return value


def _mac(card: dict[str, object]) -> str:
    value = _field(card, "macAddress", "interface")
    if not isinstance(value, str) or not MAC.fullmatch(value):
        raise _invalid("macAddress", shown(value), "it is 12 hexadecimal digits")
    return ":".join(value[at : at + 2] for at in range(0, 12, 2)).lower()


def _address(value: object, where: str) -> ipaddress.IPv4Address:
    try:
        if not isinstance(value, str):
            raise ValueError
        return ipaddress.IPv4Address(value)
    except ValueError:
        raise _invalid(where, shown(value), "it is an IPv4 address") from None


REPEATS = 5
"""Number of identical answers in a row before an incomplete or changed one is accepted."""


class MetadataTrust:
    """The accepted description of the machine, from the answers of the metadata service.

    An answer is accepted at once if it repeats the accepted one, or has all of its addresses and at least as many as planned. Any other
    answer, and one with another card or own address, is accepted after REPEATS identical answers in a row: it may be half of an answer that
    is still changing. Invalid answers do not get here.
    """

    def __init__(self, planned: int, last: Machine | None) -> None:
        self.planned = planned
        self.accepted = last
        self._last_answer: Machine | None = None
        self._times = 0

    def accept(self, answer: Machine) -> bool:
        """Record one answer; return whether it is the accepted one now."""
        self._times = self._times + 1 if answer == self._last_answer else 1
        self._last_answer = answer
        if answer == self.accepted or self._complete(answer) or self._times >= REPEATS:
            self.accepted = answer
        return answer == self.accepted

    def _complete(self, answer: Machine) -> bool:
        if len(answer.secondaries) < self.planned:
            return False
        last = self.accepted
        return last is None or (_card(answer) == _card(last) and set(answer.secondaries) >= set(last.secondaries))

    def warnings(self) -> list[str]:
        """Return warnings about the accepted answer, one line each."""
        has = 0 if self.accepted is None else len(self.accepted.secondaries)
        if self.accepted is None or has >= self.planned:
            return []
        what = f"network card {self.accepted.interface} has {has} addresses for pods; planned are {self.planned}"
        return [f"{what}; the node takes fewer pods; compare the scale set's ipConfigurations with the region file"]


def _card(machine: Machine) -> tuple[str, str, str, int]:
    return machine.interface, machine.mac, machine.primary, machine.prefix_length
