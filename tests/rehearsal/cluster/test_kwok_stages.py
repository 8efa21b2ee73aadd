"""What kwok is told to look at: nodes that register Ready have no stage, all others have kwok's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import yaml

from rehearsal.cluster.joining.kwok import FAST, NEVER, configuration
from rehearsal.engines.find import Engines


def stages(text: str, kind: str) -> dict[str, dict[str, Any]]:
    """Specifications of the stages of a kind in a configuration, by name."""
    found = [one for one in yaml.safe_load_all(text) if one["kind"] == "Stage" and one["spec"]["resourceRef"]["kind"] == kind]
    return {one["metadata"]["name"]: one["spec"] for one in found}


def test_of_nodes_that_register_ready_kwok_reads_labels_alone(engines: Engines) -> None:
    ready = stages(configuration(engines, FAST), "Node")
    assert set(ready) == {"node-initialize"}
    assert ready["node-initialize"]["selector"] == NEVER


def test_of_all_other_nodes_kwok_looks_for_the_condition_and_pods_are_kept_alike(engines: Engines) -> None:
    text = configuration(engines, replace(FAST, registered_ready=False))
    (selector,) = (spec["selector"] for spec in stages(text, "Node").values())
    assert "conditions" in selector["matchExpressions"][0]["key"]
    assert stages(text, "Pod") == stages(configuration(engines, FAST), "Pod")
