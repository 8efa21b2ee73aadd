"""Changes read as pulumi preview prints them, and fit a screen however large the region is."""

from __future__ import annotations

from pathlib import Path

from embedded_regions import CPU, found_changes, planned, pool, standing, updated

from gpufleet.up_output import outcome_lines
from rehearsal.azure.arm_id import parse
from rehearsal.azure.region_cloud import new_region_cloud
from rehearsal.azure.resource import Request
from rehearsal.azure.scenario import AllocationFailure, Scenario
from rehearsal.checks.machines_up import check_machines
from rehearsal.local_up.diff_text import CREATED_AGAIN, DONE, PLANNED, change_lines, count_line, machine_line, tree_lines
from rehearsal.local_up.snapshot import ChangeType, billed_machines, compare_snapshots
from rehearsal.local_up.timeline import timeline_of
from rehearsal.local_up.up import UpOutcome, tear_down
from rehearsal.local_up.update_state import Approvals
from stacks.load import load_plan


def tree(outcome: UpOutcome, *, everything: bool = False) -> list[str]:
    return tree_lines(found_changes(outcome), outcome.before, outcome.after, everything=everything)


def test_one_change_is_a_tree_down_to_it() -> None:
    outcome = updated(planned(pool(CPU, nodes=12)), standing())
    assert tree(outcome) == [
        "   stack dev",
        "     RegionClusters dev",
        "       Cluster dev",
        "         NodePool pool-cpu",
        " ~         VirtualMachineScaleSet dev-cpu-000 [diff: ~sku.capacity] (instances: 10 -> 12)",
    ]
    assert count_line(found_changes(outcome), outcome.after, PLANNED) == "~ 1 to update, 244 unchanged"
    assert machine_line(outcome.before, outcome.after) == "instances: 14 -> 16"
    assert machine_line(outcome.after, outcome.after) == ""


def test_machines_of_an_older_model_are_told_with_what_that_means() -> None:
    outcome = updated(planned(pool(CPU, image="cpu@2026.10.0")), standing())
    assert machine_line(outcome.before, outcome.after) == (
        "instances: 14, 10 instances out of date (they have their old model and image until they are reimaged or replaced, "
        "which no gpufleet command does yet)"
    )


def test_the_cost_counts_the_machines_that_azure_bills() -> None:
    outcome = updated(planned(pool(CPU, nodes=12)), standing())
    sizes = {"Standard_D2ads_v6": 18, "Standard_NC24ads_A100_v4": 2}
    assert billed_machines(outcome.before) == {(size, "swedencentral"): count for size, count in sizes.items()}
    line = next(line for line in outcome_lines(outcome, 1.0, None, everything=False) if line.startswith("cost: "))
    assert line == "cost: 11.75 -> 11.99 US$ per hour (+0.24); virtual machines at list prices of 2026-06-18"
    scenario = Scenario(seed=5, allocation_failures=(AllocationFailure(rate=0.3),))
    failing = updated(planned(), new_region_cloud(planned(), scenario))
    in_sets = sum(item.machine_count or 0 for item in failing.after.values())
    # One of the six etcd members got no hardware.
    assert billed_machines(failing.after).total() == in_sets + 5


def test_what_was_begun_and_failed_is_marked_and_not_counted_as_made() -> None:
    outcome = updated(planned(), new_region_cloud(planned(), Scenario(seed=5, allocation_failures=(AllocationFailure(rate=0.3),))))
    failed = {urn for update in outcome.updates for urn in update.failures}
    found = compare_snapshots(outcome.before, outcome.after, failed)
    lines = tree_lines(found, outcome.before, outcome.after, everything=True)
    assert [line.strip() for line in lines if " failed" in line] == [
        "+         VirtualMachine dev-etcd-1 failed",
        "+         VirtualMachineScaleSet dev-cpu-000 failed (instances: 0 -> 7)",
    ]
    assert sum("1 failed" in line for line in tree_lines(found, outcome.before, outcome.after)) == 2
    assert count_line(found, outcome.after, DONE, len(failed)) == "+ 165 created, 2 failed, 0 unchanged"


def test_equal_changes_are_told_once_and_secrets_never() -> None:
    outcome = updated(planned(lambda cluster: cluster.update(ca_generation=2)), standing())
    short, whole = "\n".join(tree(outcome)), "\n".join(tree(outcome, everything=True))
    assert "+-         4 CertificateAuthority (cluster-ca … front-proxy-ca) [diff: ~generation]" in short
    assert " ~         38 Secret (" in short
    assert len(tree(outcome, everything=True)) > 58
    assert "BEGIN" not in whole
    assert "custom_data" not in whole or "=>" not in whole.partition("custom_data")[2].partition("\n")[0]


def test_every_value_and_file_that_differs_is_shown_on_demand() -> None:
    outcome = updated(planned(pool(CPU, image="cpu@2026.10.0")), standing())
    lines = change_lines(found_changes(outcome), outcome.before, outcome.after, everything=True)
    assert [line.strip() for line in lines[5:7]] == [
        "virtualMachineProfile.osProfile.customData: its changed files are listed below",
        "virtualMachineProfile.storageProfile.imageReference.id: …/2026.11.0 => …/2026.10.0",
    ]
    files = "\n".join(lines[7:])
    assert files.startswith("files in customData that change:\n  /etc/systemd/system/kubelet.service (+1 -1)")
    page = Path(__file__).parents[3] / "docs" / "everyday-commands.md"
    assert f"```text\n{files}\n```" in page.read_text(), "the page shows another output than the command"


def test_a_machine_that_was_deleted_by_hand_is_missing_and_created_again() -> None:
    cloud = standing()
    (machine,) = (one for one in cloud.resources.values() if one.id.name == "dev-etcd-1" and one.id.type.endswith("/virtualMachines"))
    assert cloud.handle(Request("DELETE", parse(machine.id.text), principal="an operator")).status < 300
    while (due := cloud.events.next_at()) is not None and cloud.find(machine.id.text) is not None:
        cloud.step(due)
    outcome = updated(planned(), cloud)
    assert tree(outcome)[-1] == " +         VirtualMachine dev-etcd-1 (missing in Azure; would be created again)"
    done = tree_lines(found_changes(outcome), outcome.before, outcome.after, everything=True, missing=CREATED_AGAIN[False])
    assert done[-1] == " +         VirtualMachine dev-etcd-1 (missing in Azure; created again)"
    assert count_line(found_changes(outcome), outcome.after, DONE) == "+ 1 created (1 of them missing in Azure), 244 unchanged"
    assert found_changes(updated(planned(), cloud)) == []


def test_a_destroyed_region_reads_from_the_top_down() -> None:
    plan = planned()
    outcome = tear_down(plan, standing(), Approvals(frozenset({"all"})), lambda *_: None)
    lines = tree(outcome)
    assert len(lines) <= 34
    assert lines[:4] == ["   stack dev", " -   RegionClusters dev", " -     InsideHub inside-hub", " -     Cluster dev"]
    assert count_line(found_changes(outcome), outcome.after, DONE) == "- 245 deleted, 0 unchanged"
    assert {change.op for change in found_changes(outcome)} == {ChangeType.DELETE}


def test_the_largest_region_comes_up_whole_and_fits_a_screen() -> None:
    plan = load_plan("southcentralus")
    outcome = updated(plan, new_region_cloud(plan, Scenario(seed=1)))
    assert outcome.complete
    assert list(check_machines(plan, outcome.cloud)) == []
    timeline = timeline_of(outcome)
    assert (timeline.running, timeline.machines, timeline.outdated_count) == (22_515, 22_515, 0)
    assert timeline.addresses == sum(pool.private_addresses for cluster in plan.clusters for pool in cluster.pools) + 15
    assert {row.name for row in timeline.rows} == {"southcentralus-base", "research-a", "research-b", "frontier"}
    lines = tree(outcome)
    assert len(lines) <= 34
    assert sum("(instances: 0 -> 7,5" in line for line in lines) == 3
