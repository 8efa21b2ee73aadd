"""Process of a hub namespace: the embedded Azure over HTTPS, the hub's DNS resolver and the clusters, until its standard input ends."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from components.plan.model import RegionPlan
from rehearsal.arm.client_environment import ClientSettings
from rehearsal.arm.served_azure import open_live_model
from rehearsal.azure.directory_lock import DirectoryInUseError
from rehearsal.azure.directory_marker import ForeignDirectoryError
from rehearsal.azure.state_directory import StateCorruptError
from rehearsal.local_cluster.azure_service import AzureService
from rehearsal.local_cluster.hub.clusters import Clusters
from rehearsal.local_cluster.hub.dns_resolver import hub_network_id, resolve, serve_dns
from rehearsal.local_cluster.hub.hub_network import HubRequest
from stacks.file_problems import InvalidFileError

LOOK_SECONDS = 1.0
PORT = 8443
"""Port of Azure; nothing else uses this network."""


def main() -> None:
    """Read a HubRequest from standard input and serve it until that ends, or until SIGTERM or SIGINT.

    Print lines of JSON: {"say": TEXT}, {"ready": ENVIRONMENT} once, or {"refused": TEXT} and exit status 2.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    # Other output goes to the log.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def send(**message: object) -> None:
        lines.write(json.dumps(message) + "\n")

    request: HubRequest = pickle.load(sys.stdin.buffer)  # noqa: S301 (from the process that started this one)
    threading.Thread(target=_stop_at_end_of_input, args=(stop,), name="lifeline", daemon=True).start()
    try:
        serve(request, lambda ready: send(ready=ready), lambda text: send(say=text), stop)
    except (DirectoryInUseError, ForeignDirectoryError, StateCorruptError, InvalidFileError) as refused:
        send(refused=str(refused))
        sys.exit(2)
    except OSError as error:
        send(refused=f"{error.filename or request.folder}: {error.strerror or error}")
        sys.exit(2)


def _stop_at_end_of_input(stop: threading.Event) -> None:
    """Set stop when standard input ends, which is when the process that holds it ends."""
    # Not sys.stdin: Python aborts if a thread reads it while Python exits.
    while os.read(0, 1):
        pass
    stop.set()


def serve(request: HubRequest, ready: Callable[[Mapping[str, str]], None], say: Callable[[str], None], stop: threading.Event) -> None:
    """Serve until stop is set; raise DirectoryInUseError, ForeignDirectoryError, StateCorruptError, InvalidFileError or OSError."""
    plan, folder = request.plan, request.folder / "azure"
    with ExitStack() as ending:
        live = ending.enter_context(open_live_model(plan, folder, request.scenario, request.factor, keep=True))
        azure = ending.enter_context(AzureService(live, folder, PORT))
        network = hub_network_id(plan)
        ending.enter_context(serve_dns(plan.hub.resolver_address, lambda query: azure.call(lambda cloud: resolve(cloud, network, query))))
        clusters = ending.enter_context(Clusters(plan, azure, request.binaries, request.folder / "clusters", request.limit, say))
        ready(environment(azure, plan))
        while not stop.wait(LOOK_SECONDS):
            clusters.reconcile()


def environment(azure: AzureService, plan: RegionPlan) -> dict[str, str]:
    """Return the environment by which clients find this Azure and sign in: Azure's SDKs and Pulumi's providers."""
    door = ClientSettings(azure.base, azure.authority, str(plan.spec.access.tenant), plan.spec.subscription, azure.identity)
    return {**door.of_sdks(), **door.of_providers()}


if __name__ == "__main__":
    main()
