"""Wait until an API server answers /readyz under the name and CA that clients use."""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import pulumi
from pulumi.dynamic import CreateResult, Resource, ResourceProvider, UpdateResult

from components.plan.model import API_SERVER_PORT, ApiServersPlan

ANSWER_SECONDS = 5
NO_ROUTE = (errno.ENETUNREACH, errno.EHOSTUNREACH)
SHOWN_CHARACTERS = 160
NOT_IN_HUB = "run pulumi from inside the hub's network: dial in to its VPN gateway, or use a machine in its runner subnet"
OTHER_CA = "find out who answers there; a server of an earlier cluster goes with its scale set"
CONSOLES = "read the consoles of the API servers' scale set and of the etcd machines in Azure, then run pulumi up again"


@dataclass(frozen=True)
class WaitTimes:
    """Times in seconds: deadline for a starting server, hopeless for obstacles that rarely disappear, between attempts, of progress.

    A machine boots in minutes and then reads its secrets. A resolver finds a new record after its negative cache entry has expired.
    """

    deadline: float = 1_200
    hopeless: float = 180
    between: float = 5
    progress: float = 30


@dataclass(frozen=True)
class Endpoint:
    """Address of the API servers: host is their DNS name, ca_certificate the PEM text of their CA."""

    host: str
    port: int
    ca_certificate: str

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Obstacle(Enum):
    """Reasons why no API server was ready, each with a remedy."""

    UNRESOLVED = f"the name does not resolve; {NOT_IN_HUB}"
    UNROUTED = f"there is no route to it; {NOT_IN_HUB}"
    DISTRUSTED = f"the certificate is not the cluster's; {OTHER_CA}"
    STARTING = f"no API server is ready; {CONSOLES}"


@dataclass(frozen=True)
class FailedAttempt:
    """One failed attempt: the obstacle and its message."""

    obstacle: Obstacle
    message: str


class ApiServerNotReadyError(Exception):
    """No API server was ready in time: value is the last message, bound the seconds waited."""

    def __init__(self, endpoint: Endpoint, failure: FailedAttempt, bound: float) -> None:
        self.endpoint, self.value, self.bound = endpoint, failure.message, bound
        self.reason, _, self.remedy = failure.obstacle.value.partition("; ")
        super().__init__(f"{endpoint}: {failure.message} after {bound:g} s: {self.reason}; {self.remedy}")


def request_readyz(endpoint: Endpoint) -> FailedAttempt | None:
    """Request /readyz once; return None if the response is ok."""
    context = ssl.create_default_context(cadata=endpoint.ca_certificate)
    connection = http.client.HTTPSConnection(endpoint.host, endpoint.port, timeout=ANSWER_SECONDS, context=context)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        body = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return FailedAttempt(obstacle_of(error), one_line(str(error)) or type(error).__name__)
    finally:
        connection.close()
    if answer.status == http.client.OK and body.strip() == "ok":
        return None
    return FailedAttempt(Obstacle.STARTING, one_line(f"{answer.status} {body}"))


def obstacle_of(error: Exception) -> Obstacle:
    """Return the obstacle that an exception of a connection attempt indicates."""
    if isinstance(error, socket.gaierror):
        return Obstacle.UNRESOLVED
    if isinstance(error, ssl.SSLCertVerificationError):
        return Obstacle.DISTRUSTED
    if isinstance(error, OSError) and error.errno in NO_ROUTE:
        return Obstacle.UNROUTED
    return Obstacle.STARTING


def one_line(text: str) -> str:
    """Return a text as one line of at most SHOWN_CHARACTERS characters."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"


def wait_until_ready(endpoint: Endpoint, times: WaitTimes, report: Callable[[str], None]) -> None:
    """Request /readyz until an API server is ready, and report progress; raise ApiServerNotReadyError when the time is over."""
    start = time.monotonic()
    reported = start
    while (failure := request_readyz(endpoint)) is not None:
        waited = time.monotonic() - start
        bound = times.deadline if failure.obstacle is Obstacle.STARTING else min(times.hopeless, times.deadline)
        if waited >= bound:
            raise ApiServerNotReadyError(endpoint, failure, bound)
        if time.monotonic() - reported >= times.progress:
            reported = time.monotonic()
            report(f"{endpoint}: not ready after {waited:.0f} s of at most {bound:g} s: {failure.message}")
        time.sleep(times.between)


class ReadyProvider(ResourceProvider):
    """Wait when the resource is created or its inputs change; it has no state to delete."""

    waits_for_cloud: ClassVar[bool] = True
    serialize_as_secret_always = False

    def create(self, props: Mapping[str, Any]) -> CreateResult:
        """Wait for the servers; raise ApiServerNotReadyError."""
        self._wait(props)
        return CreateResult(str(props["host"]), dict(props))

    def update(self, _id: str, _olds: Mapping[str, Any], news: Mapping[str, Any]) -> UpdateResult:
        """Wait for the changed servers; raise ApiServerNotReadyError."""
        self._wait(news)
        return UpdateResult(dict(news))

    def _wait(self, props: Mapping[str, Any]) -> None:
        endpoint = Endpoint(props["host"], int(props["port"]), props["ca_certificate"])
        # Pulumi shows the output of a dynamic provider immediately.
        wait_until_ready(endpoint, WaitTimes(), lambda line: print(line, flush=True))


@dataclass(frozen=True)
class ApiServersReadyArgs:
    """The API servers to wait for; a changed custom_data_sha256 makes the resource wait again."""

    plan: ApiServersPlan
    ca_certificate: pulumi.Input[str]
    custom_data_sha256: str


class ApiServersReady(Resource, module="ready", name="ApiServersReady"):
    """Resource that is complete when an API server is ready, so that cluster objects can depend on it."""

    def __init__(self, name: str, args: ApiServersReadyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {
            "host": args.plan.dns_name,
            "port": API_SERVER_PORT,
            "ca_certificate": args.ca_certificate,
            "image": args.plan.image.pin,
            "custom_data_sha256": args.custom_data_sha256,
        }
        super().__init__(ReadyProvider(), name, props, opts)
