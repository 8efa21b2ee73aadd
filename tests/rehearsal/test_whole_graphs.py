"""The whole graphs of two small regions are pinned: what a change does to them is read in review as a diff.

dev is shipped; pair has one cluster peered and with an ingress, and one with InfiniBand behind a private link.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rehearsed_regions import rehearsed

from rehearsal.graph import Graph, mask
from rehearsal.region import rehearse

KEYS = re.compile(r"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----\n?", re.DOTALL)
"""Certificates and keys are real, so they differ from run to run, as join tokens do."""
TOKEN_NAME = re.compile(r"^bootstrap-token-[a-z0-9]{6}$")


def lasting(value: Any, key: str = "") -> Any:
    """A value without what differs from run to run; boot files have goldens of their own."""
    if isinstance(value, dict):
        return {name: lasting(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [lasting(item, key) for item in value]
    if key in ("customData", "custom_data_sha256"):
        return "[boot files]"
    if key == "token-id":
        return "[token]"
    if isinstance(value, str):
        return TOKEN_NAME.sub("bootstrap-token-[token]", KEYS.sub("[PEM]", value))
    return value


def pinned(graph: Graph) -> str:
    """Every resource's type, name, parent, dependencies, options and inputs, in the order of names."""
    resources = {
        f"{item.type.rpartition(':')[2]} {item.name}": {
            "type": item.type,
            "parent": item.parent and item.parent.rpartition("::")[2],
            "dependencies": [urn.rpartition("::")[2] for urn in item.dependencies],
            "protect": item.protect,
            "ignoreChanges": list(item.ignore_changes),
            "inputs": lasting(mask(item.inputs)),
        }
        for item in graph
    }
    return json.dumps(resources, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("stack", ["base", "clusters"])
@pytest.mark.parametrize("region", ["dev", "pair"])
def test_the_whole_graph_of_a_small_region_is_pinned(region: str, stack: str, golden: Callable[[str, str], None]) -> None:
    golden(f"rehearsal/{region}-{stack}.json", pinned(getattr(rehearsed(region), stack)))


def test_a_rehearsal_leaves_a_report_and_both_graphs_without_secrets(tmp_path: Path) -> None:
    done = rehearse("dev", tmp_path, lambda _phase, _count: None)
    folder = done.report.parent
    assert sorted(path.name for path in folder.iterdir()) == ["base.json", "clusters.json", "report.html"]
    for path in folder.iterdir():
        assert "PRIVATE KEY" not in path.read_text()
    assert done.findings == ()
