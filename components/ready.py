"""Decides when the API servers are there: once one of them answers /readyz under the name and the CA that clients will use."""

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
class Patience:
    """How long to wait, in seconds: deadline for a server that is still starting, hopeless for what waiting seldom mends.

    A machine is up in minutes, then reads its secrets; a resolver sees a fresh record once it forgets that there was none.
    """

    deadline: float = 1_200
    hopeless: float = 180
    between: float = 5
    progress: float = 30


@dataclass(frozen=True)
class Endpoint:
    """Where to ask: host is the servers' DNS name, ca_certificate the PEM text of the CA that must have signed theirs."""

    host: str
    port: int
    ca_certificate: str

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Obstacle(Enum):
    """What keeps an API server from having answered, each with what a person can do about it."""

    UNRESOLVED = f"the name does not resolve; {NOT_IN_HUB}"
    UNROUTED = f"there is no route to it; {NOT_IN_HUB}"
    DISTRUSTED = f"the certificate is not the cluster's; {OTHER_CA}"
    STARTING = f"no API server is ready; {CONSOLES}"


@dataclass(frozen=True)
class Refusal:
    """One attempt that found no ready server: the obstacle, and in what words it was met."""

    obstacle: Obstacle
    words: str


class ApiServerNotReadyError(Exception):
    """No API server was ready in time: value is the last answer, bound the seconds waited."""

    def __init__(self, endpoint: Endpoint, refusal: Refusal, bound: float) -> None:
        self.endpoint, self.value, self.bound = endpoint, refusal.words, bound
        self.reason, _, self.remedy = refusal.obstacle.value.partition("; ")
        super().__init__(f"{endpoint}: {refusal.words} after {bound:g} s: {self.reason}; {self.remedy}")


def ask(endpoint: Endpoint) -> Refusal | None:
    """Ask /readyz once; None where the answer is ok."""
    context = ssl.create_default_context(cadata=endpoint.ca_certificate)
    connection = http.client.HTTPSConnection(endpoint.host, endpoint.port, timeout=ANSWER_SECONDS, context=context)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        body = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return Refusal(obstacle_of(error), one_line(str(error)) or type(error).__name__)
    finally:
        connection.close()
    if answer.status == http.client.OK and body.strip() == "ok":
        return None
    return Refusal(Obstacle.STARTING, one_line(f"{answer.status} {body}"))


def obstacle_of(error: Exception) -> Obstacle:
    """Which obstacle an exception of a connection attempt stands for."""
    if isinstance(error, socket.gaierror):
        return Obstacle.UNRESOLVED
    if isinstance(error, ssl.SSLCertVerificationError):
        return Obstacle.DISTRUSTED
    if isinstance(error, OSError) and error.errno in NO_ROUTE:
        return Obstacle.UNROUTED
    return Obstacle.STARTING


def one_line(text: str) -> str:
    """A text as one line of at most SHOWN_CHARACTERS characters."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"


def wait_until_ready(endpoint: Endpoint, patience: Patience, say: Callable[[str], None]) -> None:
    """Ask until an API server is ready, saying now and then how it stands; NotReady where patience ends first."""
    start = time.monotonic()
    said = start
    while (refusal := ask(endpoint)) is not None:
        waited = time.monotonic() - start
        bound = patience.deadline if refusal.obstacle is Obstacle.STARTING else min(patience.hopeless, patience.deadline)
        if waited >= bound:
            raise ApiServerNotReadyError(endpoint, refusal, bound)
        if time.monotonic() - said >= patience.progress:
            said = time.monotonic()
            say(f"{endpoint}: not ready after {waited:.0f} s of at most {bound:g} s: {refusal.words}")
        time.sleep(patience.between)


class ReadyProvider(ResourceProvider):
    """Waits where the resource is created or its inputs change; keeps nothing, so there is nothing to delete."""

    waits_for_cloud: ClassVar[bool] = True
    serialize_as_secret_always = False

    def create(self, props: Mapping[str, Any]) -> CreateResult:
        """Wait for the servers; NotReady in one line."""
        self._wait(props)
        return CreateResult(str(props["host"]), dict(props))

    def update(self, _id: str, _olds: Mapping[str, Any], news: Mapping[str, Any]) -> UpdateResult:
        """Wait for the servers in their new form; NotReady in one line."""
        self._wait(news)
        return UpdateResult(dict(news))

    def _wait(self, props: Mapping[str, Any]) -> None:
        endpoint = Endpoint(props["host"], int(props["port"]), props["ca_certificate"])
        # What a dynamic provider prints, Pulumi shows as it goes.
        wait_until_ready(endpoint, Patience(), lambda line: print(line, flush=True))


@dataclass(frozen=True)
class ApiServersReadyArgs:
    """The API servers to wait for; custom_data is what they boot from, so that a change of it is waited for too."""

    plan: ApiServersPlan
    ca_certificate: pulumi.Input[str]
    custom_data_sha256: str


class ApiServersReady(Resource, module="ready", name="ApiServersReady"):
    """Stands for API servers that answer: complete only when one is ready, so that cluster objects can depend on it."""

    def __init__(self, name: str, args: ApiServersReadyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {
            "host": args.plan.dns_name,
            "port": API_SERVER_PORT,
            "ca_certificate": args.ca_certificate,
            "image": args.plan.image.pin,
            "custom_data_sha256": args.custom_data_sha256,
        }
        super().__init__(ReadyProvider(), name, props, opts)
