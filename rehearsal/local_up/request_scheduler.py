"""Scheduler of requests to the model: a limited number at once, with the retries and polls of azure-native."""

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
"""Default number of operations at once. Pulumi's own default is four per CPU
(https://www.pulumi.com/docs/iac/cli/commands/pulumi_up/), which would make the outcome depend on the machine."""
PATIENCE = 7 * 86_400.0
"""Seconds after which the scheduler reports that an operation does not end."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason of a failure: Azure's error code and message, and its details."""

    code: str
    message: str
    details: tuple[Failure, ...] = ()

    @classmethod
    def of(cls, error: dict[str, Any]) -> Failure:
        """Return the failure in the body of an error."""
        return cls(error.get("code", ""), error.get("message", ""), tuple(map(cls.of, error.get("details", ()))))


OnEnd = Callable[[Failure | None], None]
"""Callback for the end of a request, with its failure or None."""


@dataclass(slots=True)
class _ScheduledRequest:
    request: Request
    on_end: OnEnd
    attempt: int = 1


class RequestScheduler:
    """Scheduler of requests to the model. Time passes only in advance().

    retried counts the retried refusals by Azure's error code.
    """

    def __init__(self, cloud: Cloud, parallel: int = PARALLEL) -> None:
        self.cloud, self.parallel = cloud, parallel
        self.retried: Counter[str] = Counter()
        self._open = 0
        self._waiting: deque[_ScheduledRequest] = deque()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._set = 0
        self._progress = cloud.now

    def send(self, request: Request, on_end: OnEnd) -> None:
        """Queue a request; it is sent when fewer than `parallel` requests are open."""
        self._waiting.append(_ScheduledRequest(request, on_end))
        self._fill()

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """Schedule a function, in seconds of Azure's time."""
        self._set += 1
        heapq.heappush(self._timers, (self.cloud.now + seconds, self._set, do))

    def advance(self) -> bool:
        """Run the next event of the model or the next timer; return False where no request or timer is open."""
        if not self._open and not self._timers:
            return False
        if self.cloud.now - self._progress > PATIENCE:
            raise RuntimeError(f"{self._open} operations of the embedded Azure have not ended in {PATIENCE / 86_400:g} days")
        due, timer = self.cloud.events.next_at(), self._timers[0][0] if self._timers else None
        if due is not None and (timer is None or due <= timer):
            self.cloud.step(due)
            return True
        if timer is None:
            raise RuntimeError(f"{self._open} operations of the embedded Azure run, and no event will end them")
        self.cloud.advance(timer)
        self._progress = self.cloud.now
        heapq.heappop(self._timers)[2]()
        return True

    def finish(self) -> None:
        """Advance until every request has ended."""
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
            # A timer calls back only after send() has returned.
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
        """Schedule the callback of an ended operation at the sender's next poll."""
        every = POLL_SECONDS[call.request.method]
        since_look = (self.cloud.now - operation.started) % every
        failure = Failure.of(operation.error or {}) if operation.error is not None else None
        self.after(every - since_look if since_look else 0.0, lambda: self._ended(call, failure))

    def _ended(self, call: _ScheduledRequest, failure: Failure | None) -> None:
        self._open -= 1
        call.on_end(failure)
        self._fill()
