"""Machines and gangs as they are, whatever the decision core has read of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from lifecycle.rotation.model import Gang, Load, NodeObservation, Task, Verdict


@dataclass
class Machine:
    """One machine; pods counts those outside gangs. tainted: no pod can start on it before its preflight has passed.
    died: its kubelet has stopped while pods were on it, so that they may be lost.

    Times are those of Kubernetes and Azure. outcomes: results of its next replacements, the first next; then all succeed.
    """

    name: str
    scale_set: str
    pool: str
    team: str
    task: Task | None
    exists: bool = True
    ready: bool = True
    cordon: str = ""
    load: Load = Load.EMPTY
    pods: int = 0
    gangs: list[str] = field(default_factory=list)
    replaced_at: float = 0.0
    booted_at: float = 0.0
    current: bool = False
    operating: bool = False
    error: str = ""
    error_at: float = 0.0
    verdict: Verdict = Verdict.UNKNOWN
    tainted: bool = False
    stuck: bool = False
    died: bool = False
    outcomes: list[str] = field(default_factory=list)

    def takes_pods(self) -> bool:
        """Return whether the scheduler can place a pod on it."""
        return self.exists and self.ready and not self.cordon and not self.tainted

    def observation(self, gangs: dict[str, Job]) -> NodeObservation:
        """Return what a reading shows of it."""
        running = tuple(sorted(self.gangs))
        loads = [gangs[one].load for one in running]
        return NodeObservation(
            self.name,
            self.scale_set,
            self.pool,
            self.team,
            exists=self.exists,
            ready=self.ready and self.exists,
            cordoned_by=self.cordon,
            load=max([self.load, *loads]),
            gangs=running,
            pods=self.pods + len(running),
            replaced_at=self.replaced_at,
            booted_at=self.booted_at,
            current=self.current,
            operating=self.operating,
            operation_error=self.error,
            operation_at=self.error_at,
            verdict=self.verdict,
        )


@dataclass
class Job:
    """A gang: its nodes, and how it behaves. starts: how often it started; hits: how often the rotation has evicted it."""

    id: str
    load: Load
    nodes: list[str] = field(default_factory=list)
    checkpoint_at: float = 0.0
    writes: bool = True
    restarts: bool = True
    starts: int = 0
    hits: int = 0

    def observation(self) -> Gang:
        """Return what a reading shows of it."""
        return Gang(self.id, tuple(self.nodes), self.load, 8, self.checkpoint_at)
