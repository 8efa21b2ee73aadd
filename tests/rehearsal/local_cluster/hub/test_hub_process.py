"""In the hub namespace the program's checks pass, and the clusters survive any end of the process that runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hub_holder import Holder
from saved_region import SavedRegion
from waiting import until

from components.plan import naming
from components.plan.model import API_SERVER_PORT
from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.hub.hub_network import HubNetworkError, hub_namespace
from stacks.load import load_plan

pytestmark = [pytest.mark.usefixtures("namespaces")]

CHECKS = """
import base64, sys, yaml
from components.inside_hub import outside
from components.ready import Endpoint, WaitTimes, wait_until_ready
resolver, zone, host, port, kubeconfig = sys.argv[1:]
print(outside(resolver, 53, zone, "gateway"))
authority = yaml.safe_load(open(kubeconfig))["clusters"][0]["cluster"]["certificate-authority-data"]
wait_until_ready(Endpoint(host, int(port), base64.b64decode(authority).decode()), WaitTimes(20, 20, 1, 5), print)
print("ready")
"""
CALL = """
import json, os, ssl, sys, urllib.parse, urllib.request
base = "https://" + os.environ["ARM_METADATA_HOST"]
who = {"grant_type": "client_credentials", "client_id": os.environ["ARM_CLIENT_ID"], "client_secret": os.environ["ARM_CLIENT_SECRET"]}
form = urllib.parse.urlencode({**who, "scope": base + "/.default"}).encode()
token = json.load(urllib.request.urlopen(f"{base}/{os.environ['ARM_TENANT_ID']}/oauth2/v2.0/token", form))["access_token"]
method, path = sys.argv[1:3]
body = sys.argv[3].encode() if len(sys.argv) > 3 else None
asked = urllib.request.Request(base + path, body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"}, method=method)
print(urllib.request.urlopen(asked).status)
"""
COMPUTE = "?api-version=2024-11-01"


def _kubectl(held: Holder, region: SavedRegion, binaries: Binaries, *words: str, given: str | None = None) -> str:
    """Return kubectl's output in the namespace, with the administrator's unchanged kubeconfig, which has the servers' DNS name."""
    return held.run(str(binaries.program("kubectl")), f"--kubeconfig={region.kubeconfig}", "--request-timeout=30s", *words, given=given)


def test_the_programs_checks_pass_and_what_was_written_outlasts_a_kill(saved_region: SavedRegion, binaries: Binaries) -> None:
    hub, servers = saved_region.plan.hub, saved_region.cluster.api_servers
    given = (hub.resolver_address, hub.private_zone, servers.dns_name, str(API_SERVER_PORT), str(saved_region.kubeconfig))
    note = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "note", "namespace": "default"}, "data": {"said": "before"}}
    with saved_region.start() as first:
        assert first.python(CHECKS, *given) == "None\nready\n"
        _kubectl(first, saved_region, binaries, "create", "-f", "-", given=json.dumps(note))
        with (
            pytest.raises(HubNetworkError, match=r"azure is in use by (another )?process"),
            hub_namespace(saved_region.plan, saved_region.folder),
        ):
            raise AssertionError
        first.kill()
    quorums = sum(len(ring.members) // 2 + 1 for ring in (saved_region.cluster.etcd, saved_region.cluster.events_etcd))
    assert len(saved_region.disks) == quorums
    with Holder(saved_region.plan.name, saved_region.folder) as second:
        _lose_machines(second, saved_region)
        found = json.loads(_kubectl(second, saved_region, binaries, "get", "configmap", "note", "-o", "json"))
        assert found["data"] == {"said": "before"}
        who = json.loads(_kubectl(second, saved_region, binaries, "auth", "whoami", "-o", "json"))
        assert who["status"]["userInfo"]["username"] == "gpufleet-break-glass"
        _lose_the_quorum(second, saved_region)


def _lose_machines(held: Holder, region: SavedRegion) -> None:
    """Delete a member's machine, which one that did not run replaces, and then an API server that has just begun to boot."""
    cluster = region.cluster
    first, _, third = (one.name for one in cluster.etcd.members)
    number = held.wait_for("API servers start from their boot files")
    _delete_member(held, region, first)
    number = held.wait_for(f"have changed: 1 end here, and in their place: {third}", number)
    servers = naming.resource_id(
        cluster.subscription, cluster.resource_group, "Microsoft.Compute", "virtualMachineScaleSets", cluster.api_servers.name
    )
    held.python(CALL, "POST", f"{servers}/delete{COMPUTE}", json.dumps({"instanceIds": ["0"]}))
    number = held.wait_for("its API servers in Azure have changed", number)
    held.wait_for("its API servers answer", number)
    assert not any("its control plane ends" in one for one in held.said)
    assert first not in region.disks
    assert third in region.disks


def _lose_the_quorum(held: Holder, region: SavedRegion) -> None:
    """Delete another member's machine, so that one of three remains."""
    _, second, third = (one.name for one in region.cluster.etcd.members)
    _delete_member(held, region, second)
    held.wait_for("too few of its etcd machines are left in Azure for a quorum: its control plane ends")
    until(lambda: second not in region.disks and third in region.disks, "its disk is gone too, and the other's is not")


def _delete_member(held: Holder, region: SavedRegion, name: str) -> None:
    cluster = region.cluster
    machine = naming.resource_id(cluster.subscription, cluster.resource_group, "Microsoft.Compute", "virtualMachines", name)
    held.python(CALL, "DELETE", f"{machine}{COMPUTE}")


def test_a_folder_of_another_region_is_refused_and_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "region").write_text("swedencentral\n")
    with (
        pytest.raises(HubNetworkError, match="holds the region swedencentral, not dev; give another directory"),
        hub_namespace(load_plan("dev"), tmp_path),
    ):
        raise AssertionError
    assert [one.name for one in tmp_path.iterdir()] == ["region"]


def test_a_scenario_that_there_is_not_is_refused_in_a_sentence(saved_region: SavedRegion) -> None:
    with (
        pytest.raises(HubNetworkError, match="no-such-scenario"),
        hub_namespace(saved_region.plan, saved_region.folder, scenario="no-such-scenario"),
    ):
        raise AssertionError
    assert (saved_region.folder / "world.log").read_text() == "", "it ends in order"
