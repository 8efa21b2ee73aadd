"""The whole graphs of two small regions are pinned: what a change does to them is read in review as a diff.

dev is shipped, and pinned whole. pair has one cluster peered and with an ingress, and one with InfiniBand behind a private link; only its
differences from dev are pinned. Kubernetes objects are pinned in the goldens of the manifests, and boot files in theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pinned_graph import Part, is_manifest, pinned_azure, pinned_differences
from rehearsed_regions import rehearsed

from components.kubernetes_objects import logical_name, unawaited
from components.manifests.objects import cluster_objects
from rehearsal.program.graph import reveal
from rehearsal.rehearse import rehearse

FAR_BLOCK = {r"\b10\.56\.": "10.52.", r"\b10\.57\.": "10.53.", r"\b10\.58\.": "10.54.", r"\b10\.59\.": "10.55."}
"""The addresses of pair's second cluster, and those of dev's only one; the first cluster has dev's."""
STACK = Part("", "", {r"\bpair\b": "dev"})
CLUSTERS = {
    "stack": STACK,
    "near": Part("pair-near-", "dev-dev-", {r"\bpair-near\b": "dev-dev", r"\bpair\b": "dev", r"\bnear\b": "dev"}),
    "far": Part("pair-far-", "dev-dev-", {r"\bpair-far\b": "dev-dev", r"\bpair\b": "dev", r"\bfar\b": "dev", **FAR_BLOCK}),
}


@pytest.mark.parametrize("stack", ["base", "clusters"])
def test_the_whole_graph_of_dev_is_pinned(stack: str, golden: Callable[[str, str], None]) -> None:
    golden(f"rehearsal/dev-{stack}.yaml", pinned_azure(getattr(rehearsed("dev"), stack)))


def test_what_other_kinds_of_clusters_have_beyond_dev_is_pinned(golden: Callable[[str, str], None]) -> None:
    golden("rehearsal/pair-base.yaml", pinned_differences(rehearsed("pair").base, rehearsed("dev").base, {"stack": STACK}))
    golden("rehearsal/pair-clusters.yaml", pinned_differences(rehearsed("pair").clusters, rehearsed("dev").clusters, CLUSTERS))


@pytest.mark.parametrize("region", ["dev", "pair"])
def test_the_program_registers_the_objects_of_the_manifests_and_no_others(region: str) -> None:
    plan, graph = rehearsed(region).plan, rehearsed(region).clusters
    registered = {item.name: reveal(item.inputs) for item in graph if is_manifest(item)}
    planned = {
        f"{region}-{cluster.name}-objects-{logical_name(item)}": unawaited(item)
        for cluster in plan.clusters
        for item in cluster_objects(plan, cluster)
    }
    assert registered == planned


def test_a_rehearsal_leaves_a_report_and_both_graphs_without_secrets(tmp_path: Path) -> None:
    done = rehearse("dev", tmp_path, lambda _phase, _count: None)
    folder = done.report.parent
    assert sorted(path.name for path in folder.iterdir()) == ["base.json", "clusters.json", "report.html"]
    for path in folder.iterdir():
        assert "PRIVATE KEY" not in path.read_text()
    assert done.findings == ()
