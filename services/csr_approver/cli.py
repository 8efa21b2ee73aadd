"""Program that approves kubelets' certificates; it ends when it can no longer work, so that another instance takes over."""

from __future__ import annotations

import _thread
import datetime
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.parse import urlsplit

import click
import yaml
from azure.identity import ManagedIdentityCredential
from kubernetes import client, config

from services.csr_approver.approval_loop import ApprovalLoop, ServiceUnreachableError
from services.csr_approver.attestation_trust import azure_roots, roots_in
from services.csr_approver.attested_data import Trust
from services.csr_approver.azure_scale_sets import RESOURCE_MANAGER, AzureScaleSets
from services.csr_approver.bootstrap_tokens import BootstrapTokens, KeyVault, SecretTokens, rotate_tokens
from services.csr_approver.first_requests import FirstRequests
from services.csr_approver.issue_records import ApiNodes, ConfigMapRecords
from services.csr_approver.kubernetes_api import PendingEvent, SettledEvent, SigningRequests
from services.csr_approver.leadership import KUBERNETES_ERRORS, Lease, acquire_lease, one_line, pause_after, renew_lease

LOG = logging.getLogger("gpufleet.csr-approver")
RESOURCE_MANAGER_VARIABLE = "GPUFLEET_RESOURCE_MANAGER"
ROOTS_VARIABLE = "GPUFLEET_ATTESTATION_ROOTS"
LEASE_NAMESPACE = "kube-system"
LEASE_NAME = "gpufleet-csr-approver"
EVENT_QUEUE_SIZE = 1_000
"""Events that are read before they are processed; a full queue stops the watch."""
API_SERVER_TIMEOUT_SECONDS = 900.0
"""Silence of the API server after which this process ends; a watch counts as dead after 180 s, so this is several attempts."""
WRITERS = 8
"""Requests whose decisions are written at the same time: 3 calls each, of the 20 seats of the smallest API server's level for the fleet."""
KUBECONFIG_CHECK_SECONDS = 60.0
"""Interval of checks of the kubeconfig, as in Kubernetes' own programs."""


def api_client(kubeconfig: Path) -> client.ApiClient:
    """Return a client for the API server of a kubeconfig's current context; ClickException, in one line, for an invalid file."""
    try:
        found: client.ApiClient = config.new_client_from_config(config_file=str(kubeconfig))  # type: ignore[no-untyped-call]
    except (config.ConfigException, yaml.YAMLError, TypeError, KeyError, ValueError, OSError) as error:
        what = " ".join(str(error).split())[:200]
        remedy = "give a file with clusters, users, contexts and a current-context"
        raise click.ClickException(f"{kubeconfig} is not a usable kubeconfig ({what}); {remedy}") from error
    return found


def resource_manager() -> str:
    """Return the base URL of Azure Resource Manager from the environment; ClickException for one that would send the token unencrypted."""
    url = os.environ.get(RESOURCE_MANAGER_VARIABLE) or RESOURCE_MANAGER
    try:
        parts = urlsplit(url)
        good = (
            parts.scheme == "https"
            and bool(parts.hostname)
            and parts.path in ("", "/")
            and not (parts.query or parts.fragment or "@" in url)
        )
        good = good and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise click.ClickException(
            f"{RESOURCE_MANAGER_VARIABLE} is {url[:200]!r}; give https://HOST or https://HOST:PORT, or leave it unset"
        )
    return url.rstrip("/")


def attestation_trust(file: Path | None) -> Trust:
    """Return the roots of attested data: those of a file, or Azure's; ClickException for a file without certificates."""
    try:
        return azure_roots() if file is None else roots_in(file)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{file} contains no certificates in PEM ({error}); give the roots that sign attested data") from error


def utc_now() -> datetime.datetime:
    """Return the time of day."""
    return datetime.datetime.now(datetime.UTC)


def load_records(records: ConfigMapRecords) -> None:
    """Read the records of issued certificates; return when this has succeeded."""
    failures = 0
    while True:
        try:
            records.load()
        except ServiceUnreachableError as missing:
            failures += 1
            LOG.warning("the records of issued certificates cannot be read: %s; next try in %.0f s", missing, pause_after(failures))
            time.sleep(pause_after(failures))
        else:
            return


def watch_requests(requests: SigningRequests, events: queue.Queue[PendingEvent | SettledEvent]) -> None:
    """Put every event into the queue, for ever; after a failure from a new listing."""
    failures = 0
    while True:
        try:
            for event in requests.events():
                events.put(event)
                failures = 0
        except KUBERNETES_ERRORS as error:
            failures += 1
            LOG.warning("the watch broke: %s; listing again in %.0f s", one_line(error), pause_after(failures))
            time.sleep(pause_after(failures))


def drain_events(approver: ApprovalLoop, events: queue.Queue[PendingEvent | SettledEvent], wait: float) -> None:
    """Pass queued events to the approver; wait at most this many seconds for the first."""
    try:
        event = events.get(timeout=wait) if wait else events.get_nowait()
        while True:
            if isinstance(event, PendingEvent):
                approver.offer(event.request)
            else:
                approver.backlog.discard(event.name)
            event = events.get_nowait()
    except queue.Empty:
        return


def exit_when_renewed(kubeconfig: Path, read: bytes) -> None:
    """End this process, to be restarted, when the kubeconfig contains a renewed certificate."""
    while True:
        time.sleep(KUBECONFIG_CHECK_SECONDS)
        try:
            now = kubeconfig.read_bytes()
        except OSError as error:
            LOG.warning("%s cannot be read (%s): the previous certificate remains in use", kubeconfig, error.strerror)
            continue
        if now not in (b"", read):
            LOG.info("%s was renewed; this process ends, to be restarted with it", kubeconfig)
            _thread.interrupt_main(signal.SIGTERM)
            return


def start_thread(ended: threading.Event, work: Callable[..., None], *arguments: object) -> None:
    """Run a function in a thread; set `ended` when it returns or fails."""

    def run() -> None:
        try:
            work(*arguments)
        finally:
            ended.set()

    threading.Thread(target=run, name=work.__name__, daemon=True).start()


def run_loop(
    approver: ApprovalLoop, requests: SigningRequests, events: queue.Queue[PendingEvent | SettledEvent], ended: threading.Event
) -> str:
    """Decide requests until this process must end; return the reason."""
    wait = 0.0
    while not ended.is_set():
        drain_events(approver, events, wait)
        wait = approver.step(time.monotonic())
        if time.monotonic() > requests.heard_at + API_SERVER_TIMEOUT_SECONDS:
            return f"the API server has not answered for {API_SERVER_TIMEOUT_SECONDS:.0f} s"
    return "the lease is lost, or the watch failed"


def end(status: int) -> NoReturn:
    """End at once, without waiting for calls of the API server: a recorded issue without its approval is approved by the next leader."""
    logging.shutdown()
    os._exit(status)


def stop(_number: int, _frame: FrameType | None) -> None:
    """End because systemd asks for it."""
    LOG.info("stops")
    end(0)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option(
    "--kubeconfig",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the API server's address and the client certificate of system:gpufleet:csr-approver.",
)
@click.option("--subscription", required=True, help="Azure subscription of the cluster.")
@click.option("--resource-group", required=True, help="Resource group of the cluster's scale sets.")
@click.option("--scale-set-prefix", required=True, help='What the names of the cluster\'s scale sets begin with, for example "frontier-".')
@click.option("--node-vault", required=True, help="URL of the key vault from which nodes read the bootstrap token.")
@click.option(
    "--attestation-roots",
    envvar=ROOTS_VARIABLE,
    show_envvar=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="PEM file of the roots that sign attested data, for another cloud or a model of Azure; default: Azure's.",
)
def main(
    kubeconfig: Path, subscription: str, resource_group: str, scale_set_prefix: str, node_vault: str, attestation_roots: Path | None
) -> None:
    """Approve the certificates that this cluster's kubelets request, and deny all others.

    A machine's first client certificate needs attested data, which Azure signs for the machine and for the request's key. The
    machine must be the one of that name in the cluster's scale sets. While its Node is Ready, a first request stays pending; a
    second one needs a recorded reimage or the deletion of the Node. A renewal is approved while Azure lists the machine.

    A kubelet requests a serving certificate for the connections of the API servers to it (for logs, exec and metrics). It is approved
    only if the sender is a node, requests its own name and its own machine's addresses and nothing else, and Azure lists that machine in
    one of the cluster's scale sets. Without a recent response from Azure, a request stays pending.

    The leader also creates the bootstrap tokens, which live for 6 hours, and writes the newest into the nodes' key vault every 2 hours.

    Run one beside every API server: they elect a leader by the Lease kube-system/gpufleet-csr-approver, and the others wait. The machine's
    managed identity must be allowed to read the scale sets and their network interfaces. The approver sends Azure at most 30 queries per
    minute. For another cloud, or a model of Azure, set the environment variable GPUFLEET_RESOURCE_MANAGER to the address of Azure Resource
    Manager (an https URL; default https://management.azure.com) and AZURE_POD_IDENTITY_AUTHORITY_HOST to that of the metadata service.

    Each decision is one line on standard output. The approver ends with status 1 when it has lost the lease or the API server
    does not answer, and with 0 when its kubeconfig was renewed: restart it each time. To list pending requests and reasons of denials:

    \b
      kubectl get csr --field-selector spec.signerName=kubernetes.io/kubelet-serving
      kubectl get csr --field-selector spec.signerName=kubernetes.io/kube-apiserver-client-kubelet
      kubectl get csr NAME -o jsonpath='{.status.conditions[*].message}'
    """
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    LOG.setLevel(logging.INFO)
    # urllib3 logs each retry; the approver logs the results itself.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    signal.signal(signal.SIGTERM, stop)
    if not node_vault.startswith("https://"):
        raise click.ClickException(f"--node-vault is {node_vault[:200]!r}; give an https URL, because a token is sent to it")
    read = kubeconfig.read_bytes()
    api = api_client(kubeconfig)
    threading.Thread(target=exit_when_renewed, args=(kubeconfig, read), name="renewal", daemon=True).start()
    lease = Lease(client.CoordinationV1Api(api), LEASE_NAMESPACE, LEASE_NAME, f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}")
    requests = SigningRequests(client.CertificatesV1Api(api))
    trust, credential, core = attestation_trust(attestation_roots), ManagedIdentityCredential(), client.CoreV1Api(api)
    lookup = AzureScaleSets(credential, subscription, resource_group, scale_set_prefix, resource_manager())
    records = ConfigMapRecords(core)
    first = FirstRequests(subscription, trust, ApiNodes(core), records, utc_now)
    acquire_lease(lease)
    requests.heard_at = time.monotonic()
    events: queue.Queue[PendingEvent | SettledEvent] = queue.Queue(EVENT_QUEUE_SIZE)
    ended = threading.Event()
    start_thread(ended, renew_lease, lease)
    load_records(records)
    start_thread(ended, watch_requests, requests, events)
    start_thread(ended, rotate_tokens, BootstrapTokens(SecretTokens(core), KeyVault(credential, node_vault), utc_now))
    writers = ThreadPoolExecutor(WRITERS, "write")
    why = run_loop(ApprovalLoop(scale_set_prefix, lookup, requests, first, run=writers.map), requests, events, ended)
    LOG.error("ends: %s", why)
    end(1)


if __name__ == "__main__":
    main()
