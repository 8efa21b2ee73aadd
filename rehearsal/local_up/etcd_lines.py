"""Lines on etcd machines that keep an older image, boot files or SSH key, because no update changes an etcd machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.plan.control_plane import ETCD_PLAYBOOK
from components.plan.model import ClusterPlan
from rehearsal.local_up.boot_documents import UnreadableDocumentError, changed_files
from rehearsal.local_up.retained_values import RetainedValue
from rehearsal.local_up.up import UpOutcome

CUSTOM_DATA, KEY, IMAGE, SIZE = "osProfile.customData", "osProfile.linuxConfiguration", "storageProfile.imageReference", "hardwareProfile"
WORDS: Mapping[str, str] = {
    CUSTOM_DATA: "boot files",
    KEY: "SSH key",
    IMAGE: "image",
    SIZE: "VM size",
    "storageProfile.osDisk": "OS disk",
    "storageProfile.diskControllerType": "disk controller",
    "networkProfile": "network interface",
}
"""Words for the properties that an update does not change, in CHANGED_BY_PLAYBOOKS of components/etcd.py."""
FILES_NAMED = 2
REMEDY = (
    "an update never changes an etcd machine: recreate one machine after the other, and then replace its member with "
    f"{ETCD_PLAYBOOK}, see docs/runbooks/etcd-member-lost.md"
)


def etcd_lines(outcome: UpOutcome) -> list[str]:
    """Return one line per cluster whose etcd machines keep older values than the region file declares, with the remedy."""
    retained = retained_by_machine(outcome)
    return [line for cluster in outcome.plan.clusters if (line := _cluster_line(cluster, retained))]


def retained_by_machine(outcome: UpOutcome) -> dict[str, tuple[RetainedValue, ...]]:
    """Return the retained values by the name of the machine in Azure, in the order of creation."""
    return {
        record.id.rpartition("/")[2]: update.retained[urn]
        for update in outcome.updates
        for urn, record in update.stack.records.items()
        if update.retained.get(urn)
    }


def _cluster_line(cluster: ClusterPlan, retained: Mapping[str, Sequence[RetainedValue]]) -> str:
    """Return the line of a cluster, with the machines grouped by what they keep; empty where they keep nothing."""
    groups: dict[str, list[str]] = {}
    for etcd in (cluster.etcd, cluster.events_etcd):
        for member in etcd.members:
            if member.name in retained:
                groups.setdefault(" and ".join(_kept(retained[member.name])), []).append(member.name)
    if not groups:
        return ""
    parts = (f"{_names(names)} {'keeps' if len(names) == 1 else 'keep'} {kept}" for kept, names in groups.items())
    return f"cluster {cluster.name}: {'; '.join(parts)}; {REMEDY}"


def _kept(values: Sequence[RetainedValue]) -> Iterator[str]:
    """Yield what a machine keeps: the old image, size or key with the declared one, or the files that differ."""
    for one in values:
        actual, declared = _short(one.path, one.actual), _short(one.path, one.declared)
        if one.path == CUSTOM_DATA:
            yield f"older boot files{_files(one)}"
        elif actual and declared and actual != declared:
            yield f"{WORDS[one.path]} {actual} (declared: {declared})"
        else:
            yield f"an older {WORDS.get(one.path, one.path)}"


def _short(path: str, value: Any) -> str:
    """Return a value as a person writes it in the region file: NAME@VERSION of an image, a VM size, the comment of a key."""
    try:
        if path == IMAGE:
            names = str(value["id"]).split("/")
            return f"{names[-3]}@{names[-1]}"
        if path == SIZE:
            return str(value["vmSize"])
        if path == KEY:
            return str(value["ssh"]["publicKeys"][0]["keyData"]).partition(" ")[2].partition(" ")[2]
    except (KeyError, IndexError, TypeError):
        return ""
    return ""


def _files(value: RetainedValue) -> str:
    """Return the paths of the first files that differ, in brackets; empty where the boot files cannot be decoded."""
    try:
        paths = list(changed_files(value.actual, value.declared))
    except (UnreadableDocumentError, AttributeError, TypeError):
        return ""
    more = [f"{len(paths) - FILES_NAMED:,} more"] if len(paths) > FILES_NAMED else []
    return f" ({', '.join([*paths[:FILES_NAMED], *more])})" if paths else ""


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names):,} etcd machines ({', '.join(names)})"
