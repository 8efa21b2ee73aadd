"""Selection of the nodes of a run: machines that differ from their target, old or failed ones, named ones, and those of a roll-back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from components.errors import GpufleetError
from components.plan.model import ClusterPlan
from components.plan.node_labels import image_label
from lifecycle.rotation.journal import Journal
from lifecycle.rotation.journal_records import Target
from lifecycle.rotation.model import ROTATION, NodeObservation, NodeState, RunNode, Verdict

DAY = 86_400.0
MINORS_BEHIND = 3
"""Minor versions by which a kubelet may be older than an API server, and never newer:
https://kubernetes.io/releases/version-skew-policy/#kubelet"""
NAMED = 5
"""Names that a message lists."""
NO_NODE = "Azure has an instance without a node: look at its boot log, then delete the instance or let it join"
NOT_IN_AZURE = "Azure has no instance of this node: delete the Node object"
DELETING = "it is being deleted"


class KubeletSkewError(GpufleetError):
    """An image whose kubelet the API servers do not support: pool, kubelet version, API server version and remedy."""

    def __init__(self, pool: str, pin: str, kubelet: str, bound: str, remedy: str) -> None:
        self.pool, self.value, self.bound, self.remedy = pool, kubelet, bound, remedy
        where = f"pool {pool}: kubelet {kubelet} of image {pin}"
        super().__init__(f"{where} is not supported: {bound} (https://kubernetes.io/releases/version-skew-policy/); {remedy}")


class UnknownNodesError(GpufleetError):
    """Nodes of an explicit list that neither the cluster nor Azure has."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        super().__init__(f"nodes {_listed(names)}: neither the cluster nor Azure has them; correct the names, or leave them out")


class RollbackPinError(GpufleetError):
    """A roll-back to an image that the plan does not pin."""

    def __init__(self, pools: Sequence[str], pin: str, planned: str) -> None:
        self.value, self.bound = pin, planned
        self.remedy = f"set image: {pin} in the region file and run up, since Azure reimages a machine from its scale set's model"
        super().__init__(f"pool {_listed(pools)}: cannot roll back to {pin}, because the plan pins {planned}; {self.remedy}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One machine of the cluster with what Azure and its node report; its cluster part is the observation.

    in_cluster, in_azure: the Node object and the Azure instance exist. deleting: either of them is being deleted. latest_model: Azure's
    latestModelApplied, None if Azure did not report it. image, boot_digest: labels of the node, "" without them. created_at: time at which
    its OS disk was created, in seconds since 1970, 0 if unknown.
    """

    seen: NodeObservation
    in_cluster: bool = True
    in_azure: bool = True
    deleting: bool = False
    latest_model: bool | None = None
    image: str = ""
    boot_digest: str = ""
    created_at: float = 0.0

    @property
    def name(self) -> str:
        """Name of the node."""
        return self.seen.name


@dataclass(frozen=True, slots=True)
class Criteria:
    """Reasons for which nodes are selected; any one suffices.

    outdated: image, boot files or model differ from the target. older_than_days: age of the OS disk. failed: failed verdict. names: an
    explicit list, which is selected without any other reason.
    """

    outdated: bool = True
    older_than_days: float | None = None
    failed: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExcludedNode:
    """A machine that a run does not take although it may need a change, and the reason."""

    name: str
    scale_set: str
    reason: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Nodes of a run in the given order, machines that cannot be in it, and notes on nodes that are selected but will wait."""

    nodes: tuple[RunNode, ...]
    excluded: tuple[ExcludedNode, ...] = ()
    notes: tuple[str, ...] = ()


def targets_of(cluster: ClusterPlan, digests: Mapping[str, str]) -> dict[str, Target]:
    """Return the target of each pool: its pinned image, and the digest of its boot files by pool."""
    return {pool.name: Target(image=pool.image.pin, boot_digest=digests[pool.name]) for pool in cluster.pools}


def check_kubelets(cluster: ClusterPlan, pools: Iterable[str], api_servers: Sequence[str]) -> None:
    """Raise KubeletSkewError if the API servers do not support the kubelet of a pool's image.

    api_servers are the versions of the running API servers, for example "1.36.3"; while they are replaced there are two.
    """
    oldest, newest, checked = min(api_servers, key=_minor), max(api_servers, key=_minor), frozenset(pools)
    for pool in cluster.pools:
        kubelet, pin = pool.image.definition.packages.kubelet, pool.image.pin
        if pool.name not in checked or kubelet is None:
            continue
        if _minor(kubelet) > _minor(oldest):
            bound, remedy = f"it is newer than API server {oldest}", "replace the API servers first, or pin an image with an older kubelet"
            raise KubeletSkewError(pool.name, pin, kubelet, bound, remedy)
        major, minor = _minor(newest)
        if _minor(kubelet) < (major, minor - MINORS_BEHIND):
            bound = f"it is more than {MINORS_BEHIND} minor versions older than API server {newest}"
            raise KubeletSkewError(pool.name, pin, kubelet, bound, f"pin an image with kubelet {major}.{minor - MINORS_BEHIND} or newer")


def _minor(version: str) -> tuple[int, int]:
    """Return major and minor of a version such as 1.36.3 or v1.36.3."""
    major, minor, *_ = version.removeprefix("v").split(".")
    return int(major), int(minor)


def select(candidates: Iterable[Candidate], targets: Mapping[str, Target], criteria: Criteria, now: float) -> Selection:
    """Return the nodes that a run rotates, each with the reason, in the order of the candidates.

    now is in seconds since 1970. Raise UnknownNodesError for names that no candidate has. A node that another actor has cordoned is
    selected and waits, with a note.
    """
    machines = list(candidates)
    unknown = sorted(set(criteria.names) - {one.name for one in machines})
    if unknown:
        raise UnknownNodesError(unknown)
    named = frozenset(criteria.names)
    chosen: list[tuple[Candidate, str]] = []
    excluded = []
    for one in machines:
        target = targets.get(one.seen.pool)
        excluding = exclusion(one)
        if not excluding and target is None:
            excluding = f"pool {one.seen.pool!r} has no target: the plan does not contain it"
        if excluding:
            excluded.append(ExcludedNode(one.name, one.seen.scale_set, excluding))
        elif target is not None and (reasons := list(_reasons(one, target, criteria, named, now))):
            chosen.append((one, "; ".join(reasons)))
    return _selection(chosen, excluded)


def exclusion(one: Candidate) -> str:
    """Return why a run cannot take a machine, "" if it can."""
    if one.deleting:
        return DELETING
    if not one.in_azure:
        return NOT_IN_AZURE
    return "" if one.in_cluster else NO_NODE


def _reasons(one: Candidate, target: Target, criteria: Criteria, named: frozenset[str], now: float) -> Iterator[str]:
    if one.name in named:
        yield "named by the operator"
    if criteria.failed and one.seen.verdict in (Verdict.TRANSIENT, Verdict.HARDWARE, Verdict.CONFIGURATION):
        yield f"failed verdict: {one.seen.verdict}"
    if criteria.outdated:
        yield from differences(one, target)
    if criteria.older_than_days is not None and one.created_at and now - one.created_at > criteria.older_than_days * DAY:
        yield f"OS disk older than {criteria.older_than_days:g} days"


def differences(one: Candidate, target: Target) -> Iterator[str]:
    """Yield how a machine differs from its target; nothing if it is current.

    The node's own labels count beside Azure's latestModelApplied, because Azure can apply an update of the model to an instance without
    reprovisioning it.
    """
    if one.image != image_label(target.image):
        yield f"image {'@'.join(one.image.rsplit('_', 1)) or 'not reported'}, pinned {target.image}"
    elif one.boot_digest != target.boot_digest:
        yield f"boot files {one.boot_digest[:8] or 'not reported'}, planned {target.boot_digest[:8]}"
    if one.latest_model is False:
        yield "not on the latest model of its scale set"


def _selection(chosen: Sequence[tuple[Candidate, str]], excluded: Sequence[ExcludedNode]) -> Selection:
    """Return a selection, with one note for each owner of a cordon."""
    nodes = tuple(RunNode(one.name, one.seen.scale_set, one.seen.pool, reason) for one, reason in chosen)
    return Selection(nodes, tuple(excluded), tuple(cordon_notes(one for one, _ in chosen)))


def cordon_notes(selected: Iterable[Candidate]) -> Iterator[str]:
    """Yield one note for each other owner of cordons on selected nodes."""
    owners: dict[str, list[str]] = {}
    for one in selected:
        if one.seen.cordoned_by and one.seen.cordoned_by != ROTATION:
            owners.setdefault(one.seen.cordoned_by, []).append(one.name)
    for owner, names in owners.items():
        yield f"{_listed(names)}: cordoned by {owner}; rotation waits until {owner} removes the cordon"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def rollback(journal: Journal, candidates: Iterable[Candidate], targets: Mapping[str, Target], pin: str) -> Selection:
    """Return the nodes that a run has moved to another image, to be moved back to a pin (name@version).

    A node counts as moved when the run has requested a new OS disk for it. A machine that the run replaced by one with another name is
    found by its scale set and by the image of the run. Raise RollbackPinError unless the plan pins this image on every pool concerned.
    """
    moved = {one.node for one in journal.transitions if one.to is NodeState.REPLACING}
    nodes = [node for node in journal.start.nodes if node.name in moved and _same_image(journal, node.pool, pin)]
    pools = sorted({node.pool for node in nodes})
    wrong = [pool for pool in pools if pool not in targets or targets[pool].image != pin]
    if wrong:
        raise RollbackPinError(wrong, pin, targets[wrong[0]].image if wrong[0] in targets else "no image of this pool")
    machines = {one.name: one for one in candidates}
    gone = [node for node in nodes if node.name not in machines]
    sets = {node.scale_set for node in gone}
    images = {pool: image_label(target.image) for pool, target in journal.start.targets.items()}
    found = [machines[node.name] for node in nodes if node.name in machines]
    found += [
        one
        for name, one in machines.items()
        if name not in journal.index and one.seen.scale_set in sets and one.image == images.get(one.seen.pool)
    ]
    reason = f"roll back to {pin}: moved by run {journal.start.run_id}"
    excluded = [ExcludedNode(one.name, one.seen.scale_set, why) for one in found if (why := exclusion(one))]
    chosen = [(one, reason) for one in found if not exclusion(one) and any(differences(one, targets[one.seen.pool]))]
    return _selection(chosen, excluded)


def _same_image(journal: Journal, pool: str, pin: str) -> bool:
    """Return whether a run's target of a pool is another version of the pin's image."""
    target = journal.start.targets.get(pool)
    return target is not None and target.image.partition("@")[0] == pin.partition("@")[0]
