"""Journal in numbered append blobs of Azure Storage: one writer by a blob lease, no append twice.

The blobs are <prefix>/000001.jsonl, 000002.jsonl and so on. A writer holds the lease of the last one, and every request that changes a blob
carries the lease: after another writer has taken it over, Azure rejects the requests of the former one, however late they arrive. A full
blob is marked as continued under its lease before the next one is created, so that there is one last blob at any time. Each append names
the position at which it must begin, so that a repeated request whose first answer was lost is rejected instead of appended twice.

Append blobs: https://learn.microsoft.com/rest/api/storageservices/append-block
Leases: https://learn.microsoft.com/rest/api/storageservices/lease-blob
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobClient, BlobLeaseClient, ContainerClient

from lifecycle.rotation.journal_errors import (
    JournalCorruptError,
    JournalExistsError,
    JournalHeldError,
    JournalLeaseLostError,
    JournalMissingError,
    JournalWriteError,
)
from lifecycle.rotation.lease_renewal import LeaseRenewal

MOST_BLOCKS = 50_000
"""Blocks of an append blob: https://learn.microsoft.com/azure/storage/blobs/scalability-targets"""
MOST_BYTES = 4 * 2**20
"""Bytes of one append in every version of the service: https://learn.microsoft.com/rest/api/storageservices/append-block#remarks"""
LEASE_SECONDS = 60
"""The longest lease that ends by itself; Azure accepts 15 to 60 s."""
CONTINUED = "gpufleet_continued"
"""Metadata of a blob that has a successor."""
RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
LEASE_CODES = frozenset(
    {
        "LeaseAlreadyPresent",
        "LeaseIdMismatchWithBlobOperation",
        "LeaseIdMismatchWithLeaseOperation",
        "LeaseIdMissing",
        "LeaseIsBreakingAndCannotBeAcquired",
        "LeaseIsBrokenAndCannotBeRenewed",
        "LeaseLost",
        "LeaseNotPresentWithBlobOperation",
        "LeaseNotPresentWithLeaseOperation",
    }
)
"""Error codes of a request without the blob's lease: https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes"""
CLIENT_OPTIONS = {"retry_total": 0, "connection_timeout": 5, "read_timeout": 10}
"""Options for the container's client: this module repeats requests itself, for as long as it holds the lease."""
LONGEST_PAUSE_SECONDS = 5.0
_T = TypeVar("_T")


class JournalBlobs:
    """The append blobs of a run, whose last one this process has leased until it closes the journal or loses the lease."""

    def __init__(self, container: ContainerClient, prefix: str, number: int, lease_seconds: int, most_blocks: int) -> None:
        self._container, self._prefix, self._seconds, self._most_blocks = container, prefix, lease_seconds, most_blocks
        self._id = str(uuid.uuid4())
        self._number = number
        self._ends: list[tuple[int, int]] = []
        self._blocks = self._position = 0
        began = time.monotonic()
        self._lease = self._acquire(number)
        # Two thirds of the duration may pass without an answer: three renewals.
        self._renewal = LeaseRenewal(self._renew, (AzureError,), lease_seconds, lease_seconds / 4, lease_seconds / 5, began)

    @classmethod
    def create(
        cls, container: ContainerClient, prefix: str, lease_seconds: int = LEASE_SECONDS, most_blocks: int = MOST_BLOCKS
    ) -> JournalBlobs:
        """Create the first blob in an existing container, and lease it; JournalExistsError if it exists."""
        try:
            if not _create(_blob(container, prefix, 1)):
                raise JournalExistsError(_blob_name(container, prefix, 1))
            return cls(container, prefix, 1, lease_seconds, most_blocks)
        except AzureError as error:
            raise _not_opened(container, prefix, error) from None

    @classmethod
    def open(
        cls,
        container: ContainerClient,
        prefix: str,
        lease_seconds: int = LEASE_SECONDS,
        most_blocks: int = MOST_BLOCKS,
        wait_seconds: float = LEASE_SECONDS + 5,
    ) -> JournalBlobs:
        """Lease the last blob of an existing journal.

        A writer that was killed holds its lease until it expires, so that this waits for up to wait_seconds; then JournalHeldError.
        JournalMissingError without a first blob.
        """
        until = time.monotonic() + wait_seconds
        while True:
            try:
                number = _last_number(container, prefix)
                _check_not_continued(container, prefix, number)
                store = cls(container, prefix, number, lease_seconds, most_blocks)
                store._follow()
            except (JournalHeldError, JournalLeaseLostError):
                if time.monotonic() >= until:
                    raise JournalHeldError(journal_address(container, prefix), "it renews the blob's lease") from None
                time.sleep(1)
            except AzureError as error:
                raise _not_opened(container, prefix, error) from None
            else:
                return store

    @property
    def name(self) -> str:
        """Return the address of the blobs without their numbers."""
        return journal_address(self._container, self._prefix)

    def place(self, offset: int) -> str:
        """Return the blob that contains a byte of the last read, and the byte's offset in it."""
        begin = 0
        for number, end in self._ends:
            if offset < end:
                return f"{_blob_name(self._container, self._prefix, number)}, byte {offset - begin}"
            begin = end
        return f"{self.name}, byte {offset}"

    def read(self) -> bytes:
        """Return the bytes of all blobs in their order."""
        data, self._ends = bytearray(), []
        for number in range(1, self._number + 1):
            try:
                data += self._repeat(lambda number=number: self._blob(number).download_blob(validate_content=True).readall())  # type: ignore[misc]
            except ResourceNotFoundError:
                remedy = "Restore the blob: soft delete and versions of the storage account may contain it"
                raise JournalCorruptError(_blob_name(self._container, self._prefix, number), None, "the blob is missing", remedy) from None
            self._ends.append((number, len(data)))
        return bytes(data)

    def append(self, data: bytes) -> None:
        """Append bytes under the lease, at the end that this process knows; repeated without an answer while the lease is held."""
        if len(data) > MOST_BYTES:
            raise JournalWriteError(self.name, f"{len(data)} bytes, more than {MOST_BYTES}", "divide the run into runs of fewer nodes")
        if self._blocks >= self._most_blocks:
            self._roll()
        self._repeat(lambda: self._append_once(data))
        self._position += len(data)
        self._blocks += 1

    def discard_after(self, length: int) -> None:
        """Refuse: an append of a block is complete or has no effect, so that other bytes come from another program."""
        if length != self._ends[-1][1]:
            remedy = "Restore the blob from an earlier version"
            raise JournalCorruptError(self.place(length), None, "an incomplete record, which no append of this program leaves", remedy)

    def check_held(self) -> None:
        """Raise JournalLeaseLostError if the lease is lost or about to expire."""
        if self._renewal.lost:
            raise JournalLeaseLostError(_blob_name(self._container, self._prefix, self._number), self._renewal.lost)

    def close(self) -> None:
        """Release the lease, if it is still held."""
        self._renewal.stop()
        if self._renewal.lost:
            return
        with suppress(AzureError):  # it expires by itself
            self._lease.release()

    def _blob(self, number: int) -> BlobClient:
        return _blob(self._container, self._prefix, number)

    def _acquire(self, number: int) -> BlobLeaseClient:
        """Lease a blob; JournalHeldError if another writer has it."""
        try:
            return self._blob(number).acquire_lease(lease_duration=self._seconds, lease_id=self._id)
        except HttpResponseError as error:
            if _code(error) in LEASE_CODES:
                raise JournalHeldError(_blob_name(self._container, self._prefix, number), "it holds the blob's lease") from None
            raise

    def _renew(self) -> str:
        try:
            self._lease.renew()
        except HttpResponseError as error:
            if _code(error) in LEASE_CODES or isinstance(error, ResourceNotFoundError):
                return f"Azure answers {_code(error)}"
            raise
        return ""

    def _follow(self) -> None:
        """Go to the last blob: a former writer may have continued this one before it was leased, or ended while it did."""
        try:
            while True:
                properties = self._repeat(lambda: self._blob(self._number).get_blob_properties())
                if CONTINUED not in properties.metadata:
                    self._position, self._blocks = properties.size, properties.append_blob_committed_block_count or 0
                    return
                self._to_next()
        except BaseException:
            self.close()
            raise

    def _roll(self) -> None:
        """Continue in a new blob."""
        blob = self._blob(self._number)
        self._repeat(lambda: blob.set_blob_metadata({CONTINUED: "true"}, lease=self._id))
        self._to_next()
        self._position = self._blocks = 0

    def _to_next(self) -> None:
        """Lease the next blob, which is created if it is missing, then release the present one."""
        number = self._number + 1
        self._repeat(lambda: _create(self._blob(number)))
        began = time.monotonic()
        try:
            lease = self._repeat(lambda: self._acquire(number))
        except JournalHeldError as error:
            raise JournalLeaseLostError(self.name, str(error)) from None
        self._renewal.stop()
        former, self._lease, self._number = self._lease, lease, number
        self._renewal = LeaseRenewal(self._renew, (AzureError,), self._seconds, self._seconds / 4, self._seconds / 5, began)
        with suppress(AzureError):  # it expires by itself
            former.release()

    def _append_once(self, data: bytes) -> None:
        blob = self._blob(self._number)
        try:
            blob.append_block(data, appendpos_condition=self._position, lease=self._id, validate_content=True)
        except HttpResponseError as error:
            if _code(error) != "AppendPositionConditionNotMet":
                raise
            # The answer to an earlier try was lost, or another program with this lease wrote.
            there = blob.download_blob(self._position).readall() if blob.get_blob_properties().size > self._position else b""
            if there != data:
                raise JournalLeaseLostError(self.name, f"the blob's bytes from {self._position} are not of this process") from None

    def _repeat(self, request: Callable[[], _T]) -> _T:
        """Return the answer of a request, repeated with growing pauses while the lease is held."""
        tries = 0
        while True:
            self.check_held()
            try:
                return request()
            except HttpResponseError as error:
                if _code(error) in LEASE_CODES:
                    raise JournalLeaseLostError(self.name, f"Azure answers {_code(error)}") from None
                if isinstance(error, ResourceNotFoundError):
                    raise
                if error.status_code is not None and error.status_code not in RETRIED_STATUSES:
                    raise JournalWriteError(self.name, f"Azure answers {_code(error)}", "check the account's rights and network") from None
            except AzureError:
                # No answer: the request is repeated below.
                pass
            time.sleep(random.uniform(0.5, 1.0) * min(0.2 * 2**tries, LONGEST_PAUSE_SECONDS))  # noqa: S311 (it scatters requests)
            tries += 1


def journal_address(container: ContainerClient, prefix: str) -> str:
    """Return the address of a journal's blobs, without their numbers."""
    return f"{container.primary_endpoint.split('?')[0]}/{prefix}"


def _blob_name(container: ContainerClient, prefix: str, number: int) -> str:
    return f"{journal_address(container, prefix)}/{number:06d}.jsonl"


def _blob(container: ContainerClient, prefix: str, number: int) -> BlobClient:
    return container.get_blob_client(f"{prefix}/{number:06d}.jsonl")


def _create(blob: BlobClient) -> bool:
    """Create an append blob; return False if it exists."""
    try:
        blob.create_append_blob(match_condition=MatchConditions.IfMissing)
    except ResourceExistsError:
        return False
    return True


def _last_number(container: ContainerClient, prefix: str) -> int:
    """Return the number of the last blob; JournalMissingError without one."""
    names = [name.removeprefix(f"{prefix}/").removesuffix(".jsonl") for name in container.list_blob_names(name_starts_with=f"{prefix}/")]
    numbers = [int(name) for name in names if name.isdecimal()]
    if not numbers:
        raise JournalMissingError(journal_address(container, prefix))
    return max(numbers)


def _check_not_continued(container: ContainerClient, prefix: str, number: int) -> None:
    """Raise JournalHeldError while a writer that created this blob, and has not leased it yet, holds the blob before it."""
    if number == 1:
        return
    try:
        former = _blob(container, prefix, number - 1).get_blob_properties()
    except ResourceNotFoundError:  # reading the journal reports it
        return
    if former.lease.status == "locked":
        raise JournalHeldError(_blob_name(container, prefix, number - 1), "its writer is about to continue in the next blob")


def _code(error: HttpResponseError) -> str:
    response: Any = error.response
    code = None if response is None else response.headers.get("x-ms-error-code")
    return str(code or f"HTTP {error.status_code}")


def _not_opened(container: ContainerClient, prefix: str, error: AzureError) -> JournalWriteError:
    reason = _code(error) if isinstance(error, HttpResponseError) else type(error).__name__
    return JournalWriteError(journal_address(container, prefix), reason, "check the container, this account's rights and the network")
