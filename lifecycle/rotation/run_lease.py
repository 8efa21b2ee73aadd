"""Lease of the cluster's API server that allows one run of a rotation per cluster at a time.

Times that another process wrote are never compared with the local clock. A candidate takes over when it has seen no change of the Lease for
its whole duration, as client-go does:
https://github.com/kubernetes/client-go/blob/v0.36.3/tools/leaderelection/leaderelection.go
"""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass

import urllib3
from kubernetes import client

from components.errors import GpufleetError
from components.manifests.owned import FLEET_NAMESPACE
from components.manifests.rotation import LEASE
from lifecycle.rotation.lease_renewal import LeaseRenewal

LEASE_SECONDS = 60
"""Duration of the Lease: an API server may take half of it to recover behind its load balancer."""
RENEWALS = 6
"""Renewals per duration."""
CHECKS = 30
"""Readings per duration while another run holds the Lease."""
REQUEST_SECONDS = 5.0
CONFLICT, NOT_FOUND = 409, 404
NO_ANSWER = (client.ApiException, urllib3.exceptions.HTTPError)


class RunLeaseHeldError(GpufleetError):
    """Another run of the same cluster is in progress."""

    def __init__(self, cluster: str, holder: str) -> None:
        super().__init__(
            f"cluster {cluster}: a run by {holder} is in progress, and there is one run per cluster: wait until it ends, or end it"
        )
        self.holder = holder


class RunLeaseLostError(GpufleetError):
    """This run may no longer act, because another one may have begun."""

    exit_status = 1

    def __init__(self, cluster: str, reason: str) -> None:
        super().__init__(
            f"cluster {cluster}: this run lost the Lease {LEASE} ({reason}): it stops before its next action; continue the run"
        )


class RunLeaseUnreachableError(GpufleetError):
    """The API server did not let this process acquire the Lease."""

    def __init__(self, cluster: str, reason: str) -> None:
        super().__init__(
            f"cluster {cluster}: the Lease {LEASE} was not acquired ({reason}): check the API server and the token of this run"
        )


@dataclass
class _Seen:
    """Version of the Lease as it was last read or written, and the monotonic time at which that version was first seen."""

    version: str | None = None
    changed_at: float = float("-inf")


class RunLease:
    """The Lease of a cluster, held by this process from construction until `release`.

    identity: unique holder, such as person, machine, process and time. seconds: duration of the Lease, a whole number.
    """

    def __init__(self, api: client.CoordinationV1Api, cluster: str, identity: str, seconds: int = LEASE_SECONDS) -> None:
        """Acquire the Lease, and renew it in the background.

        After a holder that no longer renews it, this takes its duration. RunLeaseHeldError as soon as another holder renews the Lease.
        """
        self._api, self._cluster, self._identity, self._seconds = api, cluster, identity, seconds
        self._seen = _Seen()
        began = self._acquire()
        self._renewal = LeaseRenewal(self._renew, NO_ANSWER, seconds, seconds / 4, seconds / RENEWALS, began)

    def check_held(self) -> None:
        """Raise RunLeaseLostError if another run holds the Lease, or may soon."""
        if self._renewal.lost:
            raise RunLeaseLostError(self._cluster, self._renewal.lost)

    def release(self) -> None:
        """End the renewal, and let the next run begin at once if the API server answers; else when the Lease has expired."""
        self._renewal.stop()
        if self._renewal.lost:
            return
        try:
            held = self._read()
            if held is not None and held.spec is not None and held.spec.holder_identity == self._identity:
                held.spec.holder_identity, held.spec.lease_duration_seconds = "", 1
                self._replace(held)
        except NO_ANSWER:
            return

    def _acquire(self) -> float:
        """Return the monotonic time from which this process holds the Lease."""
        first = ""
        while True:
            now = time.monotonic()
            try:
                held = self._read()
                if held is None:
                    acquired = self._create()
                elif holder := self._other_holder(held, now):
                    version = str(self._seen.version)
                    first = first or version
                    if version != first:
                        raise RunLeaseHeldError(self._cluster, holder)
                    acquired = False
                else:
                    acquired = self._take(held)
            except NO_ANSWER as error:
                raise RunLeaseUnreachableError(self._cluster, _one_line(error)) from None
            if acquired:
                return now
            time.sleep(self._seconds / CHECKS)

    def _other_holder(self, held: client.V1Lease, now: float) -> str:
        """Return the holder if it is another process that changed the Lease less than its duration ago, else ""."""
        version, spec = _version(held), held.spec or client.V1LeaseSpec()
        if version != self._seen.version:
            self._seen = _Seen(version, now)
        holder = spec.holder_identity or ""
        expired = now >= self._seen.changed_at + float(spec.lease_duration_seconds or self._seconds)
        return "" if holder in ("", self._identity) or expired else holder

    def _renew(self) -> str:
        held = self._read()
        spec = held.spec if held is not None else None
        if held is None or spec is None:
            return "the Lease was deleted"
        if spec.holder_identity != self._identity:
            return f"{spec.holder_identity or 'nobody'} holds it"
        spec.renew_time = _utc()
        # A conflict is another writer's change between reading and writing: only another run writes a Lease that is held.
        return "" if self._replace(held) else "another process changed it"

    def _take(self, held: client.V1Lease) -> bool:
        """Write this process as the holder; False if another one was faster."""
        spec = held.spec or client.V1LeaseSpec()
        spec.lease_transitions = (spec.lease_transitions or 0) + (spec.holder_identity != self._identity)
        spec.holder_identity, spec.lease_duration_seconds = self._identity, self._seconds
        spec.acquire_time = spec.renew_time = _utc()
        held.spec = spec
        return self._replace(held)

    def _create(self) -> bool:
        moment = _utc()
        spec = client.V1LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=self._seconds,
            acquire_time=moment,
            renew_time=moment,
            lease_transitions=0,
        )
        lease = client.V1Lease(metadata=client.V1ObjectMeta(name=LEASE), spec=spec)
        try:
            self._api.create_namespaced_lease(FLEET_NAMESPACE, lease, _request_timeout=REQUEST_SECONDS)
        except client.ApiException as error:
            if error.status == CONFLICT:
                return False
            raise
        return True

    def _read(self) -> client.V1Lease | None:
        try:
            found: client.V1Lease = self._api.read_namespaced_lease(LEASE, FLEET_NAMESPACE, _request_timeout=REQUEST_SECONDS)
        except client.ApiException as error:
            if error.status == NOT_FOUND:
                return None
            raise
        return found

    def _replace(self, lease: client.V1Lease) -> bool:
        """Write a Lease over the version that was read; False if it has changed since."""
        try:
            self._api.replace_namespaced_lease(LEASE, FLEET_NAMESPACE, lease, _request_timeout=REQUEST_SECONDS)
        except client.ApiException as error:
            if error.status in (CONFLICT, NOT_FOUND):
                return False
            raise
        return True


def _version(lease: client.V1Lease) -> str | None:
    return lease.metadata.resource_version if lease.metadata is not None else None


def _utc() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _one_line(error: Exception) -> str:
    """Return an error in a few words: the HTTP status, or the type of the exception."""
    if isinstance(error, client.ApiException):
        return f"HTTP {error.status} {error.reason}"
    cause = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) else error
    return type(cause).__name__
