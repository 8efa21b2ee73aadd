"""The measured processes: each does one thing once, alone in its process, and prints what it took as one line of JSON.

Each imports what it needs itself: Pulumi's SDKs take seconds, and a plan needs none.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from components.plan import limits
from stacks.load import load_plan


def plan(region: str) -> dict[str, Any]:
    """Read, plan and check a region: wall and CPU seconds, without the start of Python and the imports."""
    wall, cpu = time.monotonic(), time.process_time()
    planned = load_plan(region)
    limits.refuse_broken(planned)
    return {"wall": time.monotonic() - wall, "cpu": time.process_time() - cpu, "nodes": planned.nodes}


def region(clusters: str, folder: str) -> dict[str, Any]:
    """Rehearse a region of a number of clusters whole, in a folder: size, and wall and CPU seconds by phase."""
    from bench.regions import write_region
    from rehearsal.region import rehearse

    path = write_region(int(clusters), Path(folder))
    began: list[tuple[str, float, float]] = []

    def tell(phase: str, count: int) -> None:
        if count == 0:
            began.append((phase, time.monotonic(), time.process_time()))

    result = rehearse(str(path), Path(folder), tell)
    ends = [*began[1:], ("", time.monotonic(), time.process_time())]
    phases = {phase: {"wall": end[1] - wall, "cpu": end[2] - cpu} for (phase, wall, cpu), end in zip(began, ends, strict=True)}
    sets = sum(len(pool.scale_sets) for cluster in result.plan.clusters for pool in cluster.pools)
    if result.findings:
        raise ValueError(f"{path.name}: the cross-checks find: {result.findings[0].sentence()}")
    resources = len(result.base) + len(result.clusters)
    return {"nodes": result.plan.nodes, "sets": sets, "resources": resources, "phases": phases}


def overhead(region: str, pairs: str) -> dict[str, Any]:
    """Our program beside bare ones: CPU seconds by pair."""
    from bench.overhead import measure

    return {"pairs": measure(region, int(pairs))}


WORK: dict[str, Callable[..., dict[str, Any]]] = {"plan": plan, "region": region, "overhead": overhead}

if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    print(json.dumps(WORK[name](*arguments)))
