"""Repair of a state that a killed command left: dead locks, incomplete checkpoints, operations under way."""

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
    """Return the lock files of a stack:
    https://github.com/pulumi/pulumi/blob/1e5fa8de0283b9abc50877f1122a0ff3c035f516/pkg/backend/diy/lock.go

    They belong to dead commands whenever the caller has locked the folder, because each command of gpufleet locks it.
    """
    return sorted((backend / ".pulumi" / "locks" / "organization" / project / stack).glob("*.json"))


def restore_backup(backend: Path, project: str, stack: str) -> bool:
    """Replace an incomplete checkpoint by the backup before it; return whether that was necessary.

    The file backend writes a checkpoint over the previous one, after it copied that:
    https://github.com/pulumi/pulumi/blob/1b5949891b3cefcb9974752b24a5ecef0acc86c8/pkg/backend/diy/state.go
    """
    path = backend / ".pulumi" / "stacks" / project / f"{stack}.json"
    whole = path.with_name(f"{path.name}.bak")
    if not path.exists() or _is_whole(path) or not _is_whole(whole):
        return False
    for backup, broken in ((whole, path), (whole.with_name(f"{whole.name}.attrs"), path.with_name(f"{path.name}.attrs"))):
        if backup.exists():
            shutil.copyfile(backup, broken)
    return True


def _is_whole(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return False


@dataclass(frozen=True)
class PendingOperation:
    """An operation under way when its command died: its type, and the id of its resource, "" where that is unknown."""

    urn: str
    operation: str
    id: str

    @property
    def name(self) -> str:
        """Return the type and logical name of the resource."""
        chain, _, name = self.urn.rpartition("::")
        return f"{chain.rpartition(':')[2]} {name}"


def pending_operations(deployment: Mapping[str, Any]) -> list[PendingOperation]:
    """Return the operations under way in a state."""
    subscriptions = dict(_subscriptions(deployment))
    found = []
    for operation in deployment.get("pending_operations") or ():
        resource = operation["resource"]
        found.append(PendingOperation(resource["urn"], operation["type"], resource.get("id") or _id(resource, subscriptions)))
    return found


def with_created_resources(deployment: Mapping[str, Any], under_way: Iterable[PendingOperation]) -> Json:
    """Return the state with the resources under creation added as if they existed, so that a refresh reads or removes them.

    The CLI has the flag --import-pending-creates for this, but drops the operations and imports nothing: `up` then fails because the
    resources exist (https://github.com/pulumi/pulumi/blob/1b5949891b3cefcb9974752b24a5ecef0acc86c8/pkg/cmd/pulumi/operations/refresh.go).
    The remaining way is to edit the output of `pulumi stack export` and import it:
    https://www.pulumi.com/docs/iac/cli/commands/pulumi_stack_import/
    """
    ids = {one.urn: one.id for one in under_way if one.operation == CREATING and one.id}
    known = {resource["urn"] for resource in deployment.get("resources") or ()}
    creating = (operation["resource"] for operation in deployment.get("pending_operations") or ())
    taken = [
        {**resource, "id": ids[resource["urn"]], "outputs": resource.get("inputs") or {}}
        for resource in creating
        if resource["urn"] in ids and resource["urn"] not in known
    ]
    return {**deployment, "resources": [*(deployment.get("resources") or ()), *taken], "pending_operations": []}


def pending_text(stack: str, under_way: list[PendingOperation]) -> str:
    """Return a sentence on the operations under way."""
    names = ", ".join(f"{one.name} ({one.operation})" for one in under_way[:NAMED])
    more = f" and {len(under_way) - NAMED:,} more" if len(under_way) > NAMED else ""
    were = "operation was" if len(under_way) == 1 else "operations were"
    return (
        f"{stack}: {len(under_way):,} {were} under way when the last command died: {names}{more}; "
        "reading their results from Azure and the clusters"
    )


def _id(resource: Mapping[str, Any], subscriptions: Mapping[str, str]) -> str:
    """Return the id that a creation leads to: Azure's from its path, Kubernetes' as NAMESPACE/NAME, "" where it is unknown."""
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
