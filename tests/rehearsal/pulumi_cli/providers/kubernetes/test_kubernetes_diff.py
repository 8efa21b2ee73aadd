"""Changes of an update to an object, from its state alone."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.program.graph import Secret, reveal
from rehearsal.program.pulumi_values import UNKNOWN, Json
from rehearsal.pulumi_cli.providers.kubernetes.diff import declared_part, difference
from rehearsal.pulumi_cli.providers.kubernetes.input_check import stored_secret
from rehearsal.pulumi_cli.providers.kubernetes.state import outputs_of, state_of
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind, kind_of
from rehearsal.pulumi_cli.providers.provider_interface import ChangeKind, DiffResult

SERVER_ADDS = {"uid": "1", "resourceVersion": "2", "creationTimestamp": "3", "generation": 1, "managedFields": [{"manager": "a"}]}
DEPLOYMENT: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "one", "namespace": "a"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "one"}},
        "template": {
            "metadata": {"labels": {"app": "one"}},
            "spec": {"containers": [{"name": "main", "image": "one:1", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}}]},
        },
    },
}


def live_of(inputs: Json, **more: Any) -> Json:
    """Return the object that a server would create from inputs, with defaults."""
    live: Json = deepcopy(inputs)
    live["metadata"] = {**live["metadata"], **SERVER_ADDS}
    live["status"] = {"observedGeneration": 1}
    return {**live, **more}


def diff(inputs: Json, new: Json, live: Json | None = None, mutable: frozenset[str] = frozenset()) -> DiffResult:
    """Compare an object that was created from inputs with new inputs."""
    outputs = outputs_of(live if live is not None else live_of(inputs), inputs, "manager")
    kind = Kind(inputs["apiVersion"], inputs["kind"])
    return difference(state_of(outputs, inputs), new, kind, mutable, namespaced=kind.namespaced)


def shown(found: DiffResult) -> dict[str, str]:
    """Return kinds of changes by path, with a mark where an object is replaced."""
    return {path: f"{one.kind.name}{' anew' if one.replace else ''}" for path, one in found.changed.items()}


def changed(change: dict[tuple[str | int, ...], Any], base: Json = DEPLOYMENT) -> Json:
    """Return an object with values set, or removed where they are None."""
    found: Any = deepcopy(base)
    for path, value in change.items():
        at = found
        for part in path[:-1]:
            at = at[part]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = value
    return dict(found)


def test_what_the_server_adds_is_no_change() -> None:
    live = live_of(DEPLOYMENT)
    live["spec"] |= {"strategy": {"type": "RollingUpdate"}}
    live["spec"]["template"]["spec"] |= {"restartPolicy": "Always"}
    live["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Always"
    assert diff(DEPLOYMENT, DEPLOYMENT, live).changed == {}


def test_amounts_that_the_server_writes_otherwise_are_no_change() -> None:
    live = live_of(DEPLOYMENT)
    live["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "1", "memory": "1Gi"}
    assert diff(DEPLOYMENT, DEPLOYMENT, live).changed == {}
    live["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "2", "memory": "1Gi"}
    assert list(diff(DEPLOYMENT, DEPLOYMENT, live).changed) == ["spec.template.spec.containers[0].resources.limits.cpu"]


def test_empty_values_that_the_server_leaves_out_are_no_change() -> None:
    inputs = changed({("spec", "paused"): False, ("metadata", "labels"): {}, ("metadata", "annotations"): {}})
    assert diff(inputs, inputs, live_of(DEPLOYMENT)).changed == {}
    # Where the server keeps another value, an empty one is a change.
    live = live_of(DEPLOYMENT)
    without = changed({("spec", "replicas"): None})
    assert shown(diff(without, changed({("spec", "replicas"): 0}), live)) == {"spec.replicas": "ADD"}


CHANGES: dict[str, tuple[dict[tuple[str | int, ...], Any], dict[str, str], bool]] = {
    "a value": ({("spec", "replicas"): 3}, {"spec.replicas": "UPDATE"}, False),
    "an added value": ({("spec", "paused"): True}, {"spec.paused": "ADD"}, False),
    "a removed value": ({("spec", "replicas"): None}, {"spec.replicas": "DELETE"}, False),
    "one of a list": (
        {("spec", "template", "spec", "containers", 0, "image"): "one:2"},
        {"spec.template.spec.containers[0].image": "UPDATE"},
        False,
    ),
    "a key with dots": ({("metadata", "labels"): {"a.b/c": "d"}}, {"metadata.labels": "ADD"}, False),
    "the name": ({("metadata", "name"): "two"}, {"metadata.name": "UPDATE anew"}, False),
    "the namespace": ({("metadata", "namespace"): "b"}, {"metadata.namespace": "UPDATE anew"}, False),
    "the selector": (
        {("spec", "selector", "matchLabels", "app"): "two"},
        {"spec.selector.matchLabels.app": "UPDATE anew"},
        True,
    ),
    "an unknown value": ({("spec", "replicas"): UNKNOWN}, {"spec.replicas": "UPDATE"}, False),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changes_are_told_by_path(what: str) -> None:
    change, paths, deleted_first = CHANGES[what]
    found = diff(DEPLOYMENT, changed(change))
    assert shown(found) == paths
    if deleted_first:
        assert found.delete_first


OBJECTS: dict[str, Json] = {
    "kubernetes:core/v1:ConfigMap": {"data": {"a": "1"}},
    "kubernetes:core/v1:Secret": {"type": "Opaque"},
    "kubernetes:core/v1:Service": {"spec": {"clusterIP": "None"}},
    "kubernetes:core/v1:PersistentVolumeClaim": {"spec": {"storageClassName": "a"}},
    "kubernetes:core/v1:Pod": {"spec": {"containers": [{"name": "a", "image": "a"}]}},
    "kubernetes:core/v1:PersistentVolume": {"spec": {"csi": {"driver": "a"}}},
    "kubernetes:core/v1:ResourceQuota": {"spec": {"scopes": ["a"]}},
    "kubernetes:apps/v1:DaemonSet": {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
    "kubernetes:apps/v1:StatefulSet": {"spec": {"serviceName": "a"}},
    "kubernetes:batch/v1:Job": {"spec": {"template": {"spec": {"nodeName": "a"}}}},
    "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding": {"roleRef": {"name": "a"}},
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding": {"roleRef": {"name": "a"}},
    "kubernetes:storage.k8s.io/v1:StorageClass": {"parameters": {"a": "b"}},
}


def other(value: Any) -> Any:
    """Another value of the same shape."""
    if isinstance(value, dict):
        return {key: other(item) for key, item in value.items()}
    return [other(item) for item in value] if isinstance(value, list) else f"{value}2"


@pytest.mark.parametrize("token", OBJECTS)
def test_fields_that_cannot_change_make_an_object_be_made_anew(token: str) -> None:
    kind = kind_of(token)
    base = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "one"}}
    found = diff({**base, **OBJECTS[token]}, {**base, **other(OBJECTS[token])})
    assert any(one.replace for one in found.changed.values())
    assert found.delete_first
    renamed = {**base, **other(OBJECTS[token]), "metadata": {"name": "two"}}
    assert not diff({**base, **OBJECTS[token]}, renamed).delete_first


def test_content_changes_in_place_only_where_the_provider_is_so_set_and_the_object_allows_it() -> None:
    base: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "1"}}
    new: Json = {**base, "data": {"a": "2"}}
    assert shown(diff(base, new)) == {"data.a": "UPDATE anew"}
    assert shown(diff(base, new, mutable=frozenset({"ConfigMap"}))) == {"data.a": "UPDATE"}
    frozen = {**base, "immutable": True}
    assert shown(diff(frozen, {**frozen, "data": {"a": "2"}}, mutable=frozenset({"ConfigMap"}))) == {"data.a": "UPDATE anew"}


def test_a_made_up_name_lets_the_new_one_stand_beside_the_old() -> None:
    marked = {"name": "one-1", "annotations": {"pulumi.com/autonamed": "true"}}
    base: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": marked, "data": {"a": "1"}}
    found = diff(base, {**base, "data": {"a": "2"}})
    assert shown(found) == {"data.a": "UPDATE anew"}
    assert not found.delete_first


def test_a_secrets_text_is_no_change_once_the_server_keeps_it_as_data() -> None:
    base: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}, "stringData": {"a": Secret("word")}}
    inputs = stored_secret(base)
    assert diff(inputs, inputs).changed == {}
    assert shown(diff(inputs, stored_secret({**base, "stringData": {"a": "other"}}))) == {"data.a": "UPDATE anew"}


@pytest.mark.parametrize(("kind", "data"), [("Secret", {"a": "d29yZA=="}), ("ConfigMap", {"a": Secret("word")})])
def test_what_kubectl_copied_of_a_secret_is_secret_too(kind: str, data: Json) -> None:
    copied = {"kubectl.kubernetes.io/last-applied-configuration": '{"a": "word"}', "other": "text"}
    inputs: Json = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "one", "annotations": copied}, "data": data}
    found = outputs_of(live_of(reveal(inputs)), inputs, "manager")
    for item in (found, found["__inputs"]):
        assert item["metadata"]["annotations"] == {**copied, "kubectl.kubernetes.io/last-applied-configuration": Secret('{"a": "word"}')}


def test_an_amount_beyond_all_bounds_is_compared_as_text() -> None:
    cpu = ("spec", "template", "spec", "containers", 0, "resources", "limits", "cpu")
    huge = changed({cpu: "1e99999999999999999999"})
    assert diff(huge, huge).changed == {}
    assert shown(diff(huge, DEPLOYMENT)) == {"spec.template.spec.containers[0].resources.limits.cpu": "UPDATE"}


def test_true_is_not_one() -> None:
    assert shown(diff(changed({("spec", "replicas"): 1}), changed({("spec", "replicas"): True}))) == {"spec.replicas": "UPDATE"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab.", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.", min_size=1, max_size=2), inner, max_size=3),
    max_leaves=8,
)
SPECS = st.dictionaries(st.text("ab.", min_size=1, max_size=2), JSON, max_size=3)


@given(SPECS, SPECS)
def test_an_object_never_differs_from_itself_whatever_the_server_adds(spec: Json, added: Json) -> None:
    inputs = {"apiVersion": "example.com/v1", "kind": "Any", "metadata": {"name": "one"}, "spec": spec}
    live = live_of(inputs, spec={**{f"server-{key}": value for key, value in added.items()}, **spec})
    assert diff(inputs, inputs, live).changed == {}


@given(SPECS, SPECS)
def test_other_inputs_differ(one: Json, two: Json) -> None:
    base = {"apiVersion": "example.com/v1", "kind": "Any", "metadata": {"name": "one"}}
    found = diff({**base, "spec": {"x": one, "y": 1}}, {**base, "spec": {"x": two, "y": 2}})
    assert "spec.y" in found.changed
    assert found.changed["spec.y"].kind is ChangeKind.UPDATE


@given(SPECS, SPECS)
def test_of_a_live_object_no_more_is_taken_than_was_spoken_of(live: Json, shape: Json) -> None:
    assert declared_part(live, shape).keys() <= shape.keys()
    assert declared_part(live, live) == live
