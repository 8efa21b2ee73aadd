"""Objects of an API server as machines, gangs and disruption budgets of a rotation; pure functions over parsed JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from components.manifests.priorities import CLUSTER_CRITICAL, NODE_CRITICAL, PRIORITIES
from components.plan.access import PREFLIGHT_KEY, TEAM_LABEL
from components.plan.node_labels import BOOT_DIGEST_LABEL, CHECKPOINTED_AT, CORDONED_BY, IMAGE_LABEL, POOL_LABEL
from components.spec.pool import PriorityClass
from lifecycle.rotation.journal_records import Target
from lifecycle.rotation.model import LOAD_OF, Gang, Load, NodeObservation, Verdict
from lifecycle.rotation.selection import Candidate, differences

UNKNOWN_OWNER = "unknown owner"
"""Owner of a cordon without the annotation CORDONED_BY, for example of kubectl cordon."""
NO_GANG = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})
"""Controllers whose pods run independently of each other."""
ON_EVERY_NODE = frozenset({"DaemonSet", "Node"})
"""Owners of pods that leave with their node: a static pod's mirror is owned by its Node."""
MIRROR = "kubernetes.io/config.mirror"
GPU = "nvidia.com/gpu"
SYSTEM_CLASSES = frozenset({NODE_CRITICAL, CLUSTER_CRITICAL})
"""Priority classes of services without a job: their disruption budgets protect them, so that they count as low."""
_LOAD_BY_VALUE = [(row.value, LOAD_OF[PriorityClass(row.name)]) for row in PRIORITIES if row.name in set(PriorityClass)]

Json = Mapping[str, Any]


@dataclass(slots=True)
class _Running:
    """Pods of one gang that run: GPUs by node, start of the latest pod, and the latest checkpoint of a pod, 0 without one."""

    namespace: str
    load: Load = Load.EMPTY
    gpus: dict[str, int] = field(default_factory=dict)
    started: float = 0.0
    checkpoint: float = 0.0


@dataclass(slots=True)
class _NodePods:
    """Evictable pods of one node: their number, highest load, and gangs in the order in which they were read."""

    count: int = 0
    load: Load = Load.EMPTY
    gangs: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Blocker:
    """A PodDisruptionBudget that allows no eviction now: healthy pods, and the number of them that it needs."""

    namespace: str
    name: str
    healthy: int
    needed: int

    def __str__(self) -> str:
        budget = f"PodDisruptionBudget {self.namespace}/{self.name}"
        return f"{budget} allows 0 disruptions: {self.healthy} pods are healthy, and it needs {self.needed}"


@dataclass
class ClusterObjects:
    """Machines, gangs and blockers of a cluster; objects are added page by page, of which only the needed fields stay in memory.

    now: time of the reading in seconds since 1970; a later checkpoint is not believed.
    """

    now: float
    blockers: list[Blocker] = field(default_factory=list)
    _nodes: list[Candidate] = field(default_factory=list)
    _pods: dict[str, _NodePods] = field(default_factory=dict)
    _gangs: dict[str, _Running] = field(default_factory=dict)
    _group_checkpoints: dict[str, float] = field(default_factory=dict)

    def add_node(self, item: Json) -> None:
        """Add a Node."""
        self._nodes.append(machine_of(item))

    def add_pod(self, item: Json) -> None:
        """Add a Pod, unless it has no node, has ended, or leaves with its node."""
        metadata, spec, status = item["metadata"], item["spec"], item.get("status", {})
        node, owner = spec.get("nodeName", ""), controller_of(metadata)
        annotations = metadata.get("annotations", {})
        if not node or status.get("phase") in ("Succeeded", "Failed") or owner[0] in ON_EVERY_NODE or MIRROR in annotations:
            return
        load = load_of(spec)
        pods = self._pods.setdefault(node, _NodePods())
        pods.count += 1
        pods.load = max(pods.load, load)
        gang = gang_id(metadata["namespace"], spec, owner)
        if not gang:
            return
        pods.gangs[gang] = None
        running = self._gangs.setdefault(gang, _Running(metadata["namespace"]))
        running.load = max(running.load, load)
        running.gpus[node] = running.gpus.get(node, 0) + gpus_of(spec)
        running.started = max(running.started, seconds(status.get("startTime")) or seconds(metadata.get("creationTimestamp")))
        running.checkpoint = max(running.checkpoint, self._checkpoint(annotations))

    def add_pod_group(self, item: Json) -> None:
        """Add a PodGroup, for the checkpoint of its job."""
        metadata = item["metadata"]
        self._group_checkpoints[_group_id(metadata["namespace"], metadata["name"])] = self._checkpoint(metadata.get("annotations", {}))

    def add_budget(self, item: Json) -> None:
        """Add a PodDisruptionBudget if it has pods and allows no disruption."""
        status, metadata = item.get("status", {}), item["metadata"]
        if status.get("expectedPods", 0) and not status.get("disruptionsAllowed", 0):
            healthy, needed = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
            self.blockers.append(Blocker(metadata["namespace"], metadata["name"], healthy, needed))

    def _checkpoint(self, annotations: Mapping[str, str]) -> float:
        """Return the time of a checkpoint in seconds since 1970; 0 without one, for an invalid text, and for a time that has not come."""
        at = seconds(annotations.get(CHECKPOINTED_AT))
        return at if at <= self.now else 0.0

    def candidates(self, targets: Mapping[str, Target], compartment: Callable[[str, str], str]) -> list[Candidate]:
        """Return all machines with their pods.

        targets: of each pool, for NodeObservation.current. compartment: returns the key of a team's machines in a pool.
        """
        found = []
        for one in self._nodes:
            seen, pods = one.seen, self._pods.get(one.name, _NodePods())
            target = targets.get(seen.pool)
            complete = NodeObservation(
                seen.name,
                seen.scale_set,
                seen.pool,
                compartment(seen.team, seen.pool),
                exists=seen.exists,
                ready=seen.ready,
                cordoned_by=seen.cordoned_by,
                tainted=seen.tainted,
                load=pods.load,
                gangs=tuple(pods.gangs),
                pods=pods.count,
                booted_at=seen.booted_at,
                current=target is not None and not any(differences(one, target)),
                verdict=seen.verdict,
            )
            found.append(Candidate(complete, deleting=one.deleting, image=one.image, boot_digest=one.boot_digest))
        return found

    def gangs(self) -> list[Gang]:
        """Return all gangs with running pods; a gang runs since its latest pod started, because it runs all together or not at all."""
        return [
            Gang(
                id=name,
                nodes=tuple(one.gpus),
                load=one.load,
                gpus=max(one.gpus.values()),
                checkpoint_at=max(self._group_checkpoints.get(name, 0.0), one.checkpoint, one.started),
                owner=one.namespace,
            )
            for name, one in self._gangs.items()
        ]


def machine_of(item: Json) -> Candidate:
    """Return a Node as a machine without pods; a node without the preflight label and taint has passed its tests."""
    metadata, spec = item["metadata"], item.get("spec", {})
    labels, taints = metadata.get("labels", {}), spec.get("taints", ())
    conditions: Iterable[Json] = item.get("status", {}).get("conditions", ())
    ready: Json = next((one for one in conditions if one["type"] == "Ready"), {})
    is_ready = ready.get("status") == "True"
    owner = metadata.get("annotations", {}).get(CORDONED_BY) or UNKNOWN_OWNER
    tainted = any(taint["key"] == PREFLIGHT_KEY for taint in taints)
    seen = NodeObservation(
        name=metadata["name"],
        scale_set=scale_set_of(spec.get("providerID", "")),
        pool=labels.get(POOL_LABEL, ""),
        team=next((taint.get("value", "") for taint in taints if taint["key"] == TEAM_LABEL), labels.get(TEAM_LABEL, "")),
        ready=is_ready,
        cordoned_by=owner if spec.get("unschedulable") else "",
        tainted=tainted,
        booted_at=seconds(ready.get("lastTransitionTime")) if is_ready else 0.0,
        verdict=Verdict.UNKNOWN if tainted or PREFLIGHT_KEY in labels else Verdict.PASSED,
    )
    deleting = "deletionTimestamp" in metadata
    return Candidate(seen, deleting=deleting, image=labels.get(IMAGE_LABEL, ""), boot_digest=labels.get(BOOT_DIGEST_LABEL, ""))


def scale_set_of(provider_id: str) -> str:
    """Return the scale set of azure:///…/virtualMachineScaleSets/NAME/virtualMachines/ID; "" for another provider id."""
    parts = provider_id.split("/")
    return parts[-3] if len(parts) > 4 and parts[-4] == "virtualMachineScaleSets" else ""


def controller_of(metadata: Json) -> tuple[str, str]:
    """Return kind and name of the controller of an object; ("", "") without one."""
    owners: Iterable[Json] = metadata.get("ownerReferences", ())
    return next(((one["kind"], one["name"]) for one in owners if one.get("controller")), ("", ""))


def gang_id(namespace: str, spec: Json, owner: tuple[str, str]) -> str:
    """Return the gang of a pod: its PodGroup, else its controller, such as a Job or MPIJob; "" for a pod that runs on its own."""
    group = (spec.get("schedulingGroup") or {}).get("podGroupName")
    if group:
        return _group_id(namespace, group)
    kind, name = owner
    return "" if not kind or kind in NO_GANG else f"{kind} {namespace}/{name}"


def _group_id(namespace: str, name: str) -> str:
    return f"PodGroup {namespace}/{name}"


def load_of(spec: Json) -> Load:
    """Return the load of a pod by its priority class; of another class, by its value."""
    name = spec.get("priorityClassName", "")
    if name in SYSTEM_CLASSES:
        return Load.LOW
    value = spec.get("priority", 0)
    return next((load for bound, load in _LOAD_BY_VALUE if value <= bound), Load.HIGH)


def gpus_of(spec: Json) -> int:
    """Return the GPUs that a pod requests."""
    requests = (one.get("resources", {}).get("requests", {}).get(GPU, "0") for one in spec.get("containers", ()))
    return sum(int(count) for count in requests)


def seconds(text: object) -> float:
    """Return a time in RFC 3339 as seconds since 1970; 0 for anything else, and for a time without an offset."""
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return 0.0
    return at.timestamp() if at is not None and at.tzinfo is not None else 0.0
