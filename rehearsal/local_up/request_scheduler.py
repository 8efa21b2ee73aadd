"""Decides when a request reaches Azure and when its sender hears how it ended: so many at once, retried as azure-native retries."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rehearsal.azure.azure_native_requests import LONGEST_DELAY, POLL_SECONDS, RETRIED, RETRIED_CONFLICT, RETRIES, back_off
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Operation, Request

PARALLEL = 64
"""Operations open at once, where the command line says nothing else. Pulumi's own default is four per CPU
(https://www.pulumi.com/docs/iac/cli/commands/pulumi_up/), which would make the outcome depend on the machine."""
PATIENCE = 7 * 86_400.0
"""Seconds after which an operation is taken to have no end."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something failed: Azure's code and sentence, and the details with theirs."""

    code: str
    message: str
    details: tuple[Failure, ...] = ()

    @classmethod
    def of(cls, error: dict[str, Any]) -> Failure:
        """The failure that an error's body tells of."""
        return cls(error.get("code", ""), error.get("message", ""), tuple(map(cls.of, error.get("details", ()))))


OnEnd = Callable[[Failure | None], None]
"""Called when a request has ended: with why it failed, or None."""


@dataclass(slots=True)
class _ScheduledRequest:
    request: Request
    tell: OnEnd
    attempt: int = 1


class RequestScheduler:
    """Sends requests to a model of Azure whose time it moves on; nothing happens but in advance.

    retried counts, by Azure's code, the refusals that were not taken for the last word.
    """

    def __init__(self, cloud: Cloud, parallel: int = PARALLEL) -> None:
        self.cloud, self.parallel = cloud, parallel
        self.retried: Counter[str] = Counter()
        self._open = 0
        self._waiting: deque[_ScheduledRequest] = deque()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._set = 0
        self._progress = cloud.now

    def send(self, request: Request, tell: OnEnd) -> None:
        """Send a request as soon as fewer than so many are open."""
        self._waiting.append(_ScheduledRequest(request, tell))
        self._fill()

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """Do something later, in seconds of Azure's time."""
        self._set += 1
        heapq.heappush(self._timers, (self.cloud.now + seconds, self._set, do))

    def advance(self) -> bool:
        """Let the next event of Azure's, or the next timer, happen; False where nobody waits for any."""
        if not self._open and not self._timers:
            return False
        if self.cloud.now - self._progress > PATIENCE:
            raise RuntimeError(f"{self._open} operations of the embedded Azure have not ended in {PATIENCE / 86_400:g} days")
        due, timer = self.cloud.events.next_at(), self._timers[0][0] if self._timers else None
        if due is not None and (timer is None or due <= timer):
            self.cloud.step(due)
            return True
        if timer is None:
            raise RuntimeError(f"{self._open} operations of the embedded Azure run, and nothing will end them")
        self.cloud.advance(timer)
        self._progress = self.cloud.now
        heapq.heappop(self._timers)[2]()
        return True

    def finish(self) -> None:
        """Let time go on until every request has ended."""
        while self.advance():
            pass

    def _fill(self) -> None:
        while self._waiting and self._open < self.parallel:
            self._open += 1
            self._attempt(self._waiting.popleft())

    def _attempt(self, call: _ScheduledRequest) -> None:
        try:
            answer = self.cloud.handle(call.request)
        except AzureError as error:
            self._refused(call, error)
            return
        if answer.operation is None:
            # Through a timer, so that the sender never hears before send has returned.
            self.after(0.0, lambda: self._ended(call, None))
            return
        self.cloud.watch(answer.operation, lambda operation: self._operated(call, operation))

    def _refused(self, call: _ScheduledRequest, error: AzureError) -> None:
        delay = error.retry_after or back_off(call.attempt)
        retried = error.status in RETRIED or error.code == RETRIED_CONFLICT
        if not retried or call.attempt > RETRIES or delay > LONGEST_DELAY:
            self.after(0.0, lambda: self._ended(call, Failure.of(error.body())))
            return
        self.retried[error.details[0].code if error.details else error.code] += 1
        call.attempt += 1
        self.after(delay, lambda: self._attempt(call))

    def _operated(self, call: _ScheduledRequest, operation: Operation) -> None:
        """An operation has ended, which the sender notices when it looks next."""
        every = POLL_SECONDS[call.request.method]
        since_look = (self.cloud.now - operation.started) % every
        failure = Failure.of(operation.error or {}) if operation.error is not None else None
        self.after(every - since_look if since_look else 0.0, lambda: self._ended(call, failure))

    def _ended(self, call: _ScheduledRequest, failure: Failure | None) -> None:
        self._open -= 1
        call.tell(failure)
        self._fill()
