"""Upload and download of blobs in one container with the machine's managed identity; an existing blob is never overwritten.

Only the standard library is used, because the etcd image runs this program without other packages. azure-storage-blob with azure-identity
would bring cryptography, requests and msal into that image.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

IMDS = os.environ.get("GPUFLEET_IMDS", "http://169.254.169.254")
DEADLINE_SECONDS = float(os.environ.get("GPUFLEET_DEADLINE_SECONDS", "900"))
BLOCK_BYTES = int(os.environ.get("GPUFLEET_BLOCK_BYTES", str(16 * 1024 * 1024)))
API_VERSION = "2023-11-03"
"""Version of the Blob service: https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api"""
RETRIED_STATUSES = {408, 429, 500, 502, 503, 504}


class BlobRequestError(Exception):
    """The reason of a failure, without secrets."""


class BlobServiceUnreachableError(Exception):
    """A request that can be retried, and the reason."""


class BlobResponseError(Exception):
    """An error response of the storage service: HTTP status and error code."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"HTTP {status} {code}".strip())
        self.status, self.code = status, code


class NoRedirectHandler(urllib.request.HTTPRedirectHandler):
    """Handler that follows no redirect, which would carry the access token to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


# No proxy from the environment: neither the metadata service nor a private endpoint is behind one.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirectHandler())


def md5(data: bytes) -> str:
    """Return the MD5 of a body in base64, for the check by the storage service."""
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def send(request: urllib.request.Request) -> tuple[dict[str, str], bytes]:
    """Return the headers, by name in lower case, and the body of a response; BlobServiceUnreachableError or BlobResponseError."""
    try:
        with OPENER.open(request, timeout=60) as response:
            return {name.lower(): value for name, value in response.headers.items()}, response.read()
    except urllib.error.HTTPError as error:
        if error.code in RETRIED_STATUSES:
            raise BlobServiceUnreachableError(f"HTTP {error.code}") from None
        raise BlobResponseError(error.code, error.headers.get("x-ms-error-code") or "") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise BlobServiceUnreachableError(f"{type(reason).__name__}: {getattr(reason, 'strerror', None) or 'no usable response'}") from None


class Container:
    """The cluster's container, with a token of the machine's identity that is renewed when it is rejected."""

    def __init__(self, url: str, identity: str) -> None:
        if not url.startswith("https://"):
            raise BlobRequestError(f"the container's address {url} is not https")
        self.url, self.identity, self.token, self.deadline = url, identity, "", time.monotonic() + DEADLINE_SECONDS

    def _token(self) -> str:
        if not self.token:
            query = {"api-version": "2018-02-01", "resource": "https://storage.azure.com", "msi_res_id": self.identity}
            url = f"{IMDS}/metadata/identity/oauth2/token?{urllib.parse.urlencode(query)}"
            try:
                request = urllib.request.Request(url, headers={"Metadata": "true"})  # noqa: S310 (its scheme is in IMDS)
                self.token = str(json.loads(send(request)[1])["access_token"])
            except (KeyError, ValueError, TypeError):
                raise BlobRequestError("no access_token from the metadata service") from None
            except BlobResponseError as error:
                raise BlobRequestError(f"no token from the metadata service: {error}") from None
        return self.token

    def _once(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> tuple[dict[str, str], bytes]:
        full_headers = {"Authorization": f"Bearer {self._token()}", "x-ms-version": API_VERSION, **headers}
        if body is not None:
            # urllib would set the content type of a form, which the service would store.
            full_headers = {"Content-Type": "application/octet-stream", "Content-MD5": md5(body), **full_headers}
        return send(urllib.request.Request(url, data=body, headers=full_headers, method=method))  # noqa: S310 (https: see above)

    def request(
        self, method: str, blob: str, query: dict[str, str], headers: dict[str, str] | None = None, body: bytes | None = None
    ) -> tuple[dict[str, str], bytes]:
        """Send one request with growing random pauses until the deadline; BlobResponseError for a permanent error."""
        url = f"{self.url}{'/' + urllib.parse.quote(blob) if blob else ''}?{urllib.parse.urlencode(query)}"
        tries, renewed = 0, False
        while True:
            try:
                return self._once(method, url, headers or {}, body)
            except BlobResponseError as error:
                if error.status != 401 or renewed:
                    raise
                self.token, renewed = "", True
            except BlobServiceUnreachableError as error:
                wait = random.uniform(0.5, 1.0) * 2.0 ** min(tries, 5)  # noqa: S311 (it scatters requests)
                tries += 1
                if time.monotonic() + wait > self.deadline:
                    raise BlobRequestError(
                        f"{method} {blob or 'container'}: {error}; the deadline has passed after {tries} tries"
                    ) from None
                print(f"{method} {blob or 'container'}: {error}; next try in {wait:.1f} s", file=sys.stderr, flush=True)
                time.sleep(wait)

    def blobs(self, prefix: str) -> list[dict[str, str]]:
        """Return every complete snapshot of an etcd cluster, oldest first: name, size, and metadata."""
        found, marker = [], ""
        while True:
            query = {"restype": "container", "comp": "list", "prefix": prefix, "include": "metadata", "marker": marker}
            page = ElementTree.fromstring(self.request("GET", "", query)[1])  # noqa: S314 (Azure Storage is trusted with the cluster's whole state)
            for blob in page.iter("Blob"):
                metadata = {item.tag.lower(): item.text or "" for item in blob.find("Metadata") or ()}
                found.append({"name": blob.findtext("Name") or "", "size": blob.findtext("Properties/Content-Length") or "", **metadata})
            marker = page.findtext("NextMarker") or ""
            if not marker:
                return sorted(found, key=lambda blob: blob["name"])


def upload(container: Container, name: str, path: Path, metadata: dict[str, str]) -> None:
    """Upload a file under a new name: block by block, each checked by the storage service, then committed; an existing blob remains."""
    blocks: list[str] = []
    whole = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while part := file.read(BLOCK_BYTES):
            block = base64.b64encode(f"{len(blocks):08d}".encode()).decode()
            container.request("PUT", name, {"comp": "block", "blockid": block}, body=part)
            blocks.append(block)
            whole.update(part)
    listed = "".join(f"<Latest>{block}</Latest>" for block in blocks)
    headers = {
        "If-None-Match": "*",
        "x-ms-blob-content-md5": base64.b64encode(whole.digest()).decode(),
        "x-ms-blob-content-type": "application/octet-stream",
        **{f"x-ms-meta-{key}": value for key, value in metadata.items()},
    }
    body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'.encode()
    try:
        container.request("PUT", name, {"comp": "blocklist"}, headers, body)
    except BlobResponseError as error:
        if error.status != 409 and error.status != 412:
            raise
        # After a lost response the blob exists: the metadata shows whether it is this file.
    existing, _ = container.request("HEAD", name, {})
    if existing.get("x-ms-meta-sha256") != metadata["sha256"] or existing.get("content-length") != metadata["bytes"]:
        raise BlobRequestError(f"another blob has the name {name}; it is unchanged")


def download(container: Container, blob: dict[str, str], target: Path) -> None:
    """Write a blob to a file, a block at a time."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    size, at = int(blob["size"]), 0
    with target.open("wb") as file:
        while at < size:
            part = container.request("GET", blob["name"], {}, {"x-ms-range": f"bytes={at}-{at + BLOCK_BYTES - 1}"})[1]
            if not part:
                raise BlobRequestError(f"the storage service returned {at} of {size} bytes")
            file.write(part)
            at += len(part)
