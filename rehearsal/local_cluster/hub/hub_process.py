"""Is what there is inside: the embedded Azure over HTTPS, the hub's resolver and the clusters, as long as another process holds a pipe."""

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
from rehearsal.arm.client_environment import Door
from rehearsal.arm.served_azure import take_up
from rehearsal.azure.state_directory import StateCorruptError, StateInUseError
from rehearsal.local_cluster.azure_service import AzureService
from rehearsal.local_cluster.hub.clusters import Clusters
from rehearsal.local_cluster.hub.dns_resolver import hub_network_id, resolve, serve_dns
from rehearsal.local_cluster.hub.hub_request import HubRequest
from stacks.file_problems import InvalidFileError

LOOK_SECONDS = 1.0
PORT = 8443
"""Where Azure is served, always: nobody else is in this network."""


def main() -> None:
    """Read a Wanted from standard input, and be it until that ends, or SIGTERM or SIGINT.

    Lines of JSON on standard output: {"say": TEXT}, {"ready": ENVIRONMENT} once, or {"refused": TEXT} and exit status 2.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    # What else is printed goes to the log.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def tell(**what: object) -> None:
        lines.write(json.dumps(what) + "\n")

    wanted: HubRequest = pickle.load(sys.stdin.buffer)  # noqa: S301 (from the process that started this one)
    threading.Thread(target=_outlive, args=(stop,), name="lifeline", daemon=True).start()
    try:
        serve(wanted, lambda ready: tell(ready=ready), lambda text: tell(say=text), stop)
    except (StateInUseError, StateCorruptError, InvalidFileError) as refused:
        tell(refused=str(refused))
        sys.exit(2)
    except OSError as error:
        tell(refused=f"{error.filename or wanted.folder}: {error.strerror or error}")
        sys.exit(2)


def _outlive(stop: threading.Event) -> None:
    """End when standard input does, which is when whoever holds it ends."""
    # Not by sys.stdin: a thread that reads it when Python ends by itself has it abort.
    while os.read(0, 1):
        pass
    stop.set()


def serve(wanted: HubRequest, ready: Callable[[Mapping[str, str]], None], say: Callable[[str], None], stop: threading.Event) -> None:
    """Be there until told to stop; StateInUse, StateBroken, FileRefused, OSError."""
    plan, folder = wanted.plan, wanted.folder / "azure"
    with ExitStack() as ending:
        live = ending.enter_context(take_up(plan, folder, wanted.scenario, wanted.factor, keep=True))
        azure = ending.enter_context(AzureService(live, folder, PORT))
        network = hub_network_id(plan)
        ending.enter_context(serve_dns(plan.hub.resolver_address, lambda asked: azure.ask(lambda cloud: resolve(cloud, network, asked))))
        clusters = ending.enter_context(Clusters(plan, azure, wanted.engines, wanted.folder / "clusters", wanted.most, say))
        ready(environment(azure, plan))
        while not stop.wait(LOOK_SECONDS):
            clusters.look()


def environment(azure: AzureService, plan: RegionPlan) -> dict[str, str]:
    """By which clients inside find this Azure and sign in: Azure's own SDKs, and what Pulumi's providers read."""
    door = Door(azure.base, azure.authority, str(plan.spec.access.tenant), plan.spec.subscription, azure.identity)
    return {**door.of_sdks(), **door.of_providers()}


if __name__ == "__main__":
    main()
