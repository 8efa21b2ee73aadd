"""Selection of a cluster's objects from a program's graph, and their form on the wire."""

from __future__ import annotations

import json

import pytest
from rehearsed_regions import rehearsed

from components.kubernetes_objects import AWAITED, SKIP_AWAIT
from components.manifests.objects import cluster_objects
from lifecycle.kubernetes_api.connection import ApiResponse
from rehearsal.local_cluster.objects.program_objects import objects_of
from rehearsal.local_cluster.objects.results import ObjectKey, conflicts_of, failures_of, key_of

KEY = ObjectKey("ConfigMap", "default", "one", "v1")


@pytest.mark.parametrize("number", [0, 1])
def test_a_cluster_gets_its_own_objects_and_no_other_clusters(number: int) -> None:
    region = rehearsed("pair")
    cluster = region.plan.clusters[number]
    items = objects_of(region.clusters, cluster)
    assert [key_of(item) for item in items] == sorted(
        map(key_of, cluster_objects(region.plan, cluster)), key=[key_of(item) for item in items].index
    )


def test_the_providers_annotations_go_with_the_objects_as_the_provider_sends_them() -> None:
    region = rehearsed("dev")
    for item in objects_of(region.clusters, region.plan.clusters[0]):
        assert (SKIP_AWAIT.items() <= item["metadata"].get("annotations", {}).items()) is (item["kind"] in AWAITED)
        # Plain JSON types through and through.
        assert json.loads(json.dumps(item)) == item


def test_a_refusal_without_named_fields_still_says_what_to_do() -> None:
    expected = {404: "declare", 403: "have", 409: "apply", 500: "look"}
    for status, remedy in expected.items():
        answer = ApiResponse(status, {"message": "the server's reason"}, ())
        (failed,) = failures_of(KEY, answer)
        assert (failed.path, failed.reason, failed.remedy.split()[0]) == ("", "the server's reason", remedy)
        assert conflicts_of(KEY, answer) == ()
