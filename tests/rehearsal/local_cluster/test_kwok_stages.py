"""Configuration of each kwok: no stage for nodes that register Ready; with leases, nodes and pods have a kwok each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import yaml

from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.joining.kwok import FAST, NEVER, STAGES, KwokMode, configurations

KINDS = ("Node", "Pod")
WITH_LEASES = KwokMode(STAGES, lease_seconds=80, report_seconds=900)


def stages(text: str, kind: str) -> dict[str, dict[str, Any]]:
    """Specifications of the stages of a kind in a configuration, by name."""
    found = [one for one in yaml.safe_load_all(text) if one["kind"] == "Stage" and one["spec"]["resourceRef"]["kind"] == kind]
    return {one["metadata"]["name"]: one["spec"] for one in found}


def played(text: str) -> set[str]:
    """Kinds with a stage that selects something."""
    return {kind for kind in KINDS for spec in stages(text, kind).values() if spec["selector"] != NEVER}


def test_of_nodes_that_register_ready_kwok_reads_labels_alone(binaries: Binaries) -> None:
    ready = stages(configurations(binaries, FAST)["kwok"], "Node")
    assert set(ready) == {"node-initialize"}
    assert ready["node-initialize"]["selector"] == NEVER


def test_of_all_other_nodes_kwok_looks_for_the_condition_and_pods_are_kept_alike(binaries: Binaries) -> None:
    text = configurations(binaries, replace(FAST, registered_ready=False))["kwok"]
    (selector,) = (spec["selector"] for spec in stages(text, "Node").values())
    assert "conditions" in selector["matchExpressions"][0]["key"]
    assert stages(text, "Pod") == stages(configurations(binaries, FAST)["kwok"], "Pod")


def test_with_leases_each_stage_is_played_by_one_kwok_and_the_leases_are_those_of_nodes_alone(binaries: Binaries) -> None:
    by_name = configurations(binaries, WITH_LEASES)
    nodes, pods = by_name["kwok-nodes"], by_name["kwok-pods"]
    assert (played(nodes), played(pods)) == ({"Node"}, {"Pod"})
    assert [set(stages(nodes, kind)) for kind in KINDS] == [set(stages(pods, kind)) for kind in KINDS]
    assert {name: next(yaml.safe_load_all(text))["options"]["nodeLeaseDurationSeconds"] for name, text in by_name.items()} == {
        "kwok-nodes": 80,
        "kwok-pods": 0,
    }
