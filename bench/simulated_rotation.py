"""Simulated rotations that bench.rotation measures, each in its own process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from lifecycle.rotation.calendar import Calendar
from lifecycle.rotation.journal import RunStart
from lifecycle.rotation.model import NodeState, RunNode
from lifecycle.rotation.plan_policy import policy_of
from lifecycle.rotation.policy import Policy
from lifecycle.rotation.rotation import Rotation
from rehearsal.rotation.lower_bound import lower_bound, node_work
from rehearsal.rotation.memory_journal import MemoryJournal
from rehearsal.rotation.modelled_fleet import ModelledFleet
from rehearsal.rotation.population import ConditionsName, Job, Machine, Population, populate
from rehearsal.rotation.simulate import Strategy, simulate
from rehearsal.rotation.strategies import BarrierWaves, NodeOrder
from stacks.load import load_plan

REGION = "southcentralus"
STARTED = datetime(2026, 11, 30, 6, tzinfo=UTC).timestamp()
"""Start of each rotation. It has no windows: a strategy that ends after a close would wait for a night."""
STOP_SHARE = 0.25
"""Share of failures that stops a measured run; a stopped run has no duration, and 2 % of the machines fail."""
STRATEGIES: dict[str, Callable[[Sequence[RunNode], Policy, float], Strategy]] = {
    "core": Rotation,
    "waves": BarrierWaves,
    "order": NodeOrder,
    "drain": lambda nodes, policy, started: NodeOrder(nodes, policy, started, signals=False),
}


def rotate(conditions: str, strategy: str, clusters: int, seed: int) -> dict[str, Any]:
    """Simulate one rotation; return CPU seconds without reading the plan, and figures of the outcome."""
    plan = load_plan(REGION)
    began = time.process_time()
    population = joined([populate(cluster, seed) for cluster in plan.clusters[:clusters]])
    policy = times(replace(policy_of(plan, plan.clusters[0]), failed_share=STOP_SHARE, calendar=Calendar()), clusters)
    nodes = [RunNode(one.name, one.scale_set, one.pool, "has not the pinned image") for one in population.machines]
    fleet = ModelledFleet(population, population.figures.conditions[cast("ConditionsName", conditions)], int(STARTED))
    journal = MemoryJournal(RunStart("bench", population.cluster, REGION, STARTED, "bench", {}, policy, tuple(nodes)))
    outcome = simulate(STRATEGIES[strategy](nodes, policy, STARTED), nodes, fleet, STARTED, policy.machines, journal.record)
    bound = lower_bound(node_work(population, outcome.work, policy), policy, STARTED)
    return {
        "cpu": time.process_time() - began,
        "nodes": len(population.machines),
        "ready": outcome.states[NodeState.READY],
        "seconds": outcome.seconds,
        "bound": bound.seconds,
        "reason": bound.reason,
        "gpu_hours": outcome.losses.gpu_hours,
        "lost_work": outcome.losses.work,
        "interruptions": sum(outcome.losses.interruptions.values()),
        "gangs": len(outcome.losses.interruptions),
        "budget": policy.machines,
        "most_unavailable": outcome.most_unavailable,
        "transitions": outcome.transitions,
        "journal": journal.length,
        "unused": {reason: seconds / policy.machines for reason, seconds in outcome.unused.items()},
    }


def joined(populations: Sequence[Population]) -> Population:
    """Return the machines and gangs of several clusters as one."""
    machines: list[Machine] = []
    jobs: list[Job] = []
    for one in populations:
        first = len(machines)
        machines += one.machines
        shifted = (
            replace(job, id=f"{one.cluster}-{job.id}", machines=tuple(first + number for number in job.machines)) for job in one.jobs
        )
        jobs += list(shifted)
    return replace(populations[0], machines=tuple(machines), jobs=tuple(jobs))


def times(policy: Policy, clusters: int) -> Policy:
    """Return the policy of so many clusters: each budget and rate is multiplied."""
    return replace(
        policy,
        machines=policy.machines * clusters,
        scale_sets_at_once=policy.scale_sets_at_once * clusters,
        starts_per_minute=policy.starts_per_minute * clusters,
        starts_per_day=policy.starts_per_day * clusters,
        calls_per_minute=policy.calls_per_minute * clusters,
        teams={} if clusters > 1 else policy.teams,
    )
