"""Benchmark of forwarding for a pod: pairs of windows with and without a setup, under one continuous flow."""

from __future__ import annotations

import contextlib
import functools
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.network.forwarding_setups import NOTHING, SETUPS, SHAPING, Switch
from tests.support.azure_network.machine import REPOSITORY, Machine, Pod
from tests.support.azure_network.namespaces import Namespace
from tests.support.azure_network.network import INTERNET, Azure

SETTLES = 0.05
"""Seconds between a change and the window that measures it."""

STARTS = 1.0
"""Seconds until the rate of a new flow is stable."""

TRIES = 10

PORT = 5201
RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Window:
    """Traffic of one period, in bits or packets, and the CPU seconds that all devices on its path used for it."""

    passed: int
    seconds: float
    cpu: float

    @property
    def per_second(self) -> float:
        return self.passed / self.seconds

    @property
    def per_cpu_second(self) -> float:
        return self.passed / self.cpu


@dataclass(frozen=True)
class Flow:
    """A running flow: its traffic until now, and the processes that use CPU for it."""

    passed: Callable[[], int]
    processes: tuple[int, ...]

    def cpu(self) -> float:
        """Return CPU seconds until now: of its processes, in which the kernel forwards packets, and of the kernel's own threads for it."""
        return sum(time.clock_gettime((~process << 3) | 2) for process in (*self.processes, *_helpers()))


@dataclass(frozen=True)
class Ratios:
    """One quantity in one setup: the windows of each pair, bare and with the setup."""

    measure: str
    way: str
    pairs: tuple[tuple[Window, Window], ...]

    def lower(self, of: Callable[[Window], float]) -> float:
        """Return the lower bound of the ratio with 95 % confidence, one-sided, by resampling the pairs."""
        drawn, logs = random.Random(1), self._logs(of)  # noqa: S311 statistics, which two runs over the same figures share
        ratios = sorted(_middle(drawn.choices(logs, k=len(logs))) for _ in range(RESAMPLES))
        return math.exp(ratios[int((1 - CONFIDENCE) * RESAMPLES)])

    def ratio(self, of: Callable[[Window], float]) -> float:
        """Return the geometric mean of the middle half of the pairs' ratios, which excludes windows that other programs disturbed."""
        return math.exp(_middle(self._logs(of)))

    @property
    def bare(self) -> float:
        """Return the average rate per second of the bare path."""
        return sum(bare.per_second for bare, _ in self.pairs) / len(self.pairs)

    def _logs(self, of: Callable[[Window], float]) -> list[float]:
        return [math.log(of(so) / of(bare)) for bare, so in self.pairs]


@dataclass(frozen=True)
class Site:
    """A machine of 31 addresses with a pod that sends, and another machine with one that receives."""

    azure: Azure
    machine: Machine
    pod: Pod
    far: Pod
    switch: Switch


def site(azure: Azure) -> Site:
    """Create the machines: the first with accounting and shaping, the second without both."""
    machine = azure.machine("m1", "10.66.0.4", [f"10.66.0.{last}" for last in range(5, 35)])
    other = azure.machine("m2", "10.66.0.40", ["10.66.0.41"])
    machine.apply(shaping=SHAPING)
    other.apply()
    other.run("iptables", "-t", "mangle", "-F")
    pod, far = machine.add_pod("sends"), other.add_pod("receives")
    machine.node("apply")
    return Site(azure, machine, pod, far, Switch(machine, ("eth0", pod.veth)))


def measured(place: Site, pairs: int, seconds: float, say: Callable[[str], None]) -> Iterator[Ratios]:
    """Measure every quantity in every setup."""
    for name, target, flow in (
        ("TCP to the internet", INTERNET, tcp),
        ("TCP between pods", place.far.address, tcp),
        ("64-byte packets to the internet", INTERNET, packets),
        ("64-byte packets between pods", place.far.address, packets),
    ):
        say(name)
        with flow(place, target) as going:
            time.sleep(STARTS)
            for way in SETUPS:
                yield Ratios(name, way, tuple(_pair(place.switch, way, number, seconds, going) for number in range(pairs)))


def _pair(switch: Switch, way: str, number: int, seconds: float, flow: Flow) -> tuple[Window, Window]:
    """Measure a bare window and one with the setup; every second pair is in reverse order."""
    windows = {}
    for each in (NOTHING, way) if number % 2 == 0 else (way, NOTHING):
        switch.to(each)
        windows[each] = _window(seconds, flow)
    return windows[NOTHING], windows[way]


def _window(seconds: float, flow: Flow) -> Window:
    """Measure the traffic of one window; repeat a window without traffic, and raise RuntimeError if all tries are without traffic."""
    for _ in range(TRIES):
        time.sleep(SETTLES)
        began, passed, cpu = time.monotonic(), flow.passed(), flow.cpu()
        time.sleep(seconds)
        window = Window(flow.passed() - passed, time.monotonic() - began, flow.cpu() - cpu)
        if window.passed > 0 and window.cpu > 0:
            return window
    raise RuntimeError(f"nothing passed in {TRIES} windows of {seconds} s; the flow has ended")


@functools.cache
def _helpers() -> tuple[int, ...]:
    """Return the kernel's threads that process packets under load, one for each processor."""
    return tuple(int(path.parent.name) for path in Path("/proc").glob("[0-9]*/comm") if path.read_text().startswith("ksoftirqd/"))


@contextlib.contextmanager
def tcp(place: Site, target: str) -> Iterator[Flow]:
    """Run one connection from the pod, measured in received bits."""
    receiver = place.azure.internet if target == INTERNET else place.far.inside
    server = receiver.start("iperf3", "-s", "-1", "-p", str(PORT), "--forceflush")
    while server.stdout is not None and "listening" not in server.stdout.readline():
        if server.poll() is not None:
            raise RuntimeError(f"iperf3 serves nothing at {target}:{PORT}")
    client = place.pod.inside.start("iperf3", "-c", target, "-p", str(PORT), "-t", "3600")
    try:
        yield Flow(lambda: 8 * received(receiver, "eth0", 0), (client.pid, server.pid))
    finally:
        for process in (client, server):
            process.kill()
            process.wait()


@contextlib.contextmanager
def packets(place: Site, target: str) -> Iterator[Flow]:
    """Send small datagrams from the pod, which Azure drops when they leave the machine."""
    fabric, rule = place.azure.namespace, ("PREROUTING", "-p", "udp", "--dport", str(PORT), "-j", "DROP")
    fabric.run("iptables", "-t", "raw", "-I", *rule)
    client = place.pod.inside.start("env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "bench.network.sender", target, str(PORT))
    try:
        yield Flow(lambda: received(fabric, f"to-{place.machine.name}", 1), (client.pid,))
    finally:
        client.kill()
        client.wait()
        fabric.run("iptables", "-t", "raw", "-D", *rule)


def received(namespace: Namespace, device: str, column: int) -> int:
    """Return the number that a device has received since its creation: bytes in column 0, packets in column 1."""
    # Not /proc/net, which shows the namespace of the process instead of the thread's.
    lines = namespace.within(lambda: Path("/proc/thread-self/net/dev").read_text().splitlines())
    (line,) = (line for line in lines if line.split(":")[0].strip() == device)
    return int(line.split(":")[1].split()[column])


def _middle(values: Sequence[float]) -> float:
    """Return the mean of the values without the lowest and the highest quarter."""
    cut = len(values) // 4
    trimmed = sorted(values)[cut : len(values) - cut]
    return sum(trimmed) / len(trimmed)
