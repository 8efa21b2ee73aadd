"""Data model of a rotation: node states, observations, transitions and actions. Times are in seconds since 1970."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

from components.spec.pool import PriorityClass
from components.spec.tenancy import Replacement

ROTATION = "rotation"
"""Actor of the transitions that the decision core makes."""


class NodeState(StrEnum):
    """State of a node in a run."""

    PENDING = "pending"
    CORDONED = "cordoned"
    DRAINING = "draining"
    DRAINED = "drained"
    REPLACING = "replacing"
    JOINING = "joining"
    PREFLIGHT = "preflight"
    READY = "ready"
    REMOVED = "removed"
    FAILED = "failed"
    BLOCKED = "blocked"


IN_ROTATION = frozenset(
    {NodeState.CORDONED, NodeState.DRAINING, NodeState.DRAINED, NodeState.REPLACING, NodeState.JOINING, NodeState.PREFLIGHT}
)
"""States in which the run has taken a node out of service and will change it further."""
ENDED = frozenset({NodeState.READY, NodeState.REMOVED, NodeState.FAILED, NodeState.BLOCKED})
"""States that a run does not leave, unless an operator retries failed nodes."""
NEXT_STATES: dict[NodeState, frozenset[NodeState]] = {
    NodeState.PENDING: frozenset({NodeState.CORDONED, NodeState.BLOCKED, NodeState.READY, NodeState.REMOVED}),
    NodeState.CORDONED: frozenset({NodeState.PENDING, NodeState.DRAINING}),
    NodeState.DRAINING: frozenset({NodeState.DRAINING, NodeState.DRAINED, NodeState.BLOCKED}),
    NodeState.DRAINED: frozenset({NodeState.DRAINED, NodeState.REPLACING, NodeState.FAILED, NodeState.PENDING}),
    NodeState.REPLACING: frozenset({NodeState.DRAINED, NodeState.JOINING, NodeState.FAILED, NodeState.REMOVED}),
    NodeState.JOINING: frozenset({NodeState.DRAINED, NodeState.PREFLIGHT, NodeState.FAILED}),
    NodeState.PREFLIGHT: frozenset({NodeState.DRAINED, NodeState.READY, NodeState.FAILED}),
    NodeState.READY: frozenset(),
    NodeState.REMOVED: frozenset(),
    NodeState.FAILED: frozenset({NodeState.PENDING, NodeState.DRAINED}),
    NodeState.BLOCKED: frozenset({NodeState.PENDING}),
}
"""States that may follow each state.

DRAINED follows a failed attempt. PENDING follows a cancelled start, a retry by an operator, or a drained machine's return to service.
"""


class Task(StrEnum):
    """Purpose for which a node is drained."""

    ROTATE = "rotate"
    REMOVE = "remove"


class Load(IntEnum):
    """Highest priority of the evictable pods on a node; EMPTY without any."""

    EMPTY = 0
    BALLOON = 1
    LOW = 2
    NORMAL = 3
    HIGH = 4


LOAD_OF: dict[PriorityClass, Load] = {
    PriorityClass.BALLOON: Load.BALLOON,
    PriorityClass.LOW: Load.LOW,
    PriorityClass.NORMAL: Load.NORMAL,
    PriorityClass.HIGH: Load.HIGH,
}


class Verdict(StrEnum):
    """Result of the tests of a node's present boot; UNKNOWN before they end.

    TRANSIENT: repeat on the same machine. HARDWARE: other hardware is needed. CONFIGURATION: image or boot files are at fault.
    """

    UNKNOWN = ""
    PASSED = "passed"
    TRANSIENT = "transient"
    HARDWARE = "hardware"
    CONFIGURATION = "configuration"


@dataclass(frozen=True, slots=True)
class RunNode:
    """One node of a run: name when it was selected, scale set, pool, task, and the reason of its selection.

    A replaced machine keeps its place in the run under this name, whatever its new name is.
    """

    name: str
    scale_set: str
    pool: str
    reason: str
    task: Task = Task.ROTATE


@dataclass(frozen=True, slots=True)
class NodeObservation:
    """One machine of the cluster as it was read, in the run or not.

    exists: the Node object and the Azure instance exist. ready: its kubelet reports Ready. cordoned_by: owner of the cordon, "" if the
    node is not cordoned. tainted: it has the taint of a node whose tests have not passed. load and gangs: of its evictable pods; pods
    is their number. replaced_at: time at which its present OS disk was created. booted_at: time of its present boot. current: machine
    and node are on the target image, model and boot files. operating: an operation of Azure on it runs. operation_error: Azure's error
    code of the last operation, which ended at operation_at; "" if it succeeded or runs. verdict: of the present boot.
    """

    name: str
    scale_set: str
    pool: str
    team: str = ""
    exists: bool = True
    ready: bool = True
    cordoned_by: str = ""
    tainted: bool = False
    load: Load = Load.EMPTY
    gangs: tuple[str, ...] = ()
    pods: int = 0
    replaced_at: float = 0.0
    booted_at: float = 0.0
    current: bool = False
    operating: bool = False
    operation_error: str = ""
    operation_at: float = 0.0
    verdict: Verdict = Verdict.UNKNOWN

    @property
    def unavailable(self) -> bool:
        """Return True if no new pod can run on the machine, for any reason."""
        return not (self.exists and self.ready) or bool(self.cordoned_by) or self.tainted


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods that run all together, or not at all: a PodGroup, or the owner of the pods where there is none.

    nodes: all its nodes, in the run or not. gpus: per node. checkpoint_at: time of its last checkpoint, else its start.
    """

    id: str
    nodes: tuple[str, ...]
    load: Load
    gpus: int
    checkpoint_at: float
    owner: str = ""

    def lost_gpu_hours(self, now: float) -> float:
        """Return the work that an interruption at this time would lose, in GPU-hours."""
        return max(0.0, now - self.checkpoint_at) / 3_600 * self.gpus * len(self.nodes)


@dataclass(frozen=True, slots=True)
class Freshness:
    """Age and completeness of the observations: times at which each source was last read completely.

    incomplete: what is missing of the last reading, "" if nothing. throttled_until: Azure answers 429 until then, 0 if it does not.
    """

    nodes_at: float
    jobs_at: float
    azure_at: float
    incomplete: str = ""
    throttled_until: float = 0.0


class Transition(NamedTuple):
    """One change of a node's state, as it is recorded in the journal; a tuple, because a process reads 60,000 of them when it starts.

    until: end of the wait in this state (deadline of a checkpoint, time-out, or end of a back-off); None without one. attempt: counts from
    1. evicting: of DRAINING, evictions have begun. method: of DRAINED and REPLACING. gangs: of CORDONED, those that share the start.
    """

    node: str
    to: NodeState
    at: float
    cause: str
    actor: str = ROTATION
    until: float | None = None
    attempt: int = 1
    evicting: bool = False
    method: Replacement | None = None
    gangs: tuple[str, ...] = ()


class ActionKind(StrEnum):
    """Kind of an action of an executor. Each action may be repeated: it has no effect on nodes on which it was already carried out."""

    CORDON = "cordon"
    SIGNAL_CHECKPOINT = "signal-checkpoint"
    EVICT = "evict"
    REIMAGE = "reimage"
    REPLACE = "replace"
    DELETE = "delete"
    UNCORDON = "uncordon"


@dataclass(frozen=True, slots=True)
class Action:
    """One action on nodes, to be carried out after the step's transitions are in the journal.

    scale_set: of REIMAGE, REPLACE and DELETE, which are one request per scale set. until: deadline of a checkpoint.
    """

    kind: ActionKind
    nodes: tuple[str, ...]
    reason: str
    scale_set: str = ""
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Nodes that do not start: their number, the reason, and the time at which this may change without a new observation (None: never)."""

    nodes: int
    reason: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Result of one step: transitions for the journal, then actions for the executor.

    waits: reasons of the first nodes that could not start. next_at: time of the next step if nothing changes before, None if there is
    none. stopped: reason why the run starts no more nodes, "" if it does. finished: every node has ended.
    """

    transitions: tuple[Transition, ...]
    actions: tuple[Action, ...]
    waits: tuple[Wait, ...]
    next_at: float | None
    stopped: str
    finished: bool
