"""Server-side apply of the declared objects to a cluster, in tiers, and deletion of objects that are no longer declared.

A run sends every object, because only the server records which manager owns which field. An unchanged object keeps its resourceVersion.
https://kubernetes.io/docs/reference/using-api/server-side-apply/
docs/adr/0011-applying-objects.md compares this client with kubectl.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from components.errors import GpufleetError
from components.kubernetes_objects import tiers
from lifecycle.kubernetes_api import kubeconfig as kubeconfigs
from lifecycle.kubernetes_api.connection import APPLY, Connection
from rehearsal.local_cluster.objects.kinds import PRUNED_KINDS, Kinds, discover, wait_until_served
from rehearsal.local_cluster.objects.prune import (
    FIELD_MANAGER,
    delete_objects,
    has_owner_label,
    list_owned,
    retained_for_rollouts,
    retained_for_teams,
    undeclared,
    was_changed,
)
from rehearsal.local_cluster.objects.results import (
    NOT_FOUND,
    ApplyResult,
    FieldConflict,
    KubernetesObject,
    ObjectFailure,
    ObjectKey,
    conflicts_of,
    failures_of,
    key_of,
    unserved,
)

PATIENCE_SECONDS = 60.0
"""Time to retry a failed request, and to wait until a kind is served."""
OK, CREATED = 200, 201
DEFINITION = "CustomResourceDefinition"
ESTABLISHED_WAIT_SECONDS = 0.1


class NothingDeclaredError(GpufleetError):
    """No object is declared; applying that would delete every object of gpufleet."""

    def __init__(self) -> None:
        self.remedy = "find out why the program registered none for this cluster"
        super().__init__(f"no Kubernetes object is declared, and applying that would delete all objects of gpufleet; {self.remedy}")


def apply(
    kubeconfig: Path,
    objects: Iterable[KubernetesObject],
    say: Callable[[str], None],
    *,
    force: bool = False,
    prune_teams: bool = False,
    patience: float = PATIENCE_SECONDS,
) -> ApplyResult:
    """Make these objects the only objects of gpufleet in a cluster.

    force takes over fields that other managers own. prune_teams also deletes namespaces of teams that are no longer declared. patience is
    in seconds. A failed object does not stop the others, but nothing is deleted while an object is refused or in conflict.
    Raises NothingDeclaredError if objects is empty, KubeconfigError, and ApiServerUnreachableError if the server does not respond; objects
    that were applied before stay, and another run continues.
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
    """State of one run over one connection."""

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
        """Apply all tiers, delete undeclared objects, and return the result."""
        self.kinds = discover(self.connection)
        declared = frozenset(key_of(item) for item in self.items)
        listed = {(version, kind) for kind, version in PRUNED_KINDS.items()} | {(key.api_version, key.kind) for key in declared}
        live = list_owned(self.connection, self.kinds, tuple(sorted(listed)))
        for tier in tiers(self.items):
            # The kinds of a CustomResourceDefinition are served only after its tier.
            self.kinds = wait_until_served(
                self.connection, ((item["apiVersion"], item["kind"]) for item in tier), self.kinds, self.patience, self.say
            )
            for item in tier:
                self._apply(item, live)
            self._establish(tier)
        retained, pruned = self._prune(undeclared(live, declared), prune_teams=prune_teams)
        return ApplyResult(
            tuple(self.created),
            tuple(self.changed),
            tuple(self.unchanged),
            tuple(pruned),
            tuple(self.conflicts),
            tuple(self.failed),
            tuple(sorted(retained.items())),
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
            # The listings do not contain it.
            current = self.connection.request("GET", served.item(key))
            before = current.body if current.status == OK else None
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", "force": str(self.force).lower()}
        response = self.connection.request("PATCH", served.item(key), query, item, APPLY)
        self.warnings += [(key, text) for text in response.warnings]
        if response.status == CREATED:
            self.created.append(key)
        elif response.status < 300:
            (self.changed if was_changed(item, before, response.body) else self.unchanged).append(key)
        elif conflicts := conflicts_of(key, response):
            self.conflicts += conflicts
        else:
            self.failed += failures_of(key, response)

    def _establish(self, tier: Iterable[KubernetesObject]) -> None:
        """Wait until the CustomResourceDefinitions of a tier are established."""
        for key in [key_of(item) for item in tier if item["kind"] == DEFINITION]:
            end = time.monotonic() + self.patience
            while not self._established(key):
                if time.monotonic() > end:
                    self.failed.append(
                        ObjectFailure(key, "status.conditions", "not established", "run kubectl describe crd to see its conditions")
                    )
                    break
                time.sleep(ESTABLISHED_WAIT_SECONDS)

    def _established(self, key: ObjectKey) -> bool:
        response = self.connection.request("GET", self.kinds[key.api_version, key.kind].item(key))
        # Null until a controller has processed it.
        conditions = response.body.get("status", {}).get("conditions") or ()
        return response.status == NOT_FOUND or any(row["type"] == "Established" and row["status"] == "True" for row in conditions)

    def _prune(self, going: dict[ObjectKey, KubernetesObject], *, prune_teams: bool) -> tuple[dict[ObjectKey, str], list[ObjectKey]]:
        """Delete undeclared objects; return the retained ones with reasons, and the deleted ones."""
        if going and (self.conflicts or self.failed):
            return dict.fromkeys(going, "other objects are refused or in conflict, and may still need it"), []
        retained = {} if prune_teams else retained_for_teams(going)
        retained |= retained_for_rollouts(self.connection, self.kinds, going)
        deleted, failed = delete_objects(self.connection, self.kinds, {key: item for key, item in going.items() if key not in retained})
        self.failed += failed
        return retained, deleted
