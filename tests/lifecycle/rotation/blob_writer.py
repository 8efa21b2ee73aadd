"""A process that writes a journal of blobs until it is killed; its arguments are a token, a container and its certificate authority."""

from __future__ import annotations

import sys
import time

from azure.core.credentials import AccessToken
from azure.storage.blob import ContainerClient
from journal_samples import OwnLease, write_until_killed

from components.errors import GpufleetError
from lifecycle.rotation.journal_blobs import CLIENT_OPTIONS, JournalBlobs
from lifecycle.rotation.journal_writer import JournalWriter

PREFIX = "dev-0/r1"
LEASE_SECONDS = 15
MOST_BLOCKS = 4
"""Small, so that blobs are continued often."""


class OneToken:
    """Credential with one token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *_scopes: str, **_options: object) -> AccessToken:
        return AccessToken(self._token, int(time.time()) + 3_600)


def container(url: str, authority: str, token: str) -> ContainerClient:
    """Return a client of a container of Azurite, which knows no later versions of the service."""
    options = {"connection_verify": authority, "api_version": "2023-11-03", **CLIENT_OPTIONS}
    return ContainerClient.from_container_url(url, credential=OneToken(token), **options)


def opened(client: ContainerClient, wait_seconds: float = 30) -> JournalBlobs:
    """Lease the journal of the tests."""
    return JournalBlobs.open(client, PREFIX, LEASE_SECONDS, MOST_BLOCKS, wait_seconds)


if __name__ == "__main__":
    try:
        write_until_killed(JournalWriter.proceed(opened(container(*sys.argv[1:])), OwnLease(), "dev-0"))
    except GpufleetError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
