"""The resolver knows what the hub's network knows in the model at that moment, and says of everything else that it does not."""

from __future__ import annotations

from collections.abc import Iterator

import dns.message
import dns.rcode
import pytest
from saved_region import SavedRegion

from rehearsal.azure.arm_id import parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.network.private_dns import ZONE
from rehearsal.azure.persistence import open_cloud
from rehearsal.azure.resource import Request
from rehearsal.azure.state_directory import StateDirectory
from rehearsal.local_cluster.hub.dns_resolver import hub_network_id, resolve


@pytest.fixture
def cloud(saved_region: SavedRegion) -> Iterator[Cloud]:
    """The model as it was kept, to be changed as a test likes."""
    with StateDirectory(saved_region.folder / "azure") as directory:
        yield open_cloud(directory, Cloud)  # type: ignore[arg-type] # it is there


def _ask(cloud: Cloud, region: SavedRegion, name: str, kind: str) -> tuple[str, list[str], list[str]]:
    """Status, answers and authorities, as texts."""
    said = dns.message.from_wire(resolve(cloud, hub_network_id(region.plan), dns.message.make_query(name, kind)).to_wire())
    return dns.rcode.to_text(said.rcode()), [one.to_text() for one in said.answer], [one.to_text() for one in said.authority]


def test_it_tells_the_zone_and_the_api_servers_as_azures_does(cloud: Cloud, saved_region: SavedRegion) -> None:
    zone, servers = saved_region.plan.hub.private_zone, saved_region.cluster.api_servers
    authority = f"{zone}. 3600 IN SOA azureprivatedns.net. azureprivatedns-host.microsoft.com. 1 3600 300 2419200 10"
    assert _ask(cloud, saved_region, zone, "SOA") == ("NOERROR", [authority], [])
    assert _ask(cloud, saved_region, servers.dns_name.upper(), "A") == (
        "NOERROR",
        [f"{servers.dns_name.upper()}. 300 IN A {servers.address}"],
        [],
    )
    assert _ask(cloud, saved_region, servers.dns_name, "AAAA") == ("NOERROR", [], [authority])
    assert _ask(cloud, saved_region, servers.dns_name.partition(".")[2], "A") == ("NOERROR", [], [authority])
    assert _ask(cloud, saved_region, f"nobody.{zone}", "A") == ("NXDOMAIN", [], [authority])


def test_it_refuses_names_of_the_internet_and_of_zones_that_the_hubs_network_does_not_know(cloud: Cloud, saved_region: SavedRegion) -> None:
    assert _ask(cloud, saved_region, "management.azure.com", "A") == ("REFUSED", [], [])
    known = {cloud.resources[key].id.name for key in cloud.index.of_type(ZONE)}
    assert saved_region.cluster.network.private_zone in known
    member = saved_region.cluster.etcd.members[0].dns_name
    assert _ask(cloud, saved_region, member, "A")[0] in ("REFUSED", "NXDOMAIN")


def test_a_record_is_known_as_soon_as_the_model_has_it_and_a_zone_only_while_it_is_linked(cloud: Cloud, saved_region: SavedRegion) -> None:
    zone = next(
        cloud.resources[key] for key in cloud.index.of_type(ZONE) if cloud.resources[key].id.name == saved_region.plan.hub.private_zone
    )
    record = parse(f"{zone.id.text}/A/new")
    body = {"properties": {"ttl": 60, "aRecords": [{"ipv4Address": "10.1.2.3"}, {"ipv4Address": "10.1.2.4"}]}}
    cloud.admission_checks.clear()
    cloud.handle(Request("PUT", record, api_version="2024-06-01", body=body))
    _, said, _ = _ask(cloud, saved_region, f"new.{zone.id.name}", "A")
    assert sorted(said[0].splitlines()) == [f"new.{zone.id.name}. 60 IN A 10.1.2.{last}" for last in (3, 4)]
    (link,) = [one for key in cloud.index.children(zone.key) if "virtualnetworklinks" in key for one in [cloud.resources[key]]]
    cloud.handle(Request("DELETE", link.id, api_version="2024-06-01"))
    cloud.advance(cloud.now + 3_600)
    assert _ask(cloud, saved_region, f"new.{zone.id.name}", "A") == ("REFUSED", [], [])
