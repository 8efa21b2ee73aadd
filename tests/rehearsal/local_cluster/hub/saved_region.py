"""A region in a state directory, for tests of its hub namespace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hub_holder import Holder

from components.plan.model import ClusterPlan, RegionPlan


@dataclass(frozen=True)
class SavedRegion:
    """Region dev in a state directory, and a kubeconfig of its cluster's administrator."""

    plan: RegionPlan
    folder: Path
    kubeconfig: Path

    @property
    def cluster(self) -> ClusterPlan:
        return self.plan.clusters[0]

    @property
    def disks(self) -> list[str]:
        """Return the names of the etcd machines with stored disks."""
        return sorted(path.parents[2].name for path in (self.folder / "clusters/disks" / self.cluster.name).glob("*/*/*/data"))

    def start(self) -> Holder:
        """Start a hub namespace of this region in another process; return once its API servers answer."""
        holder = Holder(self.plan.name, self.folder)
        holder.wait_for("its API servers answer")
        return holder
