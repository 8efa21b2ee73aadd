"""Work of the measured child processes: each measures one thing in a fresh process and prints one line of JSON.

Each imports what it needs itself: Pulumi's SDKs take seconds, and a plan needs none.
"""

from __future__ import annotations

import cProfile
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from components.plan import limits
from stacks.load import load_plan


def plan(region: str) -> dict[str, Any]:
    """Read, plan and check a region; return wall and CPU seconds, without Python's start and imports."""
    wall, cpu = time.monotonic(), time.process_time()
    planned = load_plan(region)
    limits.raise_if_broken(planned)
    return {"wall": time.monotonic() - wall, "cpu": time.process_time() - cpu, "nodes": planned.nodes}


def region(clusters: str, folder: str) -> dict[str, Any]:
    """Rehearse a region of a number of clusters in a folder; return its size and CPU seconds by phase."""
    began: list[tuple[str, float]] = []
    size = _rehearsed(clusters, folder, lambda phase: began.append((phase, time.process_time())))
    ends = [*(moment for _, moment in began[1:]), time.process_time()]
    return {**size, "cpu": {phase: end - moment for (phase, moment), end in zip(began, ends, strict=True)}}


def calls(clusters: str, folder: str) -> dict[str, Any]:
    """Rehearse a region; return its size and calls of Python functions by phase, which other programs do not influence."""
    profiles: dict[str, cProfile.Profile] = {}

    def begin(phase: str) -> None:
        for earlier in profiles.values():
            earlier.disable()
        profiles[phase] = cProfile.Profile(builtins=False)
        profiles[phase].enable()

    size = _rehearsed(clusters, folder, begin)
    begin("")
    counted = {phase: sum(entry.callcount for entry in profile.getstats()) for phase, profile in profiles.items() if phase}
    return {**size, "calls": counted}


def _rehearsed(clusters: str, folder: str, begin: Callable[[str], None]) -> dict[str, int]:
    """Rehearse a region and report the start of each phase; ValueError where its checks have findings."""
    from bench.regions import write_region
    from rehearsal.rehearse import rehearse

    path = write_region(int(clusters), Path(folder))
    result = rehearse(str(path), Path(folder), lambda phase, count: None if count else begin(phase))
    if result.findings:
        raise ValueError(f"{path.name}: the cross-checks find: {result.findings[0].sentence()}")
    sets = sum(len(pool.scale_sets) for cluster in result.plan.clusters for pool in cluster.pools)
    return {"nodes": result.plan.nodes, "sets": sets, "resources": len(result.base) + len(result.clusters)}


def overhead(region: str, pairs: str) -> dict[str, Any]:
    """Return CPU seconds of gpufleet's program and of bare ones, by pair."""
    from bench.overhead import measure

    return {"pairs": [asdict(pair) for pair in measure(region, int(pairs))]}


def rotation(conditions: str, strategy: str, clusters: str, seed: str) -> dict[str, Any]:
    """Simulate the rotation of the first clusters of southcentralus as one cluster; return CPU seconds and the outcome's figures."""
    from bench.simulated_rotation import rotate

    return rotate(conditions, strategy, int(clusters), int(seed))


WORK: dict[str, Callable[..., dict[str, Any]]] = {
    "plan": plan,
    "region": region,
    "calls": calls,
    "overhead": overhead,
    "rotation": rotation,
}

if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    print(json.dumps(WORK[name](*arguments)))
