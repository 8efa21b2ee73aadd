"""Measurement of one cluster: time until all nodes are Ready, then until a pod runs on each of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bench.cluster import pods
from bench.cluster.progress import Sample, Seen, Watch, watches_ended
from bench.cluster.region import TEAM
from bench.cluster.running import READY_SECONDS, Running
from bench.cluster.settings import Setting
from bench.command import Say
from lifecycle.kubernetes_api.connection import Connection
from lifecycle.kubernetes_api.kubeconfig import read

SETTLING_SECONDS = 5.0
"""Seconds before the first node, so that both clusters have finished the work after their start."""


@dataclass(frozen=True)
class Taken:
    """Resource use of one process: CPU seconds while nodes joined and while pods were placed, and its peak memory in bytes."""

    join_cpu: float
    pods_cpu: float
    peak: int


@dataclass(frozen=True)
class Measured:
    """One cluster's figures in seconds. Moments are since the watch began: phases begin at join_at and pods_at, and end at joined_at and
    ended_at."""

    name: str
    came_up: float
    join: float
    pods: float
    join_at: float
    joined_at: float
    pods_at: float
    ended_at: float
    details: Mapping[str, float]
    taken: Mapping[str, Taken]
    seen: Seen

    def document(self) -> dict[str, Any]:
        """Return the measurement for JSON: times rounded to milliseconds, and of each sample time, CPU seconds and memory."""
        samples = {name: [[round(one.at, 2), round(one.cpu, 2), one.memory] for one in row] for name, row in self.seen.samples.items()}
        moments = {name: [round(at, 3) for at in sorted(found.values())] for name, found in self._moments()}
        own = {key: value for key, value in vars(self).items() if key not in ("seen", "taken")}
        return {**own, "taken": {name: asdict(one) for name, one in self.taken.items()}, **moments, "samples": samples}

    def _moments(self) -> tuple[tuple[str, dict[str, float]], ...]:
        return ("ready", self.seen.ready), ("running", self.seen.running)


def measure(cluster: Running, nodes: int, setting: Setting, limit: float, say: Say) -> Measured:
    """Join all nodes, then run all pods; raise TimeLimitError."""
    connection = Connection(read(cluster.kubeconfig), READY_SECONDS, say)
    pods.wait_for_account(connection)
    watch = Watch(cluster, TEAM, say)
    seen = watch.seen
    try:
        time.sleep(SETTLING_SECONDS)
        began = seen.now()
        details = cluster.join(lambda _: None)
        joined_at = watch.wait(seen.ready, nodes, limit)
        say(f"{cluster.label}: {nodes:,} nodes Ready after {joined_at - began:.1f} s")
        pods_at = seen.now()
        pods.make(connection, nodes, setting.pods_per_deployment)
        ended_at = watch.wait(seen.running, nodes, limit)
        say(f"{cluster.label}: {nodes:,} pods Running after {ended_at - pods_at:.1f} s more")
        ended = watches_ended(cluster.kubeconfig)
    finally:
        watch.close()
        connection.close()
    details = {**details, **{f"watches of {name} ended for slowness": float(count) for name, count in ended.items()}}
    taken = {name: _taken(samples, began, pods_at) for name, samples in seen.samples.items()}
    return Measured(
        cluster.name, cluster.came_up, joined_at - began, ended_at - pods_at, began, joined_at, pods_at, ended_at, details, taken, seen
    )


def _taken(samples: list[Sample], began: float, pods_at: float) -> Taken:
    first = next((one for one in samples if one.at >= began), samples[0])
    middle = next((one for one in samples if one.at >= pods_at), samples[-1])
    last = samples[-1]
    return Taken(middle.cpu - first.cpu, last.cpu - middle.cpu, max(one.peak for one in samples))
