"""Renewal of a lease in the background, and the moment from which this process must assume that it has lost it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class LeaseRenewal:
    """A lease that this process holds, renewed by a thread until `stop`.

    The lease is counted from the moment at which the last confirmed renewal was sent, by the monotonic clock, so that a paused process
    finds its lease expired when it runs again. It counts as lost `margin` seconds before it expires, which is the time that an action which
    has begun may still take.

    renew: sends one renewal; returns "" if it was confirmed, else why the lease is lost. After an exception in `retried` the next try
    follows after `interval` seconds.
    """

    def __init__(
        self, renew: Callable[[], str], retried: tuple[type[Exception], ...], seconds: float, margin: float, interval: float, began: float
    ) -> None:
        self._renew, self._retried, self._seconds, self._margin, self._interval = renew, retried, seconds, margin, interval
        self._renewed, self._lost = began, ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease renewal", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> str:
        """Return why the lease is lost or about to expire, "" while it is held."""
        age = time.monotonic() - self._renewed
        if not self._lost and age >= self._seconds - self._margin:
            self._lost = f"it was not renewed for {age:.0f} s, and it lasts {self._seconds:.0f} s"
        return self._lost

    def renew_now(self) -> None:
        """Send one renewal; exceptions in `retried` pass."""
        sent = time.monotonic()
        reason = self._renew()
        if reason:
            self._lost = self._lost or reason
        elif not self.lost:
            self._renewed = sent

    def stop(self) -> None:
        """End the thread; the lease remains until it expires or is released."""
        self._ended.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._interval) and not self.lost:
            try:
                self.renew_now()
            except self._retried:
                continue
