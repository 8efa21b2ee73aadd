"""Registration of one machine as a node: client certificate, Node, serving certificate."""

from __future__ import annotations

import asyncio
import base64
import datetime
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager

from cryptography.hazmat.primitives.asymmetric import ec

from components.errors import GpufleetError
from rehearsal.local_cluster.joining import certificates
from rehearsal.local_cluster.joining.certificates import CLIENT_SIGNER, SERVING_SIGNER, USAGES, Identity
from rehearsal.local_cluster.joining.connection import Connection, Json, RequestRejectedError, pause
from rehearsal.local_cluster.joining.figures import NodeFailure, Tally
from rehearsal.local_cluster.joining.machines import JoiningMachine
from rehearsal.local_cluster.joining.protobuf import node_bytes
from services.csr_approver.attested_data import nonce_of
from services.csr_approver.first_requests import DOCUMENT_ANNOTATION

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
NODES = "/api/v1/nodes"
EXISTS = 409
WATCH_SECONDS = 300


class RegistrationStepError(GpufleetError):
    """A machine whose registration failed."""

    def __init__(self, failure: NodeFailure) -> None:
        self.failure = failure
        super().__init__(f"{failure.node}: {failure.step}: {failure.message}")


class NodeRegistration:
    """Registration of one machine: records the duration of each step, and the failed one."""

    def __init__(self, machine: JoiningMachine, tally: Tally) -> None:
        self.machine, self._tally = machine, tally

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Run a step. Raises RegistrationStepError if the server rejects it."""
        began = time.perf_counter()
        try:
            yield
        except RequestRejectedError as error:
            raise RegistrationStepError(NodeFailure(self.machine.name, name, error.status, error.message)) from error
        self._tally.step(name, time.perf_counter() - began)

    async def client_identity(self, connection: Connection, attest: Callable[[str, str], str]) -> Identity:
        """Request the first client certificate with the bootstrap token and attested data for the key."""
        key = certificates.new_key()
        pem = certificates.signing_request(key, self.machine.name)
        with self.step("attested data"):
            document = await asyncio.to_thread(attest, self.machine.resource_id, nonce_of(key.public_key()))
        with self.step("client request"):
            request = await self._request(connection, CLIENT_SIGNER, pem, {DOCUMENT_ANNOTATION: document})
        with self.step("client certificate"):
            return Identity(await self._issued(connection, request), certificates.pem_of(key))

    async def register(self, connection: Connection) -> None:
        """Create the Node, or report the status of an existing one, as after a reimage."""
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        node = self.machine.node(now)
        with self.step("node"):
            answer = await connection.request("POST", NODES, node_bytes(node), accept=frozenset({EXISTS}))
            if answer.status == EXISTS:
                await connection.request("PATCH", f"{NODES}/{self.machine.name}/status", {"status": node["status"]})

    async def serving_identity(self, connection: Connection) -> Identity:
        """Request the kubelet's serving certificate, for its name and address."""
        key: ec.EllipticCurvePrivateKey = certificates.new_key()
        pem = certificates.signing_request(key, self.machine.name, (self.machine.name,), (self.machine.address,))
        with self.step("serving request"):
            request = await self._request(connection, SERVING_SIGNER, pem)
        with self.step("serving certificate"):
            return Identity(await self._issued(connection, request), certificates.pem_of(key))

    async def _request(self, connection: Connection, signer: str, pem: bytes, annotations: Mapping[str, str] | None = None) -> Json:
        """Create a signing request, or return the one of the same name if a response was lost."""
        digest = hashlib.sha256(pem).hexdigest()[:32]
        name = f"node-csr-{digest}" if signer == CLIENT_SIGNER else f"csr-{digest}"
        spec = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": list(USAGES[signer])}
        body: Json = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "spec": spec}
        body["metadata"] = {"name": name, **({"annotations": annotations} if annotations else {})}
        answer = await connection.request("POST", REQUESTS, body, accept=frozenset({EXISTS}))
        return answer.json() if answer.status != EXISTS else (await connection.request("GET", f"{REQUESTS}/{name}")).json()

    async def _issued(self, connection: Connection, request: Json) -> bytes:
        """Return the certificate of a signing request. Raises RequestRejectedError if it is denied, fails or stays pending too long."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(connection.deadline - began):
                return await self._watched(connection, request)
        except TimeoutError:
            raise RequestRejectedError(
                0, f"{request['metadata']['name']} is still pending after {time.monotonic() - began:.0f} s"
            ) from None

    async def _watched(self, connection: Connection, request: Json) -> bytes:
        """Watch the request, as kubelets do, and return the certificate; read the request again when the watch ends."""
        tries = 0
        while (found := issued_certificate(request)) is None:
            name, version = request["metadata"]["name"], request["metadata"]["resourceVersion"]
            query = f"watch=true&fieldSelector=metadata.name%3D{name}&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}"
            async with aclosing(connection.watch(f"{REQUESTS}?{query}")) as events:
                async for event in events:
                    if event["type"] == "MODIFIED" and (found := issued_certificate(event["object"])) is not None:
                        return found
            await asyncio.sleep(pause(tries))
            tries += 1
            request = (await connection.request("GET", f"{REQUESTS}/{name}")).json()
        return found


def issued_certificate(request: Json) -> bytes | None:
    """Return the certificate of a signing request; None while it is pending. Raises RequestRejectedError if it was denied or failed."""
    status = request.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] in ("Denied", "Failed"):
            raise RequestRejectedError(0, f"{condition['type'].lower()}: {condition.get('message') or condition.get('reason')}")
    encoded = status.get("certificate")
    return base64.b64decode(encoded) if encoded else None
