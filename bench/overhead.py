"""Cost of gpufleet's program compared with the bare cost of the same registrations, alternately in one process."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

from bench.bare_program import RecordedBackend, Step, program, steps
from bench.graph_comparison import differences
from components.plan.limits import raise_if_broken
from components.plan.model import RegionPlan
from rehearsal.local_up.up import PROJECT
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.dynamic_providers import DynamicProviders
from rehearsal.program.graph import Graph
from rehearsal.program.run import run_program
from stacks.load import load_plan
from stacks.program import make

SHOWN = 5


class GraphMismatchError(Exception):
    """The bare program registers other resources, so that a ratio would be meaningless."""

    def __init__(self, found: list[str]) -> None:
        more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        super().__init__("; ".join(found[:SHOWN] + more))


@dataclass(frozen=True)
class RecordedStacks:
    """Both stacks of a region as gpufleet's program registered them."""

    plan: RegionPlan
    base: Graph
    clusters: Graph


@dataclass(frozen=True)
class BareProgram:
    """A bare program of both stacks, ready to run."""

    recorded: RecordedStacks
    backends: tuple[RecordedBackend, RecordedBackend]
    base: tuple[Step, ...]
    clusters: tuple[Step, ...]

    @classmethod
    def of(cls, recorded: RecordedStacks, *, dependencies: bool) -> BareProgram:
        """Prepare the program and run it once; GraphMismatchError where it registers other resources than recorded."""
        subscription, tenant = recorded.plan.spec.subscription, recorded.plan.spec.access.tenant
        base, clusters = (RecordedBackend(graph, subscription=subscription, tenant=tenant) for graph in (recorded.base, recorded.clusters))
        bare = cls(
            recorded,
            (base, clusters),
            steps(recorded.base, dependencies=dependencies),
            steps(recorded.clusters, dependencies=dependencies),
        )
        pairs = zip((recorded.base, recorded.clusters), bare.run(), strict=True)
        found = [line for ours, again in pairs for line in differences(ours, again, dependencies=dependencies)]
        if found:
            raise GraphMismatchError(found)
        return bare

    def run(self) -> tuple[Graph, Graph]:
        """Register both stacks."""
        plan, outputs = self.recorded.plan, {self.recorded.plan.base_stack: self.recorded.base.stack_outputs}
        return (
            run_program(program(self.base), PROJECT, plan.base_stack, backend=self.backends[0]),
            run_program(program(self.clusters), PROJECT, plan.stack, backend=self.backends[1], stack_outputs=outputs),
        )


def run_ours(region: str) -> RecordedStacks:
    """Run gpufleet's whole program: region file, plan, limits, boot files, Kubernetes objects and components of both stacks."""
    plan = load_plan(region)
    raise_if_broken(plan)
    backend = AcceptingCloud(tenant=plan.spec.access.tenant)
    base = run_program(partial(make, plan, plan.base_stack), PROJECT, plan.base_stack, backend=backend)
    outputs = {plan.base_stack: base.stack_outputs}
    return RecordedStacks(
        plan, base, run_program(partial(make, plan, plan.stack), PROJECT, plan.stack, backend=backend, stack_outputs=outputs)
    )


@dataclass(frozen=True)
class Pair:
    """CPU seconds of one run of gpufleet's program, and of the bare ones beside it.

    keys is the part in which dynamic providers made keys and certificates. bare has the same dependencies, independent has none.
    """

    ours: float
    keys: float
    bare: float
    independent: float


def measure(region: str, pairs: int) -> list[Pair]:
    """Return pairs of gpufleet's program and the bare one, and report each on standard error.

    Bare runs precede and follow each run, and count as the mean of both, so that a change of the machine's speed favours neither.
    """
    recorded = run_ours(region)
    bare, independent = BareProgram.of(recorded, dependencies=True), BareProgram.of(recorded, dependencies=False)
    before, measured = _seconds(bare.run), []
    for number in range(pairs):
        with _keys_timed() as keys:
            ours = _seconds(lambda: run_ours(region))
        alone, after = _seconds(independent.run), _seconds(bare.run)
        measured.append(Pair(ours, sum(keys), (before + after) / 2, alone))
        before = after
        figures = ", ".join(f"{name} {seconds:.2f}" for name, seconds in asdict(measured[-1]).items())
        print(f"  pair {number + 1} of {pairs}: CPU seconds {figures}", file=sys.stderr, flush=True)
    return measured


def _seconds(work: Callable[[], Any]) -> float:
    """Return CPU seconds of a piece of work, after a garbage collection."""
    gc.collect()
    began = time.process_time()
    work()
    return time.process_time() - began


@contextmanager
def _keys_timed() -> Iterator[list[float]]:
    """Measure the time of dynamic providers, which run in a separate process under `pulumi up`."""
    spent: list[float] = []
    create = DynamicProviders.create

    def timed(self: DynamicProviders, inputs: Any) -> Any:
        began = time.process_time()
        try:
            return create(self, inputs)
        finally:
            spent.append(time.process_time() - began)

    with patch.object(DynamicProviders, "create", timed):
        yield spent
