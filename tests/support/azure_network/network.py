"""Azure's network for tests: delivery by address, source checks, and translation of outgoing packets."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.azure_network.machine import Machine
from tests.support.azure_network.namespaces import Namespace, make, sweep
from tests.support.azure_network.platform_services import IMDS, RESOLVES_TO, WIRE_SERVER, Metadata, network_document, served

ROUTER_MAC = "12:34:56:78:9a:bc"
"""MAC address in the response to every ARP request of a machine on Azure, https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq."""

INTERNET = RESOLVES_TO
"""The server on the internet."""

OTHER_INTERNET = "198.51.100.11"
"""Another server on the internet."""

NAT_GATEWAY = "203.0.113.7"
"""The public address that the internet sees."""

BEHIND_NAT = "203.0.113.1"

TO_INTERNET = "to-internet"
NOWHERE = "nowhere"
LEAVERS = "may-leave"

_number = itertools.count(1)


@dataclass
class Azure:
    """One virtual network with its NAT gateway, and the internet behind it."""

    tag: str
    folder: Path
    namespace: Namespace
    internet: Namespace
    plugins: Mapping[str, Path]
    secondaries_leave: bool
    machines: list[Machine] = field(default_factory=list)
    metadata: dict[str, Metadata] = field(default_factory=dict)

    def machine(
        self,
        name: str,
        primary: str,
        secondaries: Sequence[str] = (),
        prefix_length: int = 24,
        environment: Mapping[str, str] | None = None,
    ) -> Machine:
        """Start a machine with one NIC: the primary address is on its eth0, the secondary ones only in Azure.

        The name has at most 10 letters; `environment` is added to that of every command on it.
        """
        subnet = ipaddress.ip_network(f"{primary}/{prefix_length}", strict=False)
        router = str(subnet[1])
        mac = "00:0d:3a:" + ":".join(f"{byte:02x}" for byte in ipaddress.ip_address(primary).packed[1:])
        inside = make(f"gf-{self.tag}-{name}")
        inside.environment.update(environment or {})
        addresses = [primary, *secondaries]
        metadata = Metadata({"network": network_document(mac, addresses, str(subnet.network_address), prefix_length)})
        folder = self.folder / name
        folder.mkdir()
        machine = Machine(inside, name, mac, primary, tuple(secondaries), prefix_length, metadata, folder, self.plugins)
        self.machines.append(machine)
        self._plug_in(machine, router, str(subnet))
        self.metadata.update(dict.fromkeys(addresses, metadata))
        return machine

    def refused(self, machine: Machine) -> int:
        """Return the number of the machine's packets that were dropped because their source was none of its addresses."""
        for line in self.namespace.run("iptables", "-t", "raw", "-nvxL", "PREROUTING").splitlines():
            if f"to-{machine.name} " in line:
                return int(line.split()[0])
        raise LookupError(machine.name)

    def let_secondaries_leave(self, allowed: bool) -> None:
        """Set whether the NAT gateway accepts packets of secondary addresses; it always accepts those of primary addresses."""
        self.secondaries_leave = allowed
        words = ("add", "-exist") if allowed else ("del", "-exist")
        for secondary in (address for machine in self.machines for address in machine.secondaries):
            self.namespace.run("ipset", words[0], LEAVERS, secondary, words[1])

    def _plug_in(self, machine: Machine, router: str, subnet: str) -> None:
        """Connect the NIC: its other end accepts only the machine's own addresses, and delivers to them without ARP."""
        fabric, inside, device = self.namespace, machine.inside, f"to-{machine.name}"
        fabric.run(
            "ip",
            "link",
            "add",
            device,
            "address",
            ROUTER_MAC,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "address",
            machine.mac,
            "netns",
            inside.name,
        )
        for setting in ("conf/{}/proxy_arp=1", "conf/{}/send_redirects=0", "neigh/{}/proxy_delay=0"):
            _set(fabric, setting.format(device))
        fabric.run("ip", "link", "set", device, "up")
        fabric.run("ip", "address", "replace", f"{router}/32", "dev", "lo")
        fabric.run("ip", "route", "replace", subnet, "dev", NOWHERE)
        own = f"of-{machine.name}"
        mine = [machine.primary, *machine.secondaries]
        leavers = mine if self.secondaries_leave else [machine.primary]
        lines = [f"create {own} hash:ip", *(f"add {own} {one}" for one in mine), *(f"add {LEAVERS} {one}" for one in leavers)]
        fabric.run("ipset", "restore", given="\n".join(lines) + "\n")
        fabric.run("iptables", "-t", "raw", "-A", "PREROUTING", "-i", device, "-m", "set", "!", "--match-set", own, "src", "-j", "DROP")
        batch = [
            f"neigh replace {one} lladdr {machine.mac} dev {device} nud permanent\nroute replace {one}/32 dev {device}" for one in mine
        ]
        fabric.run("ip", "-batch", "-", given="\n".join(batch) + "\n")
        for setting in ("ip_forward=0", "conf/all/rp_filter=0", "conf/default/rp_filter=1", "conf/eth0/rp_filter=1"):
            _set(inside, setting)
        # What Azure's DHCP tells: the router, and a route of its own to each of the platform's addresses.
        inside.run("ip", "address", "add", f"{machine.primary}/{machine.prefix_length}", "dev", "eth0")
        inside.run("ip", "link", "set", "eth0", "up")
        for target in ("default", IMDS, WIRE_SERVER):
            inside.run("ip", "route", "add", target, "via", router, "dev", "eth0", "proto", "dhcp", "src", machine.primary, "metric", "100")


@contextlib.contextmanager
def fabric(plugins: Mapping[str, Path], secondaries_leave: bool = False) -> Iterator[Azure]:
    """Create a virtual network without machines and remove it after the block. plugins are its machines' CNI plugins by name."""
    sweep()
    tag = f"{os.getpid()}-{next(_number)}"
    folder = Path(tempfile.mkdtemp(prefix=f"gf-{tag}-"))
    made: list[Namespace] = []
    azure: Azure | None = None
    try:
        made.append(make(f"gf-{tag}-fabric"))
        made.append(make(f"gf-{tag}-internet"))
        azure = Azure(tag, folder, made[0], made[1], plugins, secondaries_leave)
        _lay_out(azure.namespace, azure.internet)
        with served(azure.namespace, azure.metadata):
            yield azure
    finally:
        for machine in azure.machines if azure else ():
            machine.remove()
        for namespace in made:
            namespace.remove()
        shutil.rmtree(folder, ignore_errors=True)


def _lay_out(fabric: Namespace, internet: Namespace) -> None:
    """Add Azure's own addresses, the NAT gateway, and the internet, which has a route only to the gateway's public address."""
    for setting in ("ip_forward=1", "conf/all/rp_filter=0", "conf/default/rp_filter=0", "conf/all/send_redirects=0"):
        _set(fabric, setting)
    fabric.run("ip", "link", "add", NOWHERE, "type", "ifb")
    fabric.run("ip", "link", "set", NOWHERE, "up")
    fabric.run("ip", "route", "add", "10.0.0.0/8", "dev", NOWHERE)
    for address in (IMDS, WIRE_SERVER):
        fabric.run("ip", "address", "add", f"{address}/32", "dev", "lo")
    fabric.run("ip", "link", "add", TO_INTERNET, "type", "veth", "peer", "name", "eth0", "netns", internet.name)
    fabric.run("ip", "address", "add", f"{NAT_GATEWAY}/24", "dev", TO_INTERNET)
    internet.run("ip", "address", "add", f"{BEHIND_NAT}/24", "dev", "eth0")
    for address in (INTERNET, OTHER_INTERNET):
        internet.run("ip", "address", "add", f"{address}/32", "dev", "lo")
    fabric.run("ip", "link", "set", TO_INTERNET, "up")
    internet.run("ip", "link", "set", "eth0", "up")
    fabric.run("ip", "route", "add", "default", "via", BEHIND_NAT)
    fabric.run("ipset", "create", LEAVERS, "hash:ip")
    fabric.run("iptables", "-t", "nat", "-A", "POSTROUTING", "-o", TO_INTERNET, "-j", "SNAT", "--to-source", NAT_GATEWAY)
    rule = ("-A", "FORWARD", "-o", TO_INTERNET, "-m", "set", "!", "--match-set", LEAVERS, "src", "-j", "DROP")
    fabric.run("iptables", "-t", "mangle", *rule)


def _set(namespace: Namespace, setting: str) -> None:
    name, _, value = setting.partition("=")
    namespace.run("sh", "-c", f"echo {value} >/proc/sys/net/ipv4/{name}")
