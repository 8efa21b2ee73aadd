"""Reading of a live cluster for a forecast of its rotation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from components.errors import GpufleetError

if TYPE_CHECKING:
    from components.plan.model import ClusterPlan, RegionPlan
    from lifecycle.rotation.journal_records import Target
    from rehearsal.rotation.observed_cluster import ObservedCluster

PATIENCE_SECONDS = 20.0
"""Seconds for which a request is retried."""


class ReadingIncompleteError(GpufleetError):
    """A cluster of which not everything could be read: kubeconfig, reason and remedy."""

    exit_status = 1

    def __init__(self, kubeconfig: Path, reason: str) -> None:
        super().__init__(f"{kubeconfig}: {reason}; a forecast needs a complete reading: check the kubeconfig's rights, then run again")


class NothingToRotateError(GpufleetError):
    """A cluster in which no node differs from its target."""

    exit_status = 0

    def __init__(self, cluster: str, machines: int) -> None:
        super().__init__(f"{cluster}: none of its {machines:,} machines differs from its image and boot files: nothing to rotate")


def read_observed(kubeconfig: Path, region: RegionPlan, cluster: ClusterPlan, images: Mapping[str, str]) -> ObservedCluster:
    """Read a cluster and select its nodes that differ from their target; images are versions by name, in place of the plan's.

    Raises KubeconfigError, ApiServerUnreachableError, ReadingIncompleteError, NothingToRotateError, and KubeletSkewError for an image whose
    kubelet the running API servers do not support.
    """
    from lifecycle.kubernetes_api.connection import Connection
    from lifecycle.kubernetes_api.kubeconfig import read
    from lifecycle.rotation.cluster_reading import read_cluster
    from lifecycle.rotation.selection import Criteria, check_kubelets, select
    from rehearsal.rotation.observed_cluster import Blocker, ObservedCluster, cordon_blockers

    targets = _targets(region, cluster, images)
    now = time.time()
    with closing(Connection(read(kubeconfig), PATIENCE_SECONDS, lambda _: None)) as connection:
        found = read_cluster(connection, cluster, targets, now)
    if found.incomplete:
        raise ReadingIncompleteError(kubeconfig, found.incomplete)
    check_kubelets(cluster, targets, (found.version,))
    chosen = select(found.machines, targets, Criteria(), now)
    seen = {one.name: one.seen for one in found.machines}
    cordoned = [seen[one.name] for one in chosen.nodes if seen[one.name].cordoned_by]
    waiting = {one.name for one in cordoned}
    nodes = tuple(one for one in chosen.nodes if one.name not in waiting)
    if not nodes:
        raise NothingToRotateError(cluster.name, len(found.machines))
    blockers = cordon_blockers(cordoned)
    blockers += [Blocker(f"namespace {one.namespace}", f"{one}; evictions of its pods wait", 0) for one in found.blockers]
    return ObservedCluster(cluster.name, now, tuple(seen.values()), found.gangs, nodes, tuple(blockers))


def _targets(region: RegionPlan, cluster: ClusterPlan, images: Mapping[str, str]) -> dict[str, Target]:
    """Return the target of each pool that is rotated: its pinned image, or the given version of it, and its boot files."""
    from components.boot.node import boot_digest
    from lifecycle.rotation.selection import targets_of

    targets = targets_of(cluster, {pool.name: boot_digest(region, cluster, pool) for pool in cluster.pools})
    if not images:
        return targets
    names = {pool.name: pool.image.pin.partition("@")[0] for pool in cluster.pools}
    return {
        pool: target.model_copy(update={"image": f"{names[pool]}@{images[names[pool]]}"})
        for pool, target in targets.items()
        if names[pool] in images
    }
