"""Clients that send requests to the API continuously, as programs do: with open connections and one retry."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import urllib3

from lifecycle.kubernetes_api import kubeconfig

READ_PATH = "/api/v1/namespaces/default"
PAUSE_SECONDS = 0.05
SECONDS = 5.0


class Callers:
    """Threads that each read one object repeatedly through a kubeconfig's server, with one retry."""

    def __init__(self, path: Path, count: int) -> None:
        self._access = kubeconfig.read(path)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(number,), daemon=True) for number in range(count)]
        self.answered = 0
        self.failures: list[str] = []
        self.gaps = [0.0] * count
        """Longest time without a response, per thread."""

    def __enter__(self) -> Callers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int, seconds: float = 120.0) -> None:
        """Wait until that many more requests are answered."""
        target, until = self.answered + more, time.monotonic() + seconds
        while self.answered < target:
            assert time.monotonic() < until, self.failures[-3:]
            time.sleep(0.05)

    def _call(self, number: int) -> None:
        access, last = self._access, time.monotonic()
        once_more = urllib3.Retry(total=1, status=1, status_forcelist=(429, 503), respect_retry_after_header=True)
        with urllib3.HTTPSConnectionPool(access.host, access.port, ssl_context=access.tls, timeout=SECONDS) as pool:
            while not self._over.wait(PAUSE_SECONDS):
                try:
                    reply = pool.request("GET", READ_PATH, retries=once_more)
                except urllib3.exceptions.HTTPError as error:
                    self.failures.append(f"{type(error).__name__}: {error}"[:200])
                    continue
                now = time.monotonic()
                if reply.status == 200:
                    self.gaps[number] = max(self.gaps[number], now - last)
                    self.answered, last = self.answered + 1, now
                else:
                    self.failures.append(f"status {reply.status}: {reply.data[:150]!r}")
