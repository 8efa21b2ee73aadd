"""Decides how a state is taken up that a killed command has left: which locks are dead, and what was under way when it died."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.azure.azure_native_ids import AZURE, MissingInputError, UnknownTypeError, arm_id

Json = dict[str, Any]
CREATING = "creating"
NAMED = 3


def lock_files(backend: Path, project: str, stack: str) -> list[Path]:
    """The locks of a stack: https://github.com/pulumi/pulumi/blob/1e5fa8de0283b9abc50877f1122a0ff3c035f516/pkg/backend/diy/lock.go

    Whoever holds the folder knows that whoever took them has died, because every command of ours keeps it held.
    """
    return sorted((backend / ".pulumi" / "locks" / "organization" / project / stack).glob("*.json"))


def restore_backup(backend: Path, project: str, stack: str) -> bool:
    """Put the last whole checkpoint in place of one that was cut off while it was written; whether that was needed.

    The file backend writes a checkpoint over the one before, of which it has made a copy:
    https://github.com/pulumi/pulumi/blob/1b5949891b3cefcb9974752b24a5ecef0acc86c8/pkg/backend/diy/state.go
    """
    path = backend / ".pulumi" / "stacks" / project / f"{stack}.json"
    whole = path.with_name(f"{path.name}.bak")
    if not path.exists() or _is_whole(path) or not _is_whole(whole):
        return False
    for kept, broken in ((whole, path), (whole.with_name(f"{whole.name}.attrs"), path.with_name(f"{path.name}.attrs"))):
        if kept.exists():
            shutil.copyfile(kept, broken)
    return True


def _is_whole(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return False


@dataclass(frozen=True)
class PendingOperation:
    """An operation that had begun when its command died: what it is, and the id that it leads to, empty where there is no telling."""

    urn: str
    kind: str
    id: str

    @property
    def name(self) -> str:
        """Type and logical name, for a person."""
        chain, _, name = self.urn.rpartition("::")
        return f"{chain.rpartition(':')[2]} {name}"


def pending_operations(deployment: Mapping[str, Any]) -> list[PendingOperation]:
    """What a state says was under way."""
    subscriptions = dict(_subscriptions(deployment))
    found = []
    for operation in deployment.get("pending_operations") or ():
        resource = operation["resource"]
        found.append(PendingOperation(resource["urn"], operation["type"], resource.get("id") or _id(resource, subscriptions)))
    return found


def with_created_resources(deployment: Mapping[str, Any], under_way: Iterable[PendingOperation]) -> Json:
    """The state with what was being created in it as if it were there, so that a refresh reads it, or finds that it is not.

    The CLI has a flag for this, --import-pending-creates, after which the refresh drops the operations and imports nothing: what Azure
    has made would then be refused as already existing
    (https://github.com/pulumi/pulumi/blob/1b5949891b3cefcb9974752b24a5ecef0acc86c8/pkg/cmd/pulumi/operations/refresh.go). To edit what
    `pulumi stack export` gives, and import it, is the way that is left: https://www.pulumi.com/docs/iac/cli/commands/pulumi_stack_import/
    """
    ids = {one.urn: one.id for one in under_way if one.kind == CREATING and one.id}
    known = {resource["urn"] for resource in deployment.get("resources") or ()}
    creating = (operation["resource"] for operation in deployment.get("pending_operations") or ())
    taken = [
        {**resource, "id": ids[resource["urn"]], "outputs": resource.get("inputs") or {}}
        for resource in creating
        if resource["urn"] in ids and resource["urn"] not in known
    ]
    return {**deployment, "resources": [*(deployment.get("resources") or ()), *taken], "pending_operations": []}


def pending_text(stack: str, under_way: list[PendingOperation]) -> str:
    """What a person reads of it."""
    names = ", ".join(f"{one.name} ({one.kind})" for one in under_way[:NAMED])
    more = f" and {len(under_way) - NAMED:,} more" if len(under_way) > NAMED else ""
    were = "operation was" if len(under_way) == 1 else "operations were"
    return (
        f"{stack}: {len(under_way):,} {were} under way when the last command died: {names}{more}; "
        "asking Azure and the clusters what came of them"
    )


def _id(resource: Mapping[str, Any], subscriptions: Mapping[str, str]) -> str:
    """The id that a creation leads to: Azure's by its path, Kubernetes' NAMESPACE/NAME; empty where there is no telling."""
    inputs, urn = resource.get("inputs") or {}, resource["urn"]
    if resource["type"].startswith(AZURE):
        try:
            return arm_id(resource["type"], urn.rpartition("::")[2], inputs, subscriptions.get(_provider(resource)))
        except (MissingInputError, UnknownTypeError):
            return ""
    if resource["type"].startswith("kubernetes:"):
        metadata = inputs.get("metadata") or {}
        return "/".join(part for part in (metadata.get("namespace"), metadata.get("name")) if isinstance(part, str))
    return ""


def _provider(resource: Mapping[str, Any]) -> str:
    return str(resource.get("provider", "")).rpartition("::")[0]


def _subscriptions(deployment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for resource in deployment.get("resources") or ():
        if resource["type"] == "pulumi:providers:azure-native":
            yield resource["urn"], str((resource.get("inputs") or {}).get("subscriptionId", ""))
