"""Join of machines to a cluster: their order and times, with their own connections or a few shared ones."""

from __future__ import annotations

import asyncio
import gc
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from rehearsal.local_cluster.joining.boot_programs import wait_seconds
from rehearsal.local_cluster.joining.certificates import Identity, client_context
from rehearsal.local_cluster.joining.cluster_access import ClusterAccess
from rehearsal.local_cluster.joining.connection import Connection, bearer
from rehearsal.local_cluster.joining.figures import JoinFigures, NodeFailure, Tally, joined
from rehearsal.local_cluster.joining.machines import JoiningMachine
from rehearsal.local_cluster.joining.node_object import NODE_USER, NODES_GROUP
from rehearsal.local_cluster.joining.node_registration import NodeRegistration, RegistrationStepError

DEADLINE_SECONDS = 300.0
IMPERSONATING_CONNECTIONS = 8
AT_ONCE = 1_500
"""Maximum number of machines that join at the same time; each takes about 0.3 MB, most of it TLS."""
TOLD_EVERY = 5.0


class Identities(StrEnum):
    """Identity under which machines join.

    BOOTSTRAP has all steps: token, client certificate, Node, serving certificate. ISSUED has a client certificate from the start and
    requests no serving certificate, which omits all signing. IMPERSONATED shares few connections of one identity that may act for nodes,
    which also omits a connection per node; authorizers, admission, priority and fairness still see each node.
    """

    BOOTSTRAP = "bootstrap"
    ISSUED = "issued"
    IMPERSONATED = "impersonated"


@dataclass(frozen=True)
class Smoothing:
    """Spread of first joins as in the boot files, with a factor on the delays that a test may set below 1; off joins all at once."""

    on: bool = True
    factor: float = 1.0

    def wait(self, machine: JoiningMachine) -> float:
        """Return the seconds before a machine starts."""
        return self.factor * wait_seconds(machine.of_set.boot.spread_seconds, 0, machine.vm_id) if self.on else 0.0


STORM = Smoothing(on=False)


@contextmanager
def _unsearched() -> Iterator[None]:
    """Exclude existing objects from garbage collection: a collection over a model of thousands of machines pauses all joins for half a
    second."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Joiner:
    """Joiner of machines through one cluster access."""

    def __init__(self, access: ClusterAccess, *, at_once: int = AT_ONCE, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._access, self._at_once, self._patience = access, at_once, deadline_seconds

    def join(
        self, machines: Sequence[JoiningMachine], how: Identities, smoothing: Smoothing, say: Callable[[str], None] = lambda _: None
    ) -> JoinFigures:
        """Join machines and return when all have joined or failed; a failure does not stop the others.

        With ISSUED, the certificates are created before the time measurement starts.
        """
        issued = self._issue(machines) if how is Identities.ISSUED else {}
        with _unsearched():
            return asyncio.run(_Round(self._access, how, smoothing, issued, self._patience, say).run(machines, self._at_once))

    def _issue(self, machines: Iterable[JoiningMachine]) -> dict[str, Identity]:
        if self._access.issuer is None:
            raise ValueError("ISSUED identities require the issuer of the cluster's authority: set ClusterAccess.issuer")
        return {one.name: self._access.issuer.issue(f"{NODE_USER}{one.name}", NODES_GROUP) for one in machines}


class _Round:
    """One join of many machines."""

    def __init__(
        self,
        access: ClusterAccess,
        how: Identities,
        smoothing: Smoothing,
        issued: Mapping[str, Identity],
        patience: float,
        say: Callable[[str], None],
    ) -> None:
        self._access, self._how, self._smoothing, self._issued, self._patience, self._say = access, how, smoothing, issued, patience, say
        self._tally, self._done = Tally(), 0
        self._failures: list[NodeFailure] = []
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def run(self, machines: Sequence[JoiningMachine], at_once: int) -> JoinFigures:
        """Join all machines."""
        began, cpu = time.monotonic(), time.thread_time()
        teller = asyncio.create_task(self._tell(len(machines)))
        if self._how is Identities.IMPERSONATED:
            await self._by_few(machines)
        else:
            room = asyncio.Semaphore(at_once)
            async with asyncio.TaskGroup() as group:
                for machine in machines:
                    group.create_task(self._alone(machine, room))
        teller.cancel()
        return joined(self._tally, time.monotonic() - began, self._done, tuple(self._failures), time.thread_time() - cpu)

    async def _tell(self, of: int) -> None:
        while True:
            await asyncio.sleep(TOLD_EVERY)
            self._say(f"{self._done} of {of} machines have joined")

    def _connection(self, context: ssl.SSLContext, headers: Mapping[str, str] | None = None) -> Connection:
        return Connection(self._access.url, context, self._tally, time.monotonic() + self._patience, headers)

    async def _alone(self, machine: JoiningMachine, room: asyncio.Semaphore) -> None:
        """Join one machine by its own connections."""
        await asyncio.sleep(self._smoothing.wait(machine))
        async with room:
            await self._try(machine.name, self._bootstrap(machine) if self._how is Identities.BOOTSTRAP else self._with_issued(machine))

    async def _try(self, node: str, way: Awaitable[None]) -> None:
        """Run all steps of a machine, and record the failed one."""
        try:
            await way
            self._done += 1
        except RegistrationStepError as error:
            self._failures.append(error.failure)
            self._say(f"{node} did not join: {error}")

    async def _bootstrap(self, machine: JoiningMachine) -> None:
        """Run the steps of a machine's first boot."""
        first, asking = self._access.first[machine.of_set.name], NodeRegistration(machine, self._tally)
        if first.authority not in self._contexts:
            self._contexts[first.authority] = client_context(first.authority)
        async with self._connection(self._contexts[first.authority], bearer(first.token)) as connection:
            own = await asking.client_identity(connection, self._access.attest)
        async with self._connection(client_context(first.authority, own)) as connection:
            await asking.register(connection)
            await asking.serving_identity(connection)

    async def _with_issued(self, machine: JoiningMachine) -> None:
        """Register the Node only, by a connection with the machine's own certificate."""
        async with self._connection(client_context(self._access.authority, self._issued[machine.name])) as connection:
            await NodeRegistration(machine, self._tally).register(connection)

    async def _by_few(self, machines: Sequence[JoiningMachine]) -> None:
        """Register Nodes by few connections of one identity, in the order of their start times."""
        if self._access.actor is None:
            raise ValueError("IMPERSONATED identities require the token of an account that may impersonate nodes: set ClusterAccess.actor")
        context, headers, began = client_context(self._access.authority), bearer(self._access.actor), time.monotonic()
        timed = iter(sorted(((self._smoothing.wait(one), one) for one in machines), key=lambda pair: pair[0]))

        async def work() -> None:
            async with self._connection(context, headers) as connection:
                for wait, machine in timed:
                    if (left := began + wait - time.monotonic()) > 0.0:
                        await asyncio.sleep(left)
                    connection.deadline = time.monotonic() + self._patience
                    connection.act_as(f"{NODE_USER}{machine.name}")
                    await self._try(machine.name, NodeRegistration(machine, self._tally).register(connection))

        async with asyncio.TaskGroup() as group:
            for _ in range(IMPERSONATING_CONNECTIONS):
                group.create_task(work())
