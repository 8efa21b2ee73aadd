"""Writers of numbered objects that record acknowledgements and their times, to find losses and gaps."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from api_calls import Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PAUSE_SECONDS = 0.02


class NotWrittenError(OSError):
    """A write that was refused: status and message."""


class Writer(threading.Thread):
    """Writes consecutive numbers, each once, until its context ends."""

    def __init__(self, write: Callable[[int], None]) -> None:
        super().__init__(name="writer", daemon=True)
        self._write, self._over = write, threading.Event()
        self.acknowledged: list[int] = []
        self.failures: list[str] = []
        self._at: list[float] = []

    def __enter__(self) -> Self:
        self._at.append(time.monotonic())
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        self._at.append(time.monotonic())

    @property
    def longest_gap(self) -> float:
        """Return the longest time in seconds without an acknowledged write."""
        return max(after - before for before, after in zip(self._at, self._at[1:], strict=False))

    def wait_for(self, more: int, seconds: float = 120.0) -> None:
        """Wait until that many more writes are acknowledged."""
        target, until = len(self.acknowledged) + more, time.monotonic() + seconds
        while len(self.acknowledged) < target:
            assert time.monotonic() < until, f"{len(self.acknowledged)} of {target} writes; last failures: {self.failures[-3:]}"
            time.sleep(0.02)

    def run(self) -> None:
        number = 0
        while not self._over.wait(PAUSE_SECONDS):
            number += 1
            try:
                self._write(number)
            except OSError as error:
                self.failures.append(f"{type(error).__name__}: {error}")
            else:
                self.acknowledged.append(number)
                self._at.append(time.monotonic())


class ApiWriter(Writer):
    """Creates numbered ConfigMaps through a kubeconfig's server, with a timeout in seconds."""

    def __init__(self, kubeconfig: Path, name: str, seconds: float = 5.0) -> None:
        self._client = client = Client(kubeconfig, seconds, keep_open=True)
        self._kubeconfig, self._prefix = kubeconfig, name

        def write(number: int) -> None:
            metadata = {"name": f"{name}-{number:06d}", "labels": {"writer": name}}
            reply = client.request("POST", CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
            if reply.status != 201:
                raise NotWrittenError(reply.status, reply.message)

        super().__init__(write)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._client.close()

    def lost(self) -> list[int]:
        """Return acknowledged numbers that a consistent read does not contain."""
        found = Client(self._kubeconfig).get(f"{CONFIG_MAPS}?labelSelector=writer%3D{self._prefix}")["items"]
        held = {item["metadata"]["name"] for item in found}
        return [number for number in self.acknowledged if f"{self._prefix}-{number:06d}" not in held]


class EtcdWriter(Writer):
    """Puts numbered keys into an etcd cluster, through any member; command is etcdctl with endpoints and keys."""

    def __init__(self, command: Sequence[str], prefix: str) -> None:
        self._command, self._prefix = command, prefix

        def write(number: int) -> None:
            done = subprocess.run(
                [*command, "--command-timeout=5s", "put", f"{prefix}{number:06d}", "written"], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise NotWrittenError(done.returncode, done.stderr[-200:])

        super().__init__(write)

    def lost(self) -> list[int]:
        """Return acknowledged numbers that the etcd cluster does not contain."""
        done = subprocess.run(
            [*self._command, "--command-timeout=60s", "get", self._prefix, "--prefix", "--keys-only"],
            capture_output=True,
            text=True,
            check=True,
        )
        held = set(done.stdout.split())
        return [number for number in self.acknowledged if f"{self._prefix}{number:06d}" not in held]
