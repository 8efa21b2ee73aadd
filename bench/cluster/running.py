"""Interface of a running cluster, gpufleet's or the bare one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.command import Say
from rehearsal.local_cluster.systemd.supervisor import Service

READY_SECONDS = 180.0
LABELS = {"ours": "gpufleet"}
"""Printed names of clusters, where they differ from the option's value."""


@dataclass(frozen=True)
class Running:
    """A control plane that is ready and has no nodes yet.

    name is the option's value and the name in files. kubeconfig is an administrator's to the API server itself; services are its
    processes by displayed name. join creates all nodes and returns the details to report. came_up is the seconds from the start of
    the first program to readyz.
    """

    name: str
    kubeconfig: Path
    services: Mapping[str, Service]
    join: Callable[[Say], Mapping[str, float]]
    came_up: float

    @property
    def label(self) -> str:
        """Return the name for messages."""
        return LABELS.get(self.name, self.name)
