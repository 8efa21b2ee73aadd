"""The whole graphs of two small regions are pinned: what a change does to them is read in review as a diff.

dev is shipped; pair has one cluster peered and with an ingress, and one with InfiniBand behind a private link.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pinned_graph import pinned
from rehearsed_regions import rehearsed

from rehearsal.rehearse import rehearse


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
