"""How declared objects become a cluster's: by server-side apply, in tiers, and what is no longer declared is taken away.

Every object is sent, always: the server alone knows which fields are whose. What is sent again unchanged changes nothing, not even a
resourceVersion. https://kubernetes.io/docs/reference/using-api/server-side-apply/
One connection and no client library: measured on two cores, 67 objects applied again take 87 requests (2 of discovery, 18 listings), half
a second, and 0.09 s of this process; kubernetes' dynamic client takes 0.15 s for the same without a listing, and 0.55 s to be imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from components.errors import GpufleetError
from components.kubernetes_objects import tiers
from rehearsal.local_cluster.objects import kubeconfig as kubeconfigs
from rehearsal.local_cluster.objects.connection import APPLY, Connection
from rehearsal.local_cluster.objects.kinds import PRUNED_KINDS, Kinds, discover, wait_until_served
from rehearsal.local_cluster.objects.owned_fields import MANAGER, has_owner_label, list_owned, was_changed
from rehearsal.local_cluster.objects.prune import delete_objects, retained_for_rollouts, retained_for_teams, undeclared
from rehearsal.local_cluster.objects.refusals import NOT_FOUND, conflicts_of, failures_of, unserved
from rehearsal.local_cluster.objects.results import ApplyResult, FieldConflict, KubernetesObject, ObjectFailure, ObjectKey, key_of

PATIENCE_SECONDS = 60.0
"""How long a request is repeated that may yet succeed, and how long a kind may take to be served."""
OK, CREATED = 200, 201
DEFINITION = "CustomResourceDefinition"
ESTABLISHED_WAIT_SECONDS = 0.1


class NothingDeclaredError(GpufleetError):
    """No object at all is declared: applied, that would take all of ours away."""

    def __init__(self) -> None:
        self.remedy = "see why the program registered none for this cluster"
        super().__init__(f"no Kubernetes object is declared, with which all of the cluster's would be taken away; {self.remedy}")


def apply(
    kubeconfig: Path,
    objects: Iterable[KubernetesObject],
    say: Callable[[str], None],
    *,
    force: bool = False,
    prune_teams: bool = False,
    patience: float = PATIENCE_SECONDS,
) -> ApplyResult:
    """Make a cluster hold exactly these objects of ours.

    force takes fields over that others own; prune_teams lets namespaces of teams go that are no longer declared; patience in seconds.
    Nothing is taken away while an object is refused or in conflict; an object that fails stops no other. NothingDeclared where there is
    none, KubeconfigRefused and NoAnswer where the cluster cannot be asked at all: what was applied until then stays, and applying again
    goes on from there.
    """
    items = tuple(objects)
    if not items:
        raise NothingDeclaredError
    connection = Connection(kubeconfigs.read(kubeconfig), patience, say)
    try:
        return _Run(connection, say, force, patience, items).run(prune_teams=prune_teams)
    finally:
        connection.close()


@dataclass
class _Run:
    """One run over one connection."""

    connection: Connection
    say: Callable[[str], None]
    force: bool
    patience: float
    items: tuple[KubernetesObject, ...]
    created: list[ObjectKey] = field(default_factory=list)
    changed: list[ObjectKey] = field(default_factory=list)
    unchanged: list[ObjectKey] = field(default_factory=list)
    conflicts: list[FieldConflict] = field(default_factory=list)
    failed: list[ObjectFailure] = field(default_factory=list)
    warnings: list[tuple[ObjectKey, str]] = field(default_factory=list)
    kinds: Kinds = field(default_factory=dict)

    def run(self, *, prune_teams: bool) -> ApplyResult:
        """All of it."""
        self.kinds = discover(self.connection)
        declared = frozenset(key_of(item) for item in self.items)
        looked_at = {(version, kind) for kind, version in PRUNED_KINDS.items()} | {(key.api_version, key.kind) for key in declared}
        live = list_owned(self.connection, self.kinds, tuple(sorted(looked_at)))
        for tier in tiers(self.items):
            # A definition's kinds are served only after its tier.
            self.kinds = wait_until_served(
                self.connection, ((item["apiVersion"], item["kind"]) for item in tier), self.kinds, self.patience, self.say
            )
            for item in tier:
                self._apply(item, live)
            self._establish(tier)
        kept, pruned = self._prune(undeclared(live, declared), prune_teams=prune_teams)
        return ApplyResult(
            tuple(self.created),
            tuple(self.changed),
            tuple(self.unchanged),
            tuple(pruned),
            tuple(self.conflicts),
            tuple(self.failed),
            tuple(sorted(kept.items())),
            tuple(self.warnings),
            self.connection.requests,
        )

    def _apply(self, item: KubernetesObject, live: Mapping[ObjectKey, KubernetesObject]) -> None:
        key = key_of(item)
        if (served := self.kinds.get((key.api_version, key.kind))) is None:
            self.failed.append(unserved(key))
            return
        before = live.get(key)
        if not has_owner_label(item):
            # It is in no listing of ours.
            found = self.connection.request("GET", served.item(key))
            before = found.body if found.status == OK else None
        query = {"fieldManager": MANAGER, "fieldValidation": "Strict", "force": str(self.force).lower()}
        answer = self.connection.request("PATCH", served.item(key), query, item, APPLY)
        self.warnings += [(key, text) for text in answer.warnings]
        if answer.status == CREATED:
            self.created.append(key)
        elif answer.status < 300:
            (self.changed if was_changed(item, before, answer.body) else self.unchanged).append(key)
        elif conflicts := conflicts_of(key, answer):
            self.conflicts += conflicts
        else:
            self.failed += failures_of(key, answer)

    def _establish(self, tier: Iterable[KubernetesObject]) -> None:
        """Waits until the kinds of a tier's definitions are served."""
        for key in [key_of(item) for item in tier if item["kind"] == DEFINITION]:
            end = time.monotonic() + self.patience
            while not self._established(key):
                if time.monotonic() > end:
                    self.failed.append(
                        ObjectFailure(key, "status.conditions", "not established", "look at its conditions: kubectl describe crd")
                    )
                    break
                time.sleep(ESTABLISHED_WAIT_SECONDS)

    def _established(self, key: ObjectKey) -> bool:
        answer = self.connection.request("GET", self.kinds[key.api_version, key.kind].item(key))
        # Null until a controller has seen it.
        conditions = answer.body.get("status", {}).get("conditions") or ()
        return answer.status == NOT_FOUND or any(row["type"] == "Established" and row["status"] == "True" for row in conditions)

    def _prune(self, going: dict[ObjectKey, KubernetesObject], *, prune_teams: bool) -> tuple[dict[ObjectKey, str], list[ObjectKey]]:
        """What stays, with reasons, and what was taken away."""
        if going and (self.conflicts or self.failed):
            # What could not be changed may still need it.
            return dict.fromkeys(going, "objects are refused or in conflict, which may still need it"), []
        kept = {} if prune_teams else retained_for_teams(going)
        kept |= retained_for_rollouts(self.connection, self.kinds, going)
        gone, failed = delete_objects(self.connection, self.kinds, {key: item for key, item in going.items() if key not in kept})
        self.failed += failed
        return kept, gone
