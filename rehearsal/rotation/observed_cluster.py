"""Population of a simulated rotation from a reading of a live cluster: its machines, gangs and loads; times of jobs remain modelled."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from components.plan.model import ClusterPlan
from lifecycle.rotation.model import Gang, Load, NodeObservation, RunNode
from rehearsal.rotation.population import Figures, Job, Machine, Population, lognormal, residual, shipped_figures


@dataclass(frozen=True, slots=True)
class Blocker:
    """Why nodes cannot start with the others, who can change that, and the number of nodes."""

    owner: str
    reason: str
    nodes: int


@dataclass(frozen=True)
class ObservedCluster:
    """Reading of a live cluster at a time in seconds since 1970: machines, gangs, the nodes that are to be rotated, and blockers."""

    cluster: str
    at: float
    machines: tuple[NodeObservation, ...]
    gangs: tuple[Gang, ...]
    nodes: tuple[RunNode, ...]
    blockers: tuple[Blocker, ...] = ()

    @property
    def unavailable(self) -> tuple[str, ...]:
        """Machines that are out of service before the rotation, whoever caused it, without those to be rotated."""
        rotated = {one.name for one in self.nodes}
        return tuple(one.name for one in self.machines if one.unavailable and one.name not in rotated)


def population_of(observed: ObservedCluster, cluster: ClusterPlan, seed: int, figures: Figures | None = None) -> Population:
    """Return the population of an observed cluster.

    Machines, gangs and loads are those of the reading, and so is the time since a gang's last checkpoint. The rest of a gang's run time and
    its interval of checkpoints are drawn. A machine in several gangs counts for the largest one.
    """
    figures = figures or shipped_figures()
    draw = random.Random(f"{seed}/{observed.cluster}")  # noqa: S311 (no secret)
    pools = {pool.name: pool for pool in cluster.pools}
    seen = [one for one in observed.machines if one.pool in pools]
    taken: dict[str, str] = {}
    jobs = []
    index = {one.name: number for number, one in enumerate(seen)}
    for gang in sorted(observed.gangs, key=lambda one: (-len(one.nodes), one.id)):
        nodes = [name for name in gang.nodes if name in index and name not in taken]
        if not nodes:
            continue
        taken.update(dict.fromkeys(nodes, gang.id))
        every = lognormal(draw, figures.gangs.checkpoint_interval)
        remaining, age = residual(draw, figures.gangs.run_time), max(0.0, observed.at - gang.checkpoint_at)
        jobs.append(Job(gang.id, tuple(sorted(index[name] for name in nodes)), gang.load, gang.gpus, remaining, age, max(every, age)))
    machines = tuple(_machine(one, pools[one.pool].size.gpus, pools[one.pool].join_seconds, taken) for one in seen)
    return Population(observed.cluster, seed, machines, tuple(jobs), figures)


def _machine(one: NodeObservation, gpus: int, join_seconds: int, taken: Mapping[str, str]) -> Machine:
    """Return a machine; the load of one in a gang is that of its gang."""
    in_gang = one.name in taken
    load, pods = (Load.EMPTY, 0) if in_gang else (one.load, one.pods)
    return Machine(one.name, one.scale_set, one.pool, one.team, gpus, join_seconds, load, pods, serving=load >= Load.NORMAL)


def cordon_blockers(machines: Iterable[NodeObservation]) -> list[Blocker]:
    """Return a blocker for each owner of cordons on machines."""
    owners: dict[str, int] = {}
    for one in machines:
        if one.cordoned_by:
            owners[one.cordoned_by] = owners.get(one.cordoned_by, 0) + 1
    return [
        Blocker(owner, f"cordoned by {owner}; they start when {owner} has removed the cordon", count) for owner, count in owners.items()
    ]
