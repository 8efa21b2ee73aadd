"""Progress of a cluster: times at which nodes are Ready and pods Running, and CPU and memory of processes, once a second."""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.cluster.running import Running
from bench.command import Say
from lifecycle.kubernetes_api.kubeconfig import read

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
NODES = "/api/v1/nodes?watch=true&includeObject=None"
PODS = "/api/v1/namespaces/{}/pods?watch=true&includeObject=None&fieldSelector=status.phase%3DRunning"
WHAT_IS_THERE = "0"
"""Resource version from which on a watch tells of all that is there first."""
OK = 200
LOOK_SECONDS = 1.0
TOLD_EVERY = 5.0
PAGE = os.sysconf("SC_PAGE_SIZE")
ENDED = re.compile(r'apiserver_terminated_watchers_total\{.*resource="(\w+)".*\} (\S+)')
BENCH = "bench: joiner, model, watches"


class TimeLimitError(Exception):
    """A phase that exceeded its time limit."""


@dataclass(frozen=True)
class Sample:
    """Resource use of one process at a moment: seconds since the watch began, CPU seconds, resident bytes, peak bytes."""

    at: float
    cpu: float
    memory: int
    peak: int


@dataclass
class Seen:
    """Moments, in seconds since the watch began, at which nodes became Ready and pods Running, and samples by process."""

    began: float = field(default_factory=time.monotonic)
    ready: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def now(self) -> float:
        """Return the seconds since the watch began."""
        return time.monotonic() - self.began


class Watch:
    """Watch of a cluster until close(). It requests rows of tables, which cost the API server and this process less than objects."""

    def __init__(self, cluster: Running, namespace: str, say: Say) -> None:
        self.seen = Seen()
        self._cluster, self._say = cluster, say
        self._ended = threading.Event()
        self._earlier: dict[str, float] = {}
        work = ((self._nodes, NODES), (self._pods, PODS.format(namespace)))
        self._threads = [threading.Thread(target=self._follow, args=one, daemon=True) for one in work]
        self._threads.append(threading.Thread(target=self._look, daemon=True))
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop watching and sampling."""
        self._ended.set()
        self._threads[-1].join()

    def wait(self, what: Mapping[str, float], count: int, seconds: float) -> float:
        """Return the time at which `count` nodes or pods existed; raise TimeLimitError after that many seconds."""
        until = time.monotonic() + seconds
        while len(what) < count:
            if time.monotonic() > until:
                raise TimeLimitError(f"{self._cluster.label}: {len(what):,} of {count:,} after {seconds:.0f} s")
            time.sleep(0.02)
        return max(what.values())

    def _follow(self, take: Callable[[str, list[str]], None], path: str) -> None:
        """Pass rows of a watch to a function; resume a watch that the server ended.

        The first watch begins without objects, so it reports all of them in the order of their versions. If the server no longer has
        the last version, each further watch begins with the existing objects. Those are in the order of their names, so that the last
        version that was read is not a position to resume from.
        """
        version, in_order = WHAT_IS_THERE, True
        access = read(self._cluster.kubeconfig)
        while not self._ended.is_set():
            connection = http.client.HTTPSConnection(access.host, access.port, timeout=600, context=access.tls)
            try:
                connection.request("GET", f"{path}&resourceVersion={version}", headers={"Accept": TABLE, **access.headers})
                response = connection.getresponse()
                if response.status != OK:
                    raise http.client.HTTPException(f"HTTP {response.status}")
                for line in response:
                    event = json.loads(line)
                    for row in event["object"].get("rows") or ():
                        take(event["type"], row["cells"])
                    in_order = in_order and event["type"] != "ERROR"
                    version = event["object"]["metadata"]["resourceVersion"] if in_order else WHAT_IS_THERE
            except (OSError, http.client.HTTPException, ValueError):
                self._ended.wait(0.2)
            finally:
                connection.close()

    def _nodes(self, _: str, cells: list[str]) -> None:
        if cells[1].startswith("Ready"):
            self.seen.ready.setdefault(cells[0], self.seen.now())

    def _pods(self, kind: str, cells: list[str]) -> None:
        if kind != "DELETED":
            self.seen.running.setdefault(cells[0], self.seen.now())

    def _look(self) -> None:
        last_report = 0.0
        while not self._ended.is_set():
            now = self.seen.now()
            for name, service in self._cluster.services.items():
                usage = service.usage()
                self._add(name, Sample(now, usage.cpu_seconds, usage.memory_bytes, usage.peak_bytes))
            self._add(BENCH, _own(now))
            if now - last_report >= TOLD_EVERY:
                last_report = now
                self._say(f"{self._cluster.label}: {len(self.seen.ready):,} nodes Ready, {len(self.seen.running):,} pods Running")
            self._ended.wait(LOOK_SECONDS)

    def _add(self, name: str, sample: Sample) -> None:
        """Store a sample; a restarted process continues the count of its predecessor."""
        row = self.seen.samples.setdefault(name, [])
        earlier = self._earlier.get(name, 0.0)
        if row and sample.cpu + earlier < row[-1].cpu:
            earlier = self._earlier[name] = row[-1].cpu
        row.append(replace(sample, cpu=sample.cpu + earlier))


def watches_ended(kubeconfig: Path) -> dict[str, int]:
    """Return the watches that the API server ended because the client was too slow, by resource."""
    access = read(kubeconfig)
    connection = http.client.HTTPSConnection(access.host, access.port, timeout=60, context=access.tls)
    try:
        connection.request("GET", "/metrics", headers=access.headers)
        rows = connection.getresponse().read().decode().splitlines()
    finally:
        connection.close()
    return {found[1]: int(float(found[2])) for found in map(ENDED.match, rows) if found}


def _own(now: float) -> Sample:
    """Return the resource use of this process."""
    taken = resource.getrusage(resource.RUSAGE_SELF)
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    return Sample(now, taken.ru_utime + taken.ru_stime, resident, taken.ru_maxrss * 1024)
