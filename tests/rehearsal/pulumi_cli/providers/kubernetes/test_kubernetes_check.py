"""Checked inputs and their errors, from a provider process without a cluster."""

from __future__ import annotations

import base64

import pytest
from objects_made import CONFIG_MAP, Objects, config_map
from provider_process import ProviderCallError
from pulumi.runtime.proto import provider_pb2

from rehearsal.program.graph import Secret
from rehearsal.program.pulumi_values import UNKNOWN, Json

SECRET = "kubernetes:core/v1:Secret"  # noqa: S105 (a type token)
NAMESPACE = "kubernetes:core/v1:Namespace"
ANNOTATION = "pulumi.com/autonamed"


def test_kind_version_and_namespace_are_filled_in(unconfigured: Objects) -> None:
    checked = unconfigured.checked("kubernetes:apps/v1:Deployment", {"metadata": {"name": "one"}, "spec": {}})
    assert checked == {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one", "namespace": "default"}, "spec": {}}


def test_a_kind_without_namespaces_is_given_none(unconfigured: Objects) -> None:
    assert unconfigured.checked(NAMESPACE, {"metadata": {"name": "one"}})["metadata"] == {"name": "one"}


def test_a_made_up_name_is_the_same_for_the_same_seed_and_stays(unconfigured: Objects) -> None:
    first = unconfigured.checked(CONFIG_MAP, {"data": {"a": "1"}}, name="settings")
    again = unconfigured.checked(CONFIG_MAP, {"data": {"a": "1"}}, name="settings")
    assert first == again
    name = first["metadata"]["name"]
    assert name.startswith("settings-")
    assert len(name) == len("settings-") + 8
    assert first["metadata"]["annotations"] == {ANNOTATION: "true"}
    later, faults = unconfigured.client.check(CONFIG_MAP, {"data": {"a": "2"}}, first, "settings", randomSeed=b"another")
    assert faults == []
    assert later["metadata"] == first["metadata"]
    other, _ = unconfigured.client.check(CONFIG_MAP, {}, None, "settings", randomSeed=b"another")
    assert other["metadata"]["name"] != name


def test_names_follow_the_stacks_configuration(unconfigured: Objects) -> None:
    modes = provider_pb2.CheckRequest.AutonamingOptions
    proposed = modes(proposed_name="as-proposed", mode=modes.PROPOSE)
    checked, _ = unconfigured.client.check(CONFIG_MAP, {}, autonaming=proposed)
    assert checked["metadata"]["name"] == "as-proposed"
    _, faults = unconfigured.client.check(CONFIG_MAP, {}, autonaming=modes(mode=modes.DISABLE))
    assert faults == ["the stack's configuration disables generated names (pulumi:autonaming); give the object one"]


def test_what_only_the_server_writes_is_left_out(unconfigured: Objects) -> None:
    given = {
        "metadata": {"name": "one", "uid": "1", "resourceVersion": "2", "creationTimestamp": "3", "generation": 4, "managedFields": []}
    }
    assert unconfigured.checked(CONFIG_MAP, given)["metadata"] == {"name": "one", "namespace": "default"}


def test_a_secrets_texts_are_kept_as_secret_data(unconfigured: Objects) -> None:
    given = {"metadata": {"name": "one"}, "stringData": {"a": Secret("word")}, "data": {"b": base64.b64encode(b"other").decode()}}
    checked = unconfigured.checked(SECRET, given)
    assert "stringData" not in checked
    assert isinstance(checked["data"], Secret)
    assert checked["data"].value == {"a": base64.b64encode(b"word").decode(), "b": base64.b64encode(b"other").decode()}


def test_what_is_unknown_or_secret_stays_so(unconfigured: Objects) -> None:
    given = {"metadata": {"name": UNKNOWN, "labels": {"a": UNKNOWN}}, "data": {"a": Secret("word"), "b": UNKNOWN}}
    checked = unconfigured.checked(CONFIG_MAP, given)
    assert checked["metadata"] == {"name": UNKNOWN, "labels": {"a": UNKNOWN}, "namespace": "default"}
    assert checked["data"] == given["data"]
    checked = unconfigured.checked(SECRET, {"metadata": {"name": "one"}, "stringData": {"a": UNKNOWN}})
    assert checked["stringData"] == Secret({"a": UNKNOWN})
    assert unconfigured.checked(CONFIG_MAP, {"metadata": UNKNOWN})["metadata"] == UNKNOWN


WRONG: dict[str, tuple[str, Json, str]] = {
    "another kind": (CONFIG_MAP, {"kind": "Secret"}, "kind is 'Secret', but the resource's type is of ConfigMap"),
    "another version": (CONFIG_MAP, {"apiVersion": "v2"}, "apiVersion is 'v2', but the resource's type is of v1"),
    "a field that is none": (CONFIG_MAP, {"dota": {}}, "ConfigMap of v1 has no field dota; did you mean data?"),
    "no metadata": (CONFIG_MAP, {"metadata": "one"}, "metadata is not an object"),
    "capitals": (CONFIG_MAP, {"metadata": {"name": "One"}}, "name 'One' is not taken by Kubernetes: write small letters"),
    "dots in a namespace's name": (NAMESPACE, {"metadata": {"name": "a.b"}}, "name 'a.b' is not taken"),
    "a long name": (NAMESPACE, {"metadata": {"name": "a" * 64}}, "has 64 characters; Kubernetes takes at most 63"),
    "a number as a name": (CONFIG_MAP, {"metadata": {"name": 5}}, "name is 5, no text: quote it"),
    "a wrong namespace": (CONFIG_MAP, {"metadata": {"name": "a", "namespace": "b_c"}}, "namespace 'b_c' is not taken"),
    "a number as a label": (CONFIG_MAP, {"metadata": {"name": "a", "labels": {"b": 1}}}, "value 1 is not a text: quote it"),
    "a label's value": (CONFIG_MAP, {"metadata": {"name": "a", "labels": {"b": "c d"}}}, "value 'c d' is not taken"),
    "a label's key": (CONFIG_MAP, {"metadata": {"name": "a", "labels": {"b c": "d"}}}, "key 'b c' is not taken"),
    "labels that are none": (CONFIG_MAP, {"metadata": {"name": "a", "labels": ["b"]}}, "labels are not a mapping of texts"),
    "an annotation that is not a text": (CONFIG_MAP, {"metadata": {"name": "a", "annotations": {"b": {}}}}, "value {} is not a text"),
    "a generated name": (CONFIG_MAP, {"metadata": {"generateName": "a-"}}, "generateName creates another name with every apply"),
    "a wait that is not supported in a rehearsal": (
        CONFIG_MAP,
        {"metadata": {"name": "a", "annotations": {"pulumi.com/waitFor": "condition=Ready"}}},
        "pulumi.com/waitFor is not supported in a rehearsal",
    ),
    "no base64": (SECRET, {"metadata": {"name": "a"}, "data": {"b": "hush!"}}, "value of b is not base64"),
    "a chart": ("kubernetes:helm.sh/v3:Release", {}, "a Helm chart or release is not supported in a rehearsal"),
    "a list": ("kubernetes:core/v1:ConfigMapList", {}, "a list is not an object"),
    "a patch": ("kubernetes:core/v1:ConfigMapPatch", {}, "a patch of another client's object is not supported in a rehearsal"),
    "no type of ours": ("azure-native:network:Subnet", {}, "is not a type of this provider"),
    "a type without a version": ("kubernetes:core:ConfigMap", {}, "has no API group with a version"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_in_a_sentence(unconfigured: Objects, what: str) -> None:
    kind, inputs, said = WRONG[what]
    _, faults = unconfigured.client.check(kind, inputs)
    assert len(faults) == 1
    assert said in faults[0]
    assert "hush!" not in faults[0]


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": Secret("Hush")},
        {"name": "a", "labels": {"b": Secret("hush hush")}},
        {"name": "a", "annotations": Secret({"b": {"hush": 1}})},
        Secret({"name": "a", "labels": {"hush hush": "b"}}),
    ],
)
def test_what_is_wrong_with_a_secret_is_told_without_it(unconfigured: Objects, metadata: object) -> None:
    _, faults = unconfigured.client.check(CONFIG_MAP, {"metadata": metadata})
    assert len(faults) == 1
    assert "breaks Kubernetes' rules" in faults[0]
    assert "hush" not in faults[0].lower()


def test_names_that_kubernetes_takes_are_taken(unconfigured: Objects) -> None:
    unconfigured.checked("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", {"metadata": {"name": "system:one:Two"}, "rules": []})
    labels = {"example.com/a_b": "", "c": "D.e_f"}
    unconfigured.checked("kubernetes:example.com/v1:Anything", {"metadata": {"name": "a.b-c", "labels": labels}, "whatever": 1})


def test_a_preview_before_the_cluster_is_known_answers_the_inputs(unconfigured: Objects) -> None:
    inputs = unconfigured.checked(CONFIG_MAP, config_map("one", a="1"))
    assert unconfigured.client.create(CONFIG_MAP, inputs, preview=True) == ("", inputs)
    assert unconfigured.client.update(CONFIG_MAP, "default/one", inputs, inputs, inputs, preview=True) == inputs


def test_nothing_is_done_before_the_cluster_is_known(unconfigured: Objects) -> None:
    with pytest.raises(ProviderCallError, match="before it was configured"):
        unconfigured.client.create(CONFIG_MAP, config_map("one"))
