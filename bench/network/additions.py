"""Benchmark of CNI ADD by the real plugins, one after another and all at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.support.azure_network.cni_calls import Sandbox
from tests.support.azure_network.machine import Machine, Pod
from tests.support.azure_network.network import Azure

PODS = 30


@dataclass(frozen=True)
class Added:
    """Seconds that each ADD took."""

    how: str
    seconds: tuple[float, ...]

    def percentile(self, percent: int) -> float:
        """Return the seconds that this percentage of the additions did not exceed."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def additions(azure: Azure, rounds: int) -> Iterator[Added]:
    """Add a pod for each address of the machine, in rounds, first one by one and then all at once; the namespaces exist before."""
    machine = azure.machine("m3", "10.66.1.4", [f"10.66.1.{last}" for last in range(5, 5 + PODS)])
    machine.apply()
    for how, at_once in (("one after another", 1), (f"{PODS} at once", PODS)):
        seconds: list[float] = []
        for number in range(rounds):
            sandboxes = [machine.sandbox(f"{at_once}-{number}-{pod}") for pod in range(PODS)]
            seconds += _round(machine, sandboxes, at_once)
        yield Added(how, tuple(seconds))


def _round(machine: Machine, sandboxes: Sequence[Sandbox], at_once: int) -> list[float]:
    def add(sandbox: Sandbox) -> tuple[Pod, float]:
        began = time.monotonic()
        pod = machine.join(sandbox)
        return pod, time.monotonic() - began

    with ThreadPoolExecutor(at_once) as pool:
        done = list(pool.map(add, sandboxes))
    for pod, _ in done:
        machine.delete_pod(pod)
    return [seconds for _, seconds in done]
