"""Results of the engine's event streams, which CLI 3.260 wrote for dev on the embedded Azure.

The streams are shortened: they lack debug lines and most unchanged resources with their properties.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rehearsal.pulumi_cli import change_tree, messages
from rehearsal.pulumi_cli.events import OperationTimeline
from rehearsal.pulumi_cli.region_commands import RegionResult
from stacks.load import load_plan

EVENTS = Path(__file__).parent / "events"
STREAMS = {
    "preview-with-another-image": "preview",
    "up-with-another-image": "up",
    "refresh-after-changes-by-hand": "refresh",
    "up-with-too-few-vcpus": "up",
}
SET = "urn:pulumi:dev::gpufleet::azure-native:compute:VirtualMachineScaleSet::cpu"


def timeline_of(name: str, code: int = 0) -> tuple[OperationTimeline, list[str]]:
    """The clusters' stack of a recorded command, and what was said meanwhile."""
    timeline, said = OperationTimeline("dev", STREAMS[name]), []
    for line in (EVENTS / f"{name}.jsonl").read_text().splitlines():
        if "preludeEvent" in line:
            timeline, said = OperationTimeline("dev", STREAMS[name]), []
        if sentence := timeline.add_event(line):
            said.append(sentence)
    timeline.finish(code, "")
    return timeline, said


def event(kind: str, urn: str, op: str, **more: object) -> str:
    state = {"urn": urn, "type": urn.rpartition("::")[0].rpartition("::")[2], "custom": True, "parent": "", "inputs": {}}
    return json.dumps({kind: {"metadata": {"op": op, "urn": urn, "type": state["type"], "old": state, "new": state, **more}}})


def test_a_preview_shows_what_would_change_by_its_values() -> None:
    timeline, _ = timeline_of("preview-with-another-image")
    lines = change_tree.tree_of_changes(timeline, everything=True)
    assert lines[:4] == ["   stack dev", "     RegionClusters dev", "       Cluster dev", "         NodePool pool-cpu"]
    assert lines[4].startswith(" ~         VirtualMachineScaleSet dev-cpu-000 [diff: ~virtualMachineProfile.osProfile.customData, ~")
    assert lines[5:] == [
        "               virtualMachineProfile.osProfile.customData: its changed files are listed below",
        "               virtualMachineProfile.storageProfile.imageReference.id: …/2026.11.0 => …/2026.10.0",
        "files in customData that change:",
        "  /etc/systemd/system/kubelet.service (+1 -1) in VirtualMachineScaleSet dev-cpu-000",
        "    @@ line 2",
        "      ExecStart=/usr/local/bin/kubelet \\",
        "    -   --node-labels=gpufleet.io/pool=cpu,gpufleet.io/image=cpu_2026.11.0",
        "    +   --node-labels=gpufleet.io/pool=cpu,gpufleet.io/image=cpu_2026.10.0",
    ]
    assert change_tree.count_line(timeline) == "~ 1 to update, 223 unchanged"


def test_an_update_counts_as_pulumi_counts() -> None:
    timeline, said = timeline_of("up-with-another-image")
    assert (timeline.complete, said) == (True, [])
    assert change_tree.count_line(timeline) == "~ 1 updated, 223 unchanged"


def test_a_refresh_tells_what_was_changed_and_what_is_gone() -> None:
    timeline, _ = timeline_of("refresh-after-changes-by-hand")
    assert change_tree.tree_of_changes(timeline, everything=True)[-3:] == [
        " -         PrivateRecordSet events-2 (missing in Azure; up creates it again)",
        ' ~         PublicIPPrefix dev-nat-control-ips [diff: ~tags["by-hand"]]',
        '               tags["by-hand"]: (absent) => yes',
    ]
    assert change_tree.count_line(timeline) == "~ 1 changed by hand, - 1 gone, 223 unchanged"


def test_a_resource_of_which_several_events_tell_counts_once() -> None:
    timeline = OperationTimeline("dev", "preview")
    for _ in range(3):
        timeline.add_event(event("resOutputsEvent", SET, "update"))
    assert timeline.counts() == {"update": 1}


@pytest.mark.parametrize(
    "order", [("create-replacement", "replace", "delete-replaced"), ("delete-replaced", "replace", "create-replacement")]
)
def test_the_steps_of_a_replacement_are_one_replacement(order: tuple[str, ...]) -> None:
    timeline = OperationTimeline("dev", "up")
    for op in order:
        timeline.add_event(event("resOutputsEvent", SET, op, keys=["zones"], detailedDiff={"zones[0]": {"diffKind": "update-replace"}}))
    assert timeline.counts() == {"replace": 1}
    assert change_tree.tree_of_changes(timeline, everything=False)[-1] == (
        "+-   VirtualMachineScaleSet cpu [diff: ~zones[0] (forces replacement)]"
    )


def test_what_has_begun_and_not_ended_is_under_way() -> None:
    timeline = OperationTimeline("dev", "up")
    timeline.add_event(event("resourcePreEvent", SET, "create"))
    assert messages.progress(timeline) == "up dev: under way VirtualMachineScaleSet cpu"
    timeline.add_event(event("resOutputsEvent", SET, "create"))
    assert messages.progress(timeline) == "up dev: 1 created"


def test_half_a_line_of_a_killed_cli_is_passed_over() -> None:
    assert OperationTimeline("dev", "up").add_event('{"sequence":1,"resourcePre') is None


def test_a_cli_that_says_why_it_failed_in_no_event_is_believed_by_its_output() -> None:
    timeline = OperationTimeline("dev", "up")
    timeline.finish(255, "error: \x1b[31mpassphrase must be set\x1b[0m\n")
    assert timeline.failures == {"": ["error: passphrase must be set"]}
    assert not timeline.complete


def test_a_message_is_told_once_and_with_names_in_place_of_urns_and_ids() -> None:
    timeline = OperationTimeline("dev", "up")
    message = (
        f'<{{%reset%}}>resource "{SET}" (/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/x) is bad'
    )
    line = json.dumps({"diagnosticEvent": {"severity": "error", "urn": SET, "message": message}})
    assert timeline.add_event(line) == 'failed: VirtualMachineScaleSet cpu: resource "cpu" (virtualMachineScaleSets/x) is bad'
    assert timeline.add_event(line) is None


@pytest.mark.parametrize(
    ("path", "value"), [("sku.capacity", 10), ("rules[1].name", "b"), ('tags["a.b"]', "c"), ("rules[7].name", None), ("sku.none.at", None)]
)
def test_a_value_is_found_at_its_path(path: str, value: object) -> None:
    assert change_tree.value_at({"sku": {"capacity": 10}, "rules": [{"name": "a"}, {"name": "b"}], "tags": {"a.b": "c"}}, path) == value


def test_a_failed_creation_is_told_when_it_happens_and_at_the_end_with_what_to_do() -> None:
    timeline, said = timeline_of("up-with-too-few-vcpus", code=1)
    assert len(said) == 1
    assert said[0].startswith("failed: VirtualMachineScaleSet dev-dev-pool-gpu-000: ")
    assert "QuotaExceeded" in said[0]
    plan = load_plan("dev")
    lines = messages.conclusion(RegionResult(plan, "up", (timeline,)), "gpufleet up dev --engine", everything=False)
    assert "1 failed" in lines[lines.index("") - 1]
    assert any("What to do: Azure grants too few vCPUs: request the limit" in line for line in lines)
    assert lines[-1] == "Completed changes remain. After the correction, run: gpufleet up dev --engine"


def test_what_an_interrupt_cut_off_is_named_in_one_sentence() -> None:
    timeline = OperationTimeline("dev-base", "up")
    for number in range(5):
        message = {"severity": "error", "urn": f"{SET}-{number}", "message": "creating it was cancelled"}
        timeline.add_event(json.dumps({"diagnosticEvent": message}))
    timeline.finish(1, "")
    lines = messages.conclusion(
        RegionResult(load_plan("dev"), "up", (timeline,), "dev was not tried, because it was interrupted", interrupted=True),
        "gpufleet up",
        everything=False,
    )
    assert lines[-4:-1] == ["", "Stack dev was not tried, because it was interrupted.", ""]
    assert lines[-1].startswith("Interrupted: 5 operations cut off (VirtualMachineScaleSet cpu-0, VirtualMachineScaleSet cpu-1, ")
    assert lines[-1].endswith(" and 2 more), which Azure may still finish. Completed operations are in the state. To continue: gpufleet up")


def test_three_of_many_like_failures_are_told_and_the_rest_counted() -> None:
    timeline = OperationTimeline("dev", "up")
    for number in range(20):
        message = {"severity": "error", "urn": f"{SET}-{number}", "message": "AllocationFailed: no room"}
        timeline.add_event(json.dumps({"diagnosticEvent": message}))
    timeline.finish(1, "")
    (paragraph,) = (
        line
        for line in messages.conclusion(RegionResult(load_plan("dev"), "up", (timeline,)), "", everything=False)
        if "What to do" in line
    )
    assert paragraph.count("no room") == 3
    assert "and 17 more of the same kind" in paragraph
