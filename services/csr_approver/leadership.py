"""Leader election by a Kubernetes Lease: the holder acts for as long as it renews the Lease.

Times in other processes' records are never compared with the local clock; only changes of the record count:
https://github.com/kubernetes/client-go/blob/v0.36.3/tools/leaderelection/leaderelection.go
The client's own kubernetes.leaderelection uses the wall clock, sends requests without a timeout, and ends on errors of the connection.
"""

from __future__ import annotations

import datetime
import logging
import time
from dataclasses import dataclass, field

import urllib3
from kubernetes import client

LOG = logging.getLogger("gpufleet.csr-approver")
LEASE_SECONDS = 15
RENEW_SECONDS = 5.0
REQUEST_SECONDS = 4.0
CONFLICT = 409
NOT_FOUND = 404
LONGEST_PAUSE_SECONDS = 60.0
KUBERNETES_ERRORS = (client.ApiException, urllib3.exceptions.HTTPError)


def lease_held_by_another(holder: str, identity: str, changed_at: float, lease_seconds: float, now: float) -> bool:
    """Return whether another candidate holds a Lease: its holder changed the Lease less than its duration ago; times in seconds."""
    return holder not in ("", identity) and now < changed_at + lease_seconds


@dataclass
class Lease:
    """One candidate's view of a Lease; identity must be unique."""

    api: client.CoordinationV1Api
    namespace: str
    name: str
    identity: str
    _version: str | None = field(default=None, init=False)
    _changed_at: float = field(default=float("-inf"), init=False)

    def acquire_or_renew(self, now: float) -> bool:
        """Return True if this candidate holds the Lease for the next LEASE_SECONDS; now is a monotonic time in seconds.

        ApiException or urllib3's HTTPError without a response; then the Lease is not renewed.
        """
        try:
            held = self.api.read_namespaced_lease(self.name, self.namespace, _request_timeout=REQUEST_SECONDS)
        except client.ApiException as error:
            if error.status != NOT_FOUND:
                raise
            return self._write(None, client.V1LeaseSpec())
        metadata, spec = held.metadata or client.V1ObjectMeta(), held.spec or client.V1LeaseSpec()
        if metadata.resource_version != self._version:
            self._version, self._changed_at = metadata.resource_version, now
        holder = spec.holder_identity or ""
        if lease_held_by_another(holder, self.identity, self._changed_at, spec.lease_duration_seconds or LEASE_SECONDS, now):
            return False
        if holder != self.identity:
            spec.acquire_time = None
        return self._write(metadata.resource_version, spec)

    def _write(self, version: str | None, spec: client.V1LeaseSpec) -> bool:
        """Write this candidate as the holder over a version, None for a new Lease; False if another candidate was faster."""
        moment = datetime.datetime.now(datetime.UTC)
        spec.acquire_time = spec.acquire_time or moment
        spec.renew_time = moment
        spec.holder_identity = self.identity
        spec.lease_duration_seconds = LEASE_SECONDS
        lease = client.V1Lease(metadata=client.V1ObjectMeta(name=self.name, resource_version=version), spec=spec)
        try:
            if version is None:
                self.api.create_namespaced_lease(self.namespace, lease, _request_timeout=REQUEST_SECONDS)
            else:
                self.api.replace_namespaced_lease(self.name, self.namespace, lease, _request_timeout=REQUEST_SECONDS)
        except client.ApiException as error:
            if error.status == CONFLICT:
                return False
            raise
        return True


def one_line(error: Exception) -> str:
    """Return an error in a few words: the HTTP status, or the type of the exception."""
    if isinstance(error, client.ApiException):
        return f"HTTP {error.status} {error.reason}"
    cause = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) else error
    return type(cause).__name__


def pause_after(failures: int) -> float:
    """Return the seconds to wait after a number of consecutive failures: 1, 2, 4, … 60."""
    return min(float(1 << min(failures - 1, 10)), LONGEST_PAUSE_SECONDS)


def acquire_lease(lease: Lease) -> None:
    """Return when this process holds the Lease."""
    failures = 0
    while True:
        try:
            if lease.acquire_or_renew(time.monotonic()):
                LOG.info("leads as %s", lease.identity)
                return
            failures = 0
        except KUBERNETES_ERRORS as error:
            failures += 1
            LOG.warning("the API server does not answer: %s; next try in %.0f s", one_line(error), pause_after(failures))
        time.sleep(max(RENEW_SECONDS, pause_after(failures) if failures else 0.0))


def renew_lease(lease: Lease) -> None:
    """Renew the Lease; return when another process holds it or it has expired."""
    renewed = time.monotonic()
    while time.monotonic() < renewed + LEASE_SECONDS - RENEW_SECONDS:
        time.sleep(RENEW_SECONDS)
        try:
            if not lease.acquire_or_renew(time.monotonic()):
                break
            renewed = time.monotonic()
        except KUBERNETES_ERRORS as error:
            LOG.warning("the lease was not renewed: %s", one_line(error))
