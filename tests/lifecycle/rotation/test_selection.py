"""Selection of a run's nodes: reasons, exclusions, notes, kubelet versions, and roll-back."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from journal_samples import STARTED, policy

from components.plan.model import ClusterPlan
from lifecycle.rotation.journal import Journal, RunStart
from lifecycle.rotation.journal_records import Target
from lifecycle.rotation.model import NodeObservation, NodeState, RunNode, Transition, Verdict
from lifecycle.rotation.selection import (
    Candidate,
    Criteria,
    ExcludedNode,
    KubeletSkewError,
    RollbackPinError,
    UnknownNodesError,
    check_kubelets,
    rollback,
    select,
    targets_of,
)
from stacks.load import load_plan

NEW = Target(image="nd-h100@2026.11.0", boot_digest="ab" * 16)
OLD = Target(image="nd-h100@2026.10.0", boot_digest="cd" * 16)
NOW = 1_800_000_000.0


def machine(name: str, *, pool: str = "h100", owner: str = "", verdict: Verdict = Verdict.PASSED, **reported: Any) -> Candidate:
    """Return a machine that is on the new target, except for the given values."""
    seen = NodeObservation(name, f"{pool}-000", pool, cordoned_by=owner, verdict=verdict)
    current: dict[str, Any] = {"latest_model": True, "image": "nd-h100_2026.11.0", "boot_digest": "ab" * 16, "created_at": NOW - 3_600}
    return Candidate(seen, **(current | reported))


def cluster_with(kubelet: str) -> ClusterPlan:
    """Return the cluster of the dev region with an image of its first pool that has a kubelet of this version."""
    cluster = load_plan("dev").clusters[0]
    pool = cluster.pools[0]
    packages = pool.image.definition.packages.model_copy(update={"kubelet": kubelet})
    definition = pool.image.definition.model_copy(update={"packages": packages})
    changed = dataclasses.replace(pool, image=dataclasses.replace(pool.image, definition=definition))
    return dataclasses.replace(cluster, pools=(changed, *cluster.pools[1:]))


def test_a_machine_is_outdated_by_image_boot_files_or_model_even_if_azure_applied_the_model() -> None:
    machines = [
        machine("current"),
        machine("image", image="nd-h100_2026.10.0", boot_digest="cd" * 16),
        machine("files", boot_digest="cd" * 16),
        machine("silent", image="", boot_digest=""),
        machine("unlabelled", boot_digest=""),
        machine("model", latest_model=False),
        machine("unread", latest_model=None),
    ]
    found = select(machines, {"h100": NEW}, Criteria(), NOW)
    assert [(node.name, node.reason) for node in found.nodes] == [
        ("image", "image nd-h100@2026.10.0, pinned nd-h100@2026.11.0"),
        ("files", "boot files cdcdcdcd, planned abababab"),
        ("silent", "image not reported, pinned nd-h100@2026.11.0"),
        ("unlabelled", "boot files not reported, planned abababab"),
        ("model", "not on the latest model of its scale set"),
    ]
    assert (found.excluded, found.notes) == ((), ())


def test_age_verdict_and_names_select_nodes_that_are_current() -> None:
    machines = [
        machine("old", created_at=NOW - 31 * 86_400),
        machine("young", created_at=NOW - 30 * 86_400),
        machine("of-unknown-age", created_at=0.0),
        machine("failed", verdict=Verdict.HARDWARE),
        machine("untested", verdict=Verdict.UNKNOWN),
        machine("named", created_at=NOW - 40 * 86_400),
    ]
    criteria = Criteria(outdated=False, older_than_days=30, failed=True, names=("named",))
    assert [(node.name, node.reason) for node in select(machines, {"h100": NEW}, criteria, NOW).nodes] == [
        ("old", "OS disk older than 30 days"),
        ("failed", "failed verdict: hardware"),
        ("named", "named by the operator; OS disk older than 30 days"),
    ]
    with pytest.raises(UnknownNodesError, match="nodes gone, lost: neither the cluster nor Azure has them; correct the names"):
        select(machines, {"h100": NEW}, Criteria(names=("lost", "named", "gone")), NOW)


def test_machines_that_no_run_can_take_are_reported_and_another_owners_cordon_is_only_noted() -> None:
    machines = [
        machine("deleted", deleting=True, image=""),
        machine("ghost", in_azure=False, latest_model=None),
        machine("silent", in_cluster=False, image="", boot_digest=""),
        machine("stray", pool="gone"),
        machine("debugged", owner="ada", image=""),
        machine("ours", owner="rotation", image=""),
    ]
    found = select(machines, {"h100": NEW}, Criteria(), NOW)
    assert [node.name for node in found.nodes] == ["debugged", "ours"]
    assert found.notes == ("debugged: cordoned by ada; rotation waits until ada removes the cordon",)
    assert found.excluded == (
        ExcludedNode("deleted", "h100-000", "it is being deleted"),
        ExcludedNode("ghost", "h100-000", "Azure has no instance of this node: delete the Node object"),
        ExcludedNode(
            "silent",
            "h100-000",
            "Azure has an instance without a node: look at its boot log, then delete the instance or let it join",
        ),
        ExcludedNode("stray", "gone-000", "pool 'gone' has no target: the plan does not contain it"),
    )


def test_an_image_with_a_kubelet_that_the_api_servers_do_not_support_is_refused() -> None:
    pool = load_plan("dev").clusters[0].pools[0].name
    for kubelet in ("1.36.9", "1.35.0", "1.33.0"):
        check_kubelets(cluster_with(kubelet), [pool], ["1.36.3"])
    with pytest.raises(KubeletSkewError) as newer:
        check_kubelets(cluster_with("1.37.0"), [pool], ["v1.37.1", "v1.36.3"])
    assert (newer.value.value, newer.value.bound) == ("1.37.0", "it is newer than API server v1.36.3")
    assert "replace the API servers first" in newer.value.remedy
    with pytest.raises(KubeletSkewError, match=r"kubelet 1\.32\.9 .* more than 3 minor versions older than API server 1\.36\.3 .* 1\.33"):
        check_kubelets(cluster_with("1.32.9"), [pool], ["1.35.2", "1.36.3"])
    check_kubelets(cluster_with("1.32.9"), [], ["1.36.3"])


def test_the_targets_of_a_cluster_are_its_pins_and_digests() -> None:
    cluster = load_plan("dev").clusters[0]
    found = targets_of(cluster, {pool.name: "12" * 16 for pool in cluster.pools})
    assert found == {pool.name: Target(image=pool.image.pin, boot_digest="12" * 16) for pool in cluster.pools}


def journal_of(*moved: str) -> Journal:
    """Return a run of five nodes to the new target that has replaced the OS disks of some."""
    nodes = tuple(RunNode(f"n{number}", "h100-000", "h100", "outdated") for number in range(4))
    start = RunStart("r7", "dev", "dev", STARTED, "ada", {"h100": NEW}, policy(), (*nodes, RunNode("c0", "cpu-000", "cpu", "outdated")))
    journal = Journal(start)
    journal.transitions += [Transition(name, NodeState.REPLACING, STARTED, "drained") for name in moved]
    return journal


def test_a_rollback_takes_the_nodes_that_the_run_moved_under_their_old_or_a_new_name() -> None:
    machines = [
        machine("n0"),
        machine("n1"),
        machine("n2", image="nd-h100_2026.10.0", boot_digest="cd" * 16),
        machine("n9"),
        machine("n8", image="nd-h100_2026.10.0", boot_digest="cd" * 16),
        machine("c0", pool="cpu"),
        Candidate(NodeObservation("no-node", "h100-000", ""), in_cluster=False),
    ]
    found = rollback(journal_of("n0", "n2", "n3", "c0"), machines, {"h100": OLD}, OLD.image)
    reason = "roll back to nd-h100@2026.10.0: moved by run r7"
    assert [(node.name, node.reason) for node in found.nodes] == [("n0", reason), ("n9", reason)], "n2 is back, n3 is now n9"


def test_a_rollback_to_an_image_that_the_plan_does_not_pin_is_refused() -> None:
    with pytest.raises(RollbackPinError) as refused:
        rollback(journal_of("n0"), [machine("n0")], {"h100": NEW}, OLD.image)
    assert (refused.value.value, refused.value.bound) == (OLD.image, NEW.image)
    assert "set image: nd-h100@2026.10.0 in the region file and run up" in refused.value.remedy
