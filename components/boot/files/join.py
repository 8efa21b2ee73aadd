#!/usr/bin/env python3
"""Tell the kubelet who this machine is, free the addresses that pods will hold, and spread first joins over time."""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

IMDS = os.environ.get("GPUFLEET_IMDS", "http://169.254.169.254")
ENVIRONMENT = Path(os.environ.get("GPUFLEET_NODE_ENV", "/run/gpufleet/node.env"))
# Not the kubeconfig, which the kubelet writes before it has a certificate.
JOINED = Path(os.environ.get("GPUFLEET_KUBELET_CERTIFICATE", "/var/lib/kubelet/pki/kubelet-client-current.pem"))
TRIES = Path(os.environ.get("GPUFLEET_JOIN_TRIES", "/run/gpufleet/join-tries"))
METADATA_SECONDS = float(os.environ.get("GPUFLEET_DEADLINE_SECONDS", "300"))
LONGEST_WAIT_SECONDS = 300.0


class Refused(Exception):
    """Why the machine cannot join now."""


def say(text: str) -> None:
    print(f"gpufleet-join: {text}", file=sys.stderr, flush=True)


def metadata() -> dict[str, Any]:
    """What the metadata service says of this machine, tried until it answers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(f"{IMDS}/metadata/instance?api-version=2021-12-13", headers={"Metadata": "true"})
    end = time.monotonic() + METADATA_SECONDS
    wait = 1.0
    while True:
        try:
            with opener.open(request, timeout=10) as answer:
                found: dict[str, Any] = json.loads(answer.read())
                return found
        except (OSError, ValueError, http.client.HTTPException) as error:
            if time.monotonic() + wait > end:
                raise Refused(f"no answer from the metadata service: {error}") from None
            say(f"no answer from the metadata service: {error}; next try in {wait:.0f} s")
            time.sleep(wait)
            wait = min(wait * 2, 30.0)


def provider_id(compute: dict[str, Any]) -> str:
    """Azure's id of the machine as Kubernetes writes it: azure:// and the resource id of the scale set's instance."""
    scale_set, name = str(compute.get("vmScaleSetName", "")), str(compute.get("name", ""))
    instance = name.rpartition("_")[2]
    if not scale_set or name != f"{scale_set}_{instance}":
        raise Refused(f"machine {name!r} is no instance of scale set {scale_set!r}")
    group = str(compute["resourceGroupName"]).lower()
    return (
        f"azure:///subscriptions/{compute['subscriptionId']}/resourceGroups/{group}/providers/Microsoft.Compute"
        f"/virtualMachineScaleSets/{scale_set}/virtualMachines/{instance}"
    )


def own_address(network: dict[str, Any]) -> tuple[str, set[str]]:
    """The machine's own address, which is the source of what it sends, and the others, which are its pods'."""
    service = urllib.parse.urlsplit(IMDS)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((str(service.hostname), service.port or 80))
        own = str(probe.getsockname()[0])
    held = {str(entry["privateIpAddress"]) for card in network["interface"] for entry in card["ipv4"]["ipAddress"]}
    if own not in held:
        raise Refused(f"address {own} is none of the machine's: {', '.join(sorted(held))}")
    return own, held - {own}


def free(addresses: set[str]) -> None:
    """Take pods' addresses off the machine's interfaces: cloud-init puts every address of the machine there."""
    shown = subprocess.run(("ip", "-json", "-4", "address", "show"), check=True, stdout=subprocess.PIPE, text=True).stdout
    for card in json.loads(shown):
        for entry in card.get("addr_info", ()):
            if entry["local"] in addresses and entry.get("scope") == "global" and card["ifname"].startswith("eth"):
                subprocess.run(("ip", "address", "delete", f"{entry['local']}/{entry['prefixlen']}", "dev", card["ifname"]), check=True)


def wait_seconds(spread: float, tries: int, machine: str) -> float:
    """Seconds to wait before this start: none once joined; spread evenly at first; growing, and never in step, after a failure."""
    if JOINED.exists():
        return 0.0
    seed = int.from_bytes(hashlib.sha256(f"{machine}/{tries}".encode()).digest()[:8], "big")
    longest = spread if tries == 0 else min(LONGEST_WAIT_SECONDS, 5.0 * 2.0 ** min(tries, 10))
    return random.Random(seed).uniform(0.0, longest)


def count_try() -> int:
    """Starts of the kubelet since boot that came before this one."""
    try:
        tries = int(TRIES.read_text())
    except (OSError, ValueError):
        tries = 0
    replace(TRIES, f"{tries + 1}\n")
    return tries


def replace(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.next")
    aside.write_text(content)
    aside.rename(path)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gpufleet-join", description=__doc__)
    parser.add_argument("--spread-seconds", type=float, required=True, help="time over which the machines of the pool join")
    options = parser.parse_args(arguments[1:])
    if JOINED.exists() and ENVIRONMENT.exists():
        return 0
    try:
        found = metadata()
        own, others = own_address(found["network"])
        replace(ENVIRONMENT, f"GPUFLEET_NODE_IP={own}\nGPUFLEET_PROVIDER_ID={provider_id(found['compute'])}\n")
        free(others)
        wait = wait_seconds(options.spread_seconds, count_try(), str(found["compute"]["vmId"]))
    except (Refused, OSError, KeyError, subprocess.CalledProcessError) as error:
        say(f"cannot join: {error}")
        return 1
    if wait:
        say(f"joins in {wait:.1f} s")
        time.sleep(wait)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
