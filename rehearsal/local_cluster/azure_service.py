"""HTTPS service of the embedded Azure for programs on this machine."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit

from rehearsal.arm.attested_data import load_or_create, root_file
from rehearsal.arm.instance_document import instance_document
from rehearsal.arm.listeners import ServerAddresses, run_servers
from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.served_azure import with_call_limits
from rehearsal.arm.time_source import TimeSource
from rehearsal.azure.cloud import Cloud

T = TypeVar("T")

LOOPBACK = "127.0.0.1"


class AzureService(AbstractContextManager["AzureService"]):
    """The embedded Azure behind HTTPS on loopback: base is the URL of Resource Manager and vaults, metadata that of metadata services.

    authority is the file of the certificate authority that clients trust, identity the identity that they sign in as. While it is served,
    the model belongs to the serving thread; callers read and change it by `call`.
    """

    def __init__(self, live: LiveModel, folder: Path, port: int = 0) -> None:
        """Create the service, which starts when entered; folder stores keys and certificates, and port 0 is any free port."""
        self._live, self._folder, self._port = live, folder, port
        self._loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(target=self._serve, name="embedded Azure", daemon=True)
        self._listens: Future[ServerAddresses] = Future()
        self._stop = asyncio.Event()

    def __enter__(self) -> Self:
        """Start to serve; raise OSError if the port is not free or the folder cannot be written."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._thread.start()
        listening = self._listens.result()
        self.base, self.metadata, self.authority = listening.base, listening.metadata, listening.authority
        self.identity = listening.identity
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def call(self, work: Callable[[Cloud], T]) -> T:
        """Call a function with the current model, between other clients' requests, and return its result."""
        done: Future[T] = Future()

        def now() -> None:
            try:
                self._live.catch_up()
                done.set_result(work(self._live.cloud))
            except BaseException as error:  # noqa: BLE001 (raised in the caller)
                done.set_exception(error)

        self._loop.call_soon_threadsafe(now)
        return done.result()

    def metadata_of(self, resource_id: str) -> str:
        """Return the base URL of a machine's metadata service, which replaces http://169.254.169.254."""
        return f"{self.metadata}/imds{resource_id}"

    def vault_uri(self, uri: str) -> str:
        """Return the local URL of a vault, which replaces https://<vault>.vault.azure.net/."""
        vault = str(urlsplit(uri).hostname).partition(".")[0]
        return f"{self.base}/keyvault/{vault}"

    def environment(self, resource_id: str) -> dict[str, str]:
        """Return the environment by which a machine's programs find this Azure."""
        return {
            "GPUFLEET_IMDS": self.metadata_of(resource_id),
            "GPUFLEET_RESOURCE_MANAGER": self.base,
            "AZURE_POD_IDENTITY_AUTHORITY_HOST": self.metadata_of(resource_id),
            "SSL_CERT_FILE": str(self.authority),
            "REQUESTS_CA_BUNDLE": str(self.authority),
            "GPUFLEET_ATTESTATION_ROOTS": str(self._attestation_roots()),
        }

    def attested_document(self, resource_id: str, nonce: str) -> str:
        """Return attested data of a machine in base64, as its metadata service does."""
        signer = load_or_create(self._folder)
        compute = self.call(lambda cloud: instance_document(cloud, cloud.get(resource_id))["compute"])
        return str(signer.document(compute, nonce, time.time())["signature"])

    def _attestation_roots(self) -> Path:
        load_or_create(self._folder)
        return root_file(self._folder)

    def _serve(self) -> None:
        try:
            asyncio.run(self._until_stopped())
        except BaseException as error:
            if self._listens.done():
                raise
            self._listens.set_exception(error)

    async def _until_stopped(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with run_servers(self._live, self._folder, (LOOPBACK, self._port), 0) as listening:
            self._listens.set_result(listening)
            await self._stop.wait()
        self._live.snapshot()


def without_state(cloud: Cloud) -> LiveModel:
    """Return the model on real time; nothing is stored."""
    return LiveModel(with_call_limits(cloud), TimeSource(1.0, cloud.now))


def serve_azure(cloud: Cloud, folder: Path) -> AzureService:
    """Return the model as a service on real time; folder stores keys and certificates, and the model is not stored."""
    return AzureService(without_state(cloud), folder)
