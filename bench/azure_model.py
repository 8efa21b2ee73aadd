"""Benchmark of a fleet's instances in the embedded Azure, compared with plain dictionaries."""

from __future__ import annotations

import cProfile
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from bench.child_process import Child, ChildError, run
from bench.command import BenchOutput, run_command
from bench.figures import Figure
from bench.machine_login import LOGIN
from bench.results import record_option

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

NODES = 22_500
TIMES = 3
"""Factor between the small and the large fleet when growth is measured."""
ADDRESSES = 8
NODES_PER_NETWORK, SETS_OF, NETWORKS_PER_SUBSCRIPTION = 7_500, 1_000, 3
SECONDS, MEGABYTES, GROWTH = 10.0, 400.0, 3.2
PIECES = ("fleet", "calls", "plain", "nothing")
Json = dict[str, Any]


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--rounds", type=click.IntRange(1, 20), default=3, show_default=True, help="Fresh processes for each figure.")
@click.option("--nodes", type=click.IntRange(1, 67_500), default=NODES, show_default=True, help="Instances of the smaller fleet.")
@click.option("--piece", type=click.Choice(PIECES), default=None, hidden=True)
@record_option
def main(rounds: int, nodes: int, piece: str | None, record: bool) -> None:
    """Measure what a fleet's instances cost in the embedded Azure, and print each figure beside its bound.

    \b
    fleet    scale sets of 1,000 machines with 8 addresses each are created to the end, then every instance and every
             network interface is listed once
    plain    the same instances as plain dictionaries with the same facts: what Python itself asks for them
    growth   the fleet three times as large, by CPU seconds and by calls of Python functions

    Each in a fresh process, interleaved. Exits 0 when every bound is kept, 1 when one is missed, 2 when something could not
    be measured.
    """
    if piece is not None:
        print(json.dumps(_PIECES[piece](nodes)))
        return
    output = BenchOutput()
    samples: dict[tuple[str, int], list[tuple[Child, Json]]] = {}
    for number in range(rounds):
        for name, count in (("nothing", 0), ("plain", nodes), ("fleet", nodes), ("fleet", nodes * TIMES)):
            output.say(f"{name} {count}, {number + 1} of {rounds}")
            child = run([sys.executable, "-m", "bench.azure_model", "--piece", name, "--nodes", str(max(count, 1))])
            samples.setdefault((name, count), []).append((child, json.loads(child.text)))
    for count in (nodes, nodes * TIMES):
        child = run([sys.executable, "-m", "bench.azure_model", "--piece", "calls", "--nodes", str(count)])
        samples["calls", count] = [(child, json.loads(child.text))]
    figures = list(_figures(samples, nodes, rounds))
    if record:
        output.record("azure-model", "Instances in the embedded Azure", "python -m bench.azure_model", figures)
    output.conclude(figures)


def _figures(samples: dict[tuple[str, int], list[tuple[Child, Json]]], nodes: int, rounds: int) -> Iterator[Figure]:
    small, large = samples["fleet", nodes], samples["fleet", nodes * TIMES]
    plain, nothing = samples["plain", nodes], samples["nothing", 0]
    how = f"median of {rounds} fresh processes"

    def median(rows: list[tuple[Child, Json]], key: str) -> float:
        return float(statistics.median(report[key] for _, report in rows))

    base = statistics.median(child.peak_mb for child, _ in nothing)
    yield Figure(f"create {nodes:,} instances, CPU", median(small, "create"), "s", SECONDS, how)
    yield Figure("list them all, CPU", median(small, "list"), "s", SECONDS, how)
    yield Figure("list all their interfaces, CPU", median(small, "interfaces"), "s", SECONDS, how)
    yield Figure("peak memory, all included", max(child.peak_mb for child, _ in small), "MB", MEGABYTES, f"most of {rounds}")
    yield Figure("of that, before the first instance", base, "MB", None, "the model, empty, with the shapes of all its types")
    yield Figure("plain dictionaries, CPU", median(plain, "create"), "s", None, how)
    yield Figure("plain dictionaries, memory beyond the empty model", median(plain, "mb"), "MB", None, how)
    yield Figure("create over plain dictionaries", median(small, "create") / median(plain, "create"), "", None, "the floor of the same run")
    for key in ("create", "list"):
        ratio = median(large, key) / median(small, key)
        yield Figure(f"{key}, {TIMES} times the nodes, CPU", ratio, "", None, "which whatever else runs on the machine changes")
        counted = [samples["calls", count][0][1][key] for count in (nodes, nodes * TIMES)]
        yield Figure(
            f"{key}, {TIMES} times the nodes, calls", counted[1] / counted[0], "", GROWTH, "Python calls, which nothing else changes"
        )


def _fleet(nodes: int) -> Json:
    """Create and list a fleet; return the CPU seconds of each step."""
    return _measured(nodes, time.process_time)


def _calls(nodes: int) -> Json:
    """Create and list a fleet; return the calls of Python functions in each step."""
    profile = cProfile.Profile(builtins=False)
    profile.enable()

    def so_far() -> float:
        profile.disable()
        calls = sum(entry.callcount for entry in profile.getstats())
        profile.enable()
        return float(calls)

    return _measured(nodes, so_far)


def _measured(nodes: int, reading: Callable[[], float]) -> Json:
    """Create and list a fleet; return the increase of a counter in each step."""
    from rehearsal.azure.compute.instance_network import INSTANCE

    subscriptions = [
        f"00000000-0000-0000-0000-{number:012d}" for number in range(1 + nodes // (NODES_PER_NETWORK * NETWORKS_PER_SUBSCRIPTION))
    ]
    cloud, put = _empty(subscriptions)
    began = reading()
    left = nodes
    for number in range(-(-nodes // NODES_PER_NETWORK)):
        group = f"/subscriptions/{subscriptions[number // NETWORKS_PER_SUBSCRIPTION]}/resourceGroups/cluster-{number}"
        subnet = _network(put, group)
        cloud.run_until_idle()
        for index in range(-(-min(left, NODES_PER_NETWORK) // SETS_OF)):
            count = min(left, SETS_OF, NODES_PER_NETWORK - index * SETS_OF)
            put(f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/pool-{index:03d}", _set(count, subnet))
            left -= count
    cloud.run_until_idle()
    created = reading()
    scopes = [f"/subscriptions/{one}" for one in subscriptions]
    listed = sum(1 for scope in scopes for _ in cloud.list(scope, INSTANCE))
    listing_ended = reading()
    interfaces = sum(1 for scope in scopes for _ in cloud.list(scope, f"{INSTANCE}/networkInterfaces"))
    ended = reading()
    if not listed == interfaces == nodes:
        raise ChildError([f"of {nodes} instances {listed} were listed"], 1)
    return {"create": created - began, "list": listing_ended - created, "interfaces": ended - listing_ended}


def _empty(subscriptions: list[str]) -> tuple[Cloud, Callable[[str, Json], None]]:
    """Return an empty Azure that has already served requests, and a function that creates a resource in it."""
    from rehearsal.azure.arm_id import parse
    from rehearsal.azure.registry import new_cloud
    from rehearsal.azure.resource import Request

    cloud = new_cloud(subscriptions, "00000000-0000-0000-0000-0000000000aa")

    def put(text: str, body: Json) -> None:
        cloud.handle(Request("PUT", parse(text), body=body))

    # The first bodies make the model read the shapes of every type, which takes longer than a fleet does.
    group = f"/subscriptions/{subscriptions[0]}/resourceGroups/first"
    subnet = _network(put, group)
    put(f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/first", _set(1, subnet))
    cloud.run_until_idle()
    cloud.handle(Request("DELETE", parse(group)))
    cloud.run_until_idle()
    # A garbage collection over all those shapes would happen in some measurements only, and distort the comparison.
    gc.collect()
    gc.freeze()
    return cloud, put


def _network(put: Callable[[str, Json], None], group: str) -> str:
    put(group, {"location": "swedencentral"})
    network = f"{group}/providers/Microsoft.Network/virtualNetworks/net"
    prefix = {
        "addressSpace": {"addressPrefixes": ["10.0.0.0/15"]},
        "subnets": [{"name": "nodes", "properties": {"addressPrefix": "10.0.0.0/16"}}],
    }
    put(network, {"location": "swedencentral", "properties": prefix})
    return f"{network}/subnets/nodes"


def _set(count: int, subnet: str) -> Json:
    configurations = [
        {"name": f"ipconfig{number}", "properties": {"primary": number == 1, "subnet": {"id": subnet}}}
        for number in range(1, ADDRESSES + 1)
    ]
    nic = {"name": "nic", "properties": {"primary": True, "enableAcceleratedNetworking": True, "ipConfigurations": configurations}}
    image = {"publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2404", "version": "latest"}
    return {
        "location": "swedencentral",
        "zones": ["1"],
        "sku": {"name": "Standard_NC24ads_A100_v4", "tier": "Standard", "capacity": count},
        "properties": {
            "orchestrationMode": "Uniform",
            "singlePlacementGroup": False,
            "platformFaultDomainCount": 1,
            "overprovision": False,
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "osProfile": {"computerNamePrefix": "pool-", **LOGIN, "customData": "Ym9vdA=="},
                "storageProfile": {"imageReference": image, "osDisk": {"createOption": "FromImage"}},
                "networkProfile": {"networkInterfaceConfigurations": [nic]},
            },
        },
    }


def _plain(nodes: int) -> Json:
    """Create the same instances as dictionaries; return CPU seconds, and MB beyond those of the empty model."""
    import psutil

    _empty(["00000000-0000-0000-0000-000000000000"])
    process = psutil.Process()
    before, began = process.memory_info().rss, time.process_time()
    instances = [
        {
            "id": number,
            "created": began,
            "state": "Succeeded",
            "power": "running",
            "zone": "1",
            "fault_domain": 0,
            "host": f"swedencentral/1/Standard_NC24ads_A100_v4/{number}",
            "model": 0,
            "os_disk": 1,
            "local_disks": 1,
            "ready": began + number,
            "addresses": [167_772_164 + number * ADDRESSES + place for place in range(ADDRESSES)],
        }
        for number in range(nodes)
    ]
    ended = time.process_time()
    return {"create": ended - began, "mb": (process.memory_info().rss - before) / 2**20, "kept": len(instances)}


def _nothing(_nodes: int) -> Json:
    """Create an empty model; the caller measures the memory of its process."""
    _empty(["00000000-0000-0000-0000-000000000000"])
    return {}


_PIECES = {"fleet": _fleet, "calls": _calls, "plain": _plain, "nothing": _nothing}

if __name__ == "__main__":
    run_command(main, ChildError)
