"""Starts the approver of kubelets' serving certificates, and ends it when it can no longer do its work, so that another takes over."""

from __future__ import annotations

import _thread
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
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import click
import urllib3
import yaml
from azure.identity import ManagedIdentityCredential
from kubernetes import client, config

from services.csr_approver.approval_loop import ApprovalLoop
from services.csr_approver.azure_scale_sets import RESOURCE_MANAGER, AzureScaleSets
from services.csr_approver.kubernetes_api import PendingEvent, SettledEvent, SigningRequests
from services.csr_approver.leadership import LEASE_SECONDS, RENEW_SECONDS, Lease

LOG = logging.getLogger("gpufleet.csr-approver")
RESOURCE_MANAGER_VARIABLE = "GPUFLEET_RESOURCE_MANAGER"
LEASE_NAMESPACE = "kube-system"
LEASE_NAME = "gpufleet-csr-approver"
EVENT_QUEUE_SIZE = 1_000
"""Events that are read ahead of the decisions; beyond them the watch waits."""
LONGEST_PAUSE_SECONDS = 60.0
API_SERVER_TIMEOUT_SECONDS = 900.0
"""Silence of the API server after which this process ends; a watch is given up for dead after 180 s, so this is several attempts."""
KUBECONFIG_CHECK_SECONDS = 60.0
"""Between two looks at the kubeconfig, as often as Kubernetes' own programs look at theirs."""
KUBERNETES_ERRORS = (client.ApiException, urllib3.exceptions.HTTPError)


def one_line(error: Exception) -> str:
    """What went wrong, in a few words: an HTTP status, or the kind of fault."""
    if isinstance(error, client.ApiException):
        return f"HTTP {error.status} {error.reason}"
    cause = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) else error
    return type(cause).__name__


def pause_after(failures: int) -> float:
    """Seconds to wait after so many failures in a row: 1, 2, 4, … 60."""
    return min(float(1 << min(failures - 1, 10)), LONGEST_PAUSE_SECONDS)


def api_client(kubeconfig: Path) -> client.ApiClient:
    """Client for the API server of a kubeconfig's current context; ClickException, in one line, for a file that is none."""
    try:
        found: client.ApiClient = config.new_client_from_config(config_file=str(kubeconfig))  # type: ignore[no-untyped-call]
    except (config.ConfigException, yaml.YAMLError, TypeError, KeyError, ValueError, OSError) as error:
        what = " ".join(str(error).split())[:200]
        remedy = "give a file with clusters, users, contexts and a current-context"
        raise click.ClickException(f"{kubeconfig} is no usable kubeconfig ({what}); {remedy}") from error
    return found


def resource_manager() -> str:
    """Base URL of Azure Resource Manager, from the environment; ClickException for one that would send the token in the clear."""
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


def acquire_lease(lease: Lease) -> None:
    """Return once this process holds the Lease."""
    failures = 0
    while True:
        try:
            if lease.acquire_or_renew(time.monotonic()):
                LOG.info("leads as %s", lease.identity)
                return
            failures = 0
        except KUBERNETES_ERRORS as error:
            failures += 1
            LOG.warning("the API server does not answer: %s; asking again in %.0f s", one_line(error), pause_after(failures))
        time.sleep(max(RENEW_SECONDS, pause_after(failures) if failures else 0.0))


def renew_lease(lease: Lease) -> None:
    """Renew the Lease, and return when another holds it or it has run out."""
    renewed = time.monotonic()
    while time.monotonic() < renewed + LEASE_SECONDS - RENEW_SECONDS:
        time.sleep(RENEW_SECONDS)
        try:
            if not lease.acquire_or_renew(time.monotonic()):
                break
            renewed = time.monotonic()
        except KUBERNETES_ERRORS as error:
            LOG.warning("the lease was not renewed: %s", one_line(error))


def watch_requests(requests: SigningRequests, events: queue.Queue[PendingEvent | SettledEvent]) -> None:
    """Put every event into the queue, for ever; after a fault from a new listing."""
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
    """Hand the events that have come to the approver; waits at most so many seconds for the first."""
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
    """End this process, to be started again, once the file holds something other than what was read from it: a renewed certificate."""
    while True:
        time.sleep(KUBECONFIG_CHECK_SECONDS)
        try:
            now = kubeconfig.read_bytes()
        except OSError as error:
            LOG.warning("%s cannot be read (%s): the certificate that was read before stays in use", kubeconfig, error.strerror)
            continue
        if now not in (b"", read):
            LOG.info("%s was renewed, and is read at the start", kubeconfig)
            _thread.interrupt_main(signal.SIGTERM)
            return


def start_thread(ended: threading.Event, work: Callable[..., None], *arguments: object) -> None:
    """Do work in a thread of its own; when it returns, or fails, ended is set."""

    def run() -> None:
        try:
            work(*arguments)
        finally:
            ended.set()

    threading.Thread(target=run, name=work.__name__, daemon=True).start()


def run_loop(
    approver: ApprovalLoop, requests: SigningRequests, events: queue.Queue[PendingEvent | SettledEvent], ended: threading.Event
) -> str:
    """Decide requests until this process must end; returns why."""
    wait = 0.0
    while not ended.is_set():
        drain_events(approver, events, wait)
        wait = approver.step(time.monotonic())
        if time.monotonic() > requests.heard_at + API_SERVER_TIMEOUT_SECONDS:
            return f"nothing was heard from the API server for {API_SERVER_TIMEOUT_SECONDS:.0f} s"
    return "the lease is lost, or the watch failed"


def stop(_number: int, _frame: FrameType | None) -> None:
    """End at once: every decision is one request to the API server, done or not."""
    LOG.info("stops")
    sys.exit(0)


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
def main(kubeconfig: Path, subscription: str, resource_group: str, scale_set_prefix: str) -> None:
    """Approve the serving certificates that this cluster's kubelets ask for, and deny all others.

    A kubelet asks for a certificate under which the API servers reach it (for logs, exec and metrics). It is approved only if the sender is
    a node, asks for its own name and for its own machine's addresses and nothing else, and Azure lists that machine in one of the cluster's
    scale sets. What Azure has not said, or said too long ago, waits: a request may stay pending while Azure is slow, and is never guessed.

    Run one beside every API server: they elect a leader by the Lease kube-system/gpufleet-csr-approver, and the others stand by. Azure is
    asked with the machine's managed identity, which needs to read the scale sets and their network interfaces. It is asked at most 30
    questions a minute, however many requests there are. In a cloud of another name, or against a model of Azure, the environment variable
    GPUFLEET_RESOURCE_MANAGER says where Azure Resource Manager is (an https URL; default https://management.azure.com) and
    AZURE_POD_IDENTITY_AUTHORITY_HOST where the metadata service is.

    Each decision is one line on standard output. The approver ends with status 1 when it lost the lease, or hears nothing from the API
    server, and with 0 when its kubeconfig was renewed: start it again, each time. What is pending, and why a request was denied:

    \b
      kubectl get csr --field-selector spec.signerName=kubernetes.io/kubelet-serving
      kubectl get csr NAME -o jsonpath='{.status.conditions[*].message}'
    """
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    LOG.setLevel(logging.INFO)
    # It tells each retry; what came of them, the approver tells itself.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    signal.signal(signal.SIGTERM, stop)
    read = kubeconfig.read_bytes()
    api = api_client(kubeconfig)
    threading.Thread(target=exit_when_renewed, args=(kubeconfig, read), name="renewal", daemon=True).start()
    lease = Lease(client.CoordinationV1Api(api), LEASE_NAMESPACE, LEASE_NAME, f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}")
    requests = SigningRequests(client.CertificatesV1Api(api))
    lookup = AzureScaleSets(ManagedIdentityCredential(), subscription, resource_group, scale_set_prefix, resource_manager())
    acquire_lease(lease)
    requests.heard_at = time.monotonic()
    events: queue.Queue[PendingEvent | SettledEvent] = queue.Queue(EVENT_QUEUE_SIZE)
    ended = threading.Event()
    start_thread(ended, renew_lease, lease)
    start_thread(ended, watch_requests, requests, events)
    why = run_loop(ApprovalLoop(scale_set_prefix, lookup, requests), requests, events, ended)
    LOG.error("ends: %s", why)
    sys.exit(1)


if __name__ == "__main__":
    main()
