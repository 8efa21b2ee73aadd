"""A region in a directory, as the tests of what is inside its hub's network take it up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hub_holder import Holder

from components.plan.model import ClusterPlan, RegionPlan


@dataclass(frozen=True)
class SavedRegion:
    """Region dev as a directory keeps it, and a kubeconfig of its cluster's administrator, which the cluster's authority signed."""

    plan: RegionPlan
    folder: Path
    kubeconfig: Path

    @property
    def cluster(self) -> ClusterPlan:
        return self.plan.clusters[0]

    @property
    def disks(self) -> list[str]:
        """Names of the etcd machines whose disks are kept."""
        return sorted(path.parents[2].name for path in (self.folder / "clusters/disks" / self.cluster.name).glob("*/*/*/data"))

    def held(self) -> Holder:
        """A place inside over this region, held by a process of its own, once its API servers answer."""
        holder = Holder(self.plan.name, self.folder)
        holder.hears("its API servers answer")
        return holder
