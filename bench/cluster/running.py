"""Interface of a running cluster, gpufleet's or the bare one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.command import Say
from rehearsal.local_cluster.systemd.supervisor import Service

READY_SECONDS = 180.0


@dataclass(frozen=True)
class Running:
    """A control plane that answers and has no nodes yet.

    kubeconfig is an administrator's to the API server itself; services are its processes by the name under which they are shown;
    join makes all nodes, and returns what is to be told of it; came_up is the seconds from the start of the first program to readyz.
    """

    name: str
    kubeconfig: Path
    services: Mapping[str, Service]
    join: Callable[[Say], Mapping[str, float]]
    came_up: float
