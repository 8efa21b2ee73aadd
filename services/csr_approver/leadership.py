"""Who of several processes acts: the holder of a Kubernetes Lease, for as long as it renews it.

Times in other processes' records are never compared with our clock, only whether a record has changed:
https://github.com/kubernetes/client-go/blob/v0.36.3/tools/leaderelection/leaderelection.go
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from kubernetes import client

LEASE_SECONDS = 15
RENEW_SECONDS = 5.0
REQUEST_SECONDS = 4.0
CONFLICT = 409
NOT_FOUND = 404


def lease_held_by_another(holder: str, me: str, changed_at: float, lease_seconds: float, now: float) -> bool:
    """Whether a Lease is another's: its holder is not us, and we saw it change less than its duration ago; times in seconds."""
    return holder not in ("", me) and now < changed_at + lease_seconds


@dataclass
class Lease:
    """One candidate's view of a Lease; identity must differ from every other candidate's."""

    api: client.CoordinationV1Api
    namespace: str
    name: str
    identity: str
    _version: str | None = field(default=None, init=False)
    _changed_at: float = field(default=float("-inf"), init=False)

    def acquire_or_renew(self, now: float) -> bool:
        """True if this candidate holds the Lease for the next LEASE_SECONDS; now is a monotonic time in seconds.

        ApiException or urllib3's HTTPError where the API server does not answer; then the Lease is not renewed.
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
        """Write ourselves as the holder over a version, None for a new Lease; False if another was faster."""
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
