"""Objects applied to a real API server: made, left, changed, refused, taken away, and through what may pass."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from api_client import Api, eventually

from components.manifests.owned import FLEET_NAMESPACE, SYSTEM_NAMESPACE, frozen_config, owned
from components.plan.access import TEAM_LABEL
from rehearsal.local_cluster.objects.apply import apply
from rehearsal.local_cluster.objects.kinds import PRUNED_KINDS
from rehearsal.local_cluster.objects.results import KubernetesObject, ObjectKey, key_of

Objects = tuple[KubernetesObject, ...]
SPACE = f"/api/v1/namespaces/{FLEET_NAMESPACE}"
APPLY = "application/apply-patch+yaml"


def _quiet(_: str) -> None:
    """Print nothing."""


def _settings(name: str, **data: str) -> dict[str, Any]:
    return owned("v1", "ConfigMap", name, "test", FLEET_NAMESPACE) | {"data": data}


def _key(name: str, kind: str = "ConfigMap", namespace: str = FLEET_NAMESPACE) -> ObjectKey:
    return ObjectKey(kind, namespace, name, PRUNED_KINDS[kind])


@pytest.fixture
def again(kubeconfig: Path, declared: Objects, api: Api) -> Iterator[Callable[..., Any]]:  # noqa: ARG001 (applies first)
    """Applies the program's objects and more, and in the end the program's alone."""

    def run(*more: KubernetesObject, **how: Any) -> Any:
        return apply(kubeconfig, (*declared, *more), _quiet, **how)

    yield run
    eventually(lambda: run(force=True, prune_teams=True).complete, "the program's own objects again")


def _versions(api: Api, objects: Objects) -> dict[ObjectKey, str]:
    found = {}
    for kind, version in PRUNED_KINDS.items():
        root = "/api/v1" if version == "v1" else f"/apis/{version}"
        plural = {
            "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
            "PriorityClass": "priorityclasses",
            "RuntimeClass": "runtimeclasses",
        }
        for item in api.request("GET", f"{root}/{plural.get(kind, kind.lower() + 's')}").body["items"]:
            metadata = item["metadata"]
            found[ObjectKey(kind, metadata.get("namespace", ""), metadata["name"], version)] = metadata["resourceVersion"]
    return {key: found[key] for key in map(key_of, objects) if key.kind not in ("Deployment", "DaemonSet", "PodDisruptionBudget")}


def test_the_programs_objects_are_applied_without_a_warning_and_again_change_nothing(
    again: Callable[..., Any], api: Api, declared: Objects
) -> None:
    assert {"Namespace", "DaemonSet", "FlowSchema", "ValidatingAdmissionPolicy"} <= {item["kind"] for item in declared}
    # Until what earlier tests left has gone.
    eventually(lambda: again(prune_teams=True).retained == (), "nothing of others is left")
    before = _versions(api, declared)
    applied = again()
    assert applied.unchanged == tuple(key_of(item) for item in sorted(declared, key=lambda item: applied.unchanged.index(key_of(item))))
    assert (applied.created, applied.changed, applied.pruned, applied.conflicts, applied.failed, applied.warnings) == ((),) * 6
    assert _versions(api, declared) == before
    # Discovery, a listing per kind, and each object once.
    assert applied.requests == 2 + len(PRUNED_KINDS) + len(declared)


def test_every_kind_that_the_program_makes_is_looked_through_for_what_it_no_longer_makes(declared: Objects) -> None:
    assert {(item["kind"], item["apiVersion"]) for item in declared} <= set(PRUNED_KINDS.items())


def test_a_new_object_is_created_a_changed_one_changed_and_one_that_is_dropped_taken_away(again: Callable[..., Any], api: Api) -> None:
    assert again(_settings("plain", one="1", two="2")).created == (_key("plain"),)
    # Within the second in which it was made, so that the server's record of when shows no difference.
    assert again(_settings("plain", one="1", two="3")).changed == (_key("plain"),)
    assert again(_settings("plain", one="1")).changed == (_key("plain"),)
    assert api.request("GET", f"{SPACE}/configmaps/plain").body["data"] == {"one": "1"}
    assert again().pruned == (_key("plain"),)
    assert api.request("GET", f"{SPACE}/configmaps/plain").status == 404


def test_what_a_controller_writes_beside_our_fields_is_no_change_of_ours(again: Callable[..., Any], api: Api) -> None:
    again(_settings("shared", ours="1"))
    for number in range(2):
        change = {"data": {"theirs": str(number)}, "metadata": {"annotations": {"controller": str(number)}}}
        assert api.request("PATCH", f"{SPACE}/configmaps/shared", change, kind="application/merge-patch+json").status == 200
        assert _key("shared") in again(_settings("shared", ours="1")).unchanged


def test_a_field_that_somebody_else_owns_is_told_with_its_owner_and_left(again: Callable[..., Any], api: Api) -> None:
    again(_settings("contested", replicas="2"))
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "contested"}, "data": {"replicas": "9"}}
    assert api.request("PATCH", f"{SPACE}/configmaps/contested?fieldManager=night-shift&force=true", theirs, kind=APPLY).status == 200
    applied = again(_settings("contested", replicas="2"), _settings("beside", a="b"))
    (conflict,) = applied.conflicts
    assert (conflict.key, conflict.field, conflict.manager) == (_key("contested"), "data.replicas", "night-shift")
    assert "night-shift" in conflict.remedy
    assert applied.created == (_key("beside"),)
    assert not applied.complete
    assert api.request("GET", f"{SPACE}/configmaps/contested").body["data"] == {"replicas": "9"}
    assert again(_settings("contested", replicas="2"), force=True).changed == (_key("contested"),)
    assert api.request("GET", f"{SPACE}/configmaps/contested").body["data"] == {"replicas": "2"}


def test_an_object_that_is_refused_is_told_with_path_and_reason_and_the_others_go_on(
    again: Callable[..., Any], declared: Objects, api: Api
) -> None:
    again(_settings("earlier", a="b"))
    wrong = copy.deepcopy(next(item for item in declared if item["kind"] == "DaemonSet"))
    wrong["metadata"]["name"] = "wrong"
    unknown = copy.deepcopy(wrong)
    unknown["spec"]["template"]["spec"]["tolerationz"] = []
    many = copy.deepcopy(wrong)
    many["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 70_000}]
    many["metadata"]["name"] = "many"
    nowhere = _settings("nowhere", a="b")
    nowhere["metadata"]["namespace"] = "no-such-namespace"
    applied = again(unknown, many, nowhere, _settings("good", a="b"))
    failed = {(failure.key.name, failure.path): failure.reason for failure in applied.failed}
    assert set(failed) == {
        ("wrong", "spec.template.spec.tolerationz"),
        ("many", "spec.template.spec.containers[0].ports[0].containerPort"),
        ("nowhere", ""),
    }
    assert "between 1 and 65535" in failed["many", "spec.template.spec.containers[0].ports[0].containerPort"]
    assert applied.created == (_key("good"),)
    # What could not be changed may still need it.
    assert [key.name for key, _ in applied.retained] == ["earlier"]
    assert api.request("GET", f"{SPACE}/configmaps/earlier").status == 200


def test_only_what_we_applied_and_no_controller_made_is_taken_away(again: Callable[..., Any], api: Api) -> None:
    copied = _settings("copied", a="b")
    api.make(f"{SPACE}/configmaps", copied)
    again(_settings("owner", a="b"), _settings("made", a="b"), owned("v1", "ServiceAccount", "idle", "test", FLEET_NAMESPACE))
    uid = api.request("GET", f"{SPACE}/configmaps/owner").body["metadata"]["uid"]
    reference = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]
    api.request("PATCH", f"{SPACE}/configmaps/made", {"metadata": {"ownerReferences": reference}}, kind="application/merge-patch+json")
    assert again(_settings("owner", a="b")).pruned == (_key("idle", "ServiceAccount"),)
    for name in ("copied", "made", "owner"):
        assert api.request("GET", f"{SPACE}/configmaps/{name}").status == 200, name
    api.remove(f"{SPACE}/configmaps/copied")


def test_a_teams_namespace_and_what_is_in_it_go_only_when_that_is_asked_for(again: Callable[..., Any], api: Api) -> None:
    space = owned("v1", "Namespace", "dropped-team", "tenancy", labels={TEAM_LABEL: "dropped-team"})
    held = _settings("inside", a="b")
    held["metadata"]["namespace"] = "dropped-team"
    assert len(again(space, held).created) == 2
    applied = again()
    assert applied.pruned == ()
    assert {str(key) for key, _ in applied.retained} == {"Namespace dropped-team", "ConfigMap dropped-team/inside"}
    assert all("a team's" in reason for _, reason in applied.retained)
    assert applied.complete
    assert {str(key) for key in again(prune_teams=True).pruned} == {"Namespace dropped-team", "ConfigMap dropped-team/inside"}
    eventually(lambda: api.request("GET", "/api/v1/namespaces/dropped-team").status == 404, "the namespace is gone")


def test_a_config_map_stays_until_every_pod_of_its_namespace_is_of_the_newest_revision(again: Callable[..., Any], api: Api) -> None:
    old = frozen_config("settings", "test", FLEET_NAMESPACE, {"key": "old"})
    new = frozen_config("settings", "test", FLEET_NAMESPACE, {"key": "new"})
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    labels = {"app": "rolled"}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    workload = owned("apps/v1", "Deployment", "rolled", "test", FLEET_NAMESPACE) | {"spec": spec}
    again(old, workload)
    eventually(
        lambda: (
            api.request("GET", f"/apis/apps/v1/namespaces/{FLEET_NAMESPACE}/deployments/rolled").body["status"].get("updatedReplicas") == 1
        ),
        "the deployment's pod is made",
    )
    changed = copy.deepcopy(workload)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.k8s.io/pause:3.9"
    # The pods of both revisions wait for a node that is not there: the rollout cannot finish.
    applied = again(new, changed)
    assert [(key.name, reason) for key, reason in applied.retained] == [
        (old["metadata"]["name"], "pods of an unfinished rollout may still mount it")
    ]
    assert api.request("GET", f"{SPACE}/configmaps/{old['metadata']['name']}").status == 200
    again(new)
    eventually(lambda: again(new).retained == (), "nothing rolls any more")
    assert api.request("GET", f"{SPACE}/configmaps/{old['metadata']['name']}").status == 404


def test_a_definition_and_objects_of_its_kind_are_applied_in_one_run(again: Callable[..., Any], api: Api) -> None:
    schema = {
        "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rings.test.gpufleet.io"},
        "spec": {
            "group": "test.gpufleet.io",
            "names": {"plural": "rings", "kind": "Ring"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    api.remove("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rings.test.gpufleet.io")
    ring = {"apiVersion": "test.gpufleet.io/v1", "kind": "Ring", "metadata": {"name": "one"}, "spec": {"size": 8}}
    applied = again(ring, definition)
    assert applied.failed == ()
    assert {key.kind for key in applied.created} == {"CustomResourceDefinition", "Ring"}
    assert again(ring, definition).changed == ()
    # No kind of the program's: what it does not know how to make it does not take away either.
    assert again().pruned == ()
    api.remove("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rings.test.gpufleet.io")


def test_a_kind_that_is_never_served_is_refused_after_some_patience_and_the_others_go_on(again: Callable[..., Any]) -> None:
    stranger = {"apiVersion": "nobody.example/v1", "kind": "Stranger", "metadata": {"name": "one"}}
    applied = again(stranger, _settings("beside", a="b"), patience=1.0)
    assert [(failure.key.kind, failure.reason) for failure in applied.failed] == [("Stranger", "nobody.example/v1 is not served")]
    assert applied.created == (_key("beside"),)


def test_a_system_namespace_that_is_not_ours_is_used_and_never_taken_away(again: Callable[..., Any], api: Api) -> None:
    assert again().pruned == ()
    assert api.request("GET", f"/api/v1/namespaces/{SYSTEM_NAMESPACE}").body["metadata"]["labels"] == {
        "kubernetes.io/metadata.name": "kube-system"
    }
