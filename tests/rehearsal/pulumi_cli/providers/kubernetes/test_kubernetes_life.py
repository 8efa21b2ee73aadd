"""Objects in a real cluster: created, updated, read, adopted, rejected, deleted."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from api_client import MERGE, Api
from listening_engine import Heard
from objects_made import CONFIG_MAP, Objects, config_map, fresh
from provider_process import ProviderCallError, urn_of
from pulumi.runtime.proto import provider_pb2

from rehearsal.program.graph import Secret
from rehearsal.program.pulumi_values import UNKNOWN, Json, encode

SECRET = "kubernetes:core/v1:Secret"  # noqa: S105 (a type token)
NAMESPACE = "kubernetes:core/v1:Namespace"
SERVICE = "kubernetes:core/v1:Service"
PRIORITY_CLASS = "kubernetes:scheduling.k8s.io/v1:PriorityClass"
DEFINITION = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
MAPS = "/api/v1/namespaces/default/configmaps"
APPLY = "application/apply-patch+yaml"


def test_an_object_is_made_changed_looked_up_and_deleted(objects: Objects, api: Api) -> None:
    name = fresh("life")
    inputs: Json = {"metadata": {"name": name, "labels": {"a": "b"}}, "data": {"key": "value"}}
    made = objects.make(CONFIG_MAP, inputs)
    assert made.id == f"default/{name}"
    assert made.outputs["data"] == {"key": "value"}
    assert made.outputs["__inputs"] == made.inputs
    assert made.outputs["__fieldManager"].startswith("pulumi-kubernetes-")
    assert "managedFields" not in made.outputs["metadata"]
    assert objects.differing(made, inputs).changes == provider_pb2.DiffResponse.DIFF_NONE

    labelled: Json = {"metadata": {"name": name, "labels": {"c": "d"}}, "data": {"key": "value"}}
    found = objects.differing(made, labelled)
    assert sorted(found.detailedDiff) == ["metadata.labels.a", "metadata.labels.c"]
    assert not found.replaces
    changed = objects.change(made, labelled)
    assert changed.uid == made.uid
    live = api.request("GET", f"{MAPS}/{name}").body
    # The label that the program gave up is gone, and one name owns all fields.
    assert live["metadata"]["labels"] == {"c": "d"}
    assert {one["manager"] for one in live["metadata"]["managedFields"]} == {changed.outputs["__fieldManager"]}
    assert changed.outputs["__fieldManager"] == made.outputs["__fieldManager"]

    refreshed = objects.refreshed(changed)
    assert refreshed == changed
    objects.remove(changed)
    assert api.request("GET", f"{MAPS}/{name}").status == 404
    assert objects.refreshed(changed) is None
    objects.remove(changed)


def test_previews_ask_the_server_and_change_nothing(objects: Objects, api: Api) -> None:
    name = fresh("preview")
    inputs = objects.checked(SERVICE, {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "clusterIP": "None"}})
    made, outputs = objects.client.create(SERVICE, inputs, preview=True)
    assert made == ""
    assert outputs["spec"]["type"] == "ClusterIP"
    assert "status" not in outputs
    assert api.request("GET", f"/api/v1/namespaces/default/services/{name}").status == 404
    unknown = {**inputs, "spec": {"ports": UNKNOWN}}
    assert objects.client.create(SERVICE, unknown, preview=True) == ("", unknown)
    with pytest.raises(ProviderCallError, match=r"Service default/.*: spec.ports\[0\].port: .*80000"):
        objects.client.create(SERVICE, {**inputs, "spec": {"ports": [{"port": 80000}]}}, preview=True)
    real = objects.make(CONFIG_MAP, config_map(name, a="1"))
    previewed = objects.change(real, {"metadata": {"name": name, "labels": {"a": "b"}}, "data": {"a": "1"}}, preview=True)
    assert previewed.outputs["metadata"]["labels"] == {"a": "b"}
    assert "labels" not in api.request("GET", f"{MAPS}/{name}").body["metadata"]
    objects.remove(real)


def test_a_preview_that_the_server_cannot_answer_answers_the_inputs(objects: Objects) -> None:
    absent = objects.checked(CONFIG_MAP, {"metadata": {"name": "one", "namespace": fresh("absent")}})
    assert objects.client.create(CONFIG_MAP, absent, preview=True) == ("", absent)
    unserved = objects.checked("kubernetes:example.com/v1:Unserved", {"metadata": {"name": "one"}})
    assert objects.client.create("kubernetes:example.com/v1:Unserved", unserved, preview=True) == ("", unserved)
    # What is replaced is still there while its replacement is previewed.
    made = objects.make(CONFIG_MAP, config_map(fresh("replaced"), a="1"))
    assert objects.client.create(CONFIG_MAP, made.inputs, preview=True) == ("", made.inputs)
    objects.remove(made)


def test_what_cannot_change_is_replaced(objects: Objects) -> None:
    name = fresh("replaced")
    made = objects.make(CONFIG_MAP, config_map(name, a="1"))
    found = objects.differing(made, config_map(name, a="2"))
    assert list(found.replaces) == ["data.a"]
    assert found.deleteBeforeReplace
    objects.remove(made)
    again = objects.make(CONFIG_MAP, config_map(name, a="2"))
    assert again.uid != made.uid
    objects.remove(again)


def test_what_the_server_refuses_to_change_is_told_with_what_to_do(objects: Objects) -> None:
    name = fresh("priority")
    made = objects.make(PRIORITY_CLASS, {"metadata": {"name": name}, "value": 5})
    assert made.id == name
    with pytest.raises(ProviderCallError, match="have the resource replaced"):
        objects.change(made, {"metadata": {"name": name}, "value": 6})
    objects.remove(made)


def test_an_object_that_is_there_is_not_taken_over_unless_asked(
    objects: Objects, api: Api, kubeconfig: Path, make_objects: Callable[..., Objects]
) -> None:
    name = fresh("there")
    api.make(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"theirs": "1"}})
    with pytest.raises(
        ProviderCallError, match=f"ConfigMap default/{name} is already in the cluster.*pulumi import.*upsertExistingObjects"
    ):
        objects.make(CONFIG_MAP, config_map(name, ours="1"))
    assert api.request("GET", f"{MAPS}/{name}").body["data"] == {"theirs": "1"}
    upserting = make_objects(kubeconfig=kubeconfig.read_text(), upsertExistingObjects="true")
    made = upserting.make(CONFIG_MAP, config_map(name, ours="1"))
    assert made.outputs["data"] == {"theirs": "1", "ours": "1"}
    upserting.remove(made)


def test_a_field_of_somebody_else_is_taken_over_only_where_the_object_says_so(objects: Objects, api: Api) -> None:
    name = fresh("conflict")
    made = objects.make(CONFIG_MAP, {"metadata": {"name": name, "labels": {"a": "ours"}}})
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"a": "theirs"}}}
    reply = api.request("PATCH", f"{MAPS}/{name}?fieldManager=autoscaler&force=true", theirs, kind=APPLY)
    assert reply.status == 200, reply.message
    again: Json = {"metadata": {"name": name, "labels": {"a": "again"}}}
    with pytest.raises(ProviderCallError) as failed:
        objects.change(made, again)
    assert failed.value.sentence == (
        f"ConfigMap default/{name}: metadata.labels.a is owned by autoscaler; "
        'have the owner release it, or mark the object with pulumi.com/patchForce: "true" to take it over'
    )
    again["metadata"]["annotations"] = {"pulumi.com/patchForce": "true"}
    changed = objects.change(made, again)
    assert changed.outputs["metadata"]["labels"] == {"a": "again"}
    objects.remove(changed)


def test_what_somebody_else_changed_is_seen_by_a_refresh_and_undone_by_an_update(objects: Objects, api: Api) -> None:
    name = fresh("drift")
    inputs: Json = {"metadata": {"name": name, "labels": {"a": "ours"}}, "data": {"key": "value"}}
    made = objects.make(CONFIG_MAP, inputs)
    drift = {"metadata": {"labels": {"a": "drifted", "b": "theirs"}}}
    assert api.request("PATCH", f"{MAPS}/{name}?fieldManager=pulumi-kubernetes", drift, kind=MERGE).status == 200
    refreshed = objects.refreshed(made)
    assert refreshed is not None
    assert refreshed.inputs["metadata"]["labels"] == {"a": "drifted"}
    found = objects.differing(refreshed, inputs)
    assert sorted(found.detailedDiff) == ["metadata.labels.a"]
    back = objects.change(refreshed, inputs)
    assert back.outputs["metadata"]["labels"]["a"] == "ours"
    objects.remove(back)


def test_an_object_is_imported_as_a_program_would_write_it(objects: Objects, api: Api) -> None:
    name = fresh("import")
    body: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"a": "b"}}, "data": {"key": "value"}}
    api.make(MAPS, body)
    found, outputs, inputs = objects.client.read(CONFIG_MAP, f"default/{name}")
    assert found == f"default/{name}"
    assert inputs == {**body, "metadata": {"name": name, "namespace": "default", "labels": {"a": "b"}}}
    checked = objects.checked(CONFIG_MAP, body, inputs)
    assert not objects.client.diff(CONFIG_MAP, inputs, checked, outputs, found).detailedDiff
    objects.client.delete(CONFIG_MAP, found, inputs, outputs)
    assert objects.client.read(CONFIG_MAP, f"default/{name}")[0] == ""
    for wrong in ("a/b/c", "..", "a/%2e", "one"):
        with pytest.raises(ProviderCallError, match=r"is not an id of an object|has no namespace"):
            objects.client.read(CONFIG_MAP, wrong)


def test_a_namespace_takes_what_is_in_it_along(objects: Objects, api: Api) -> None:
    name = fresh("space")
    space = objects.make(NAMESPACE, {"metadata": {"name": name}})
    inside = objects.make(CONFIG_MAP, {"metadata": {"name": "one", "namespace": name}, "data": {"a": "1"}})
    objects.remove(space)
    assert api.request("GET", f"/api/v1/namespaces/{name}").status == 404
    assert objects.refreshed(inside) is None
    objects.remove(inside)


def test_a_deletion_that_does_not_end_names_the_finalizers(objects: Objects, api: Api) -> None:
    name = fresh("held")
    made = objects.make(CONFIG_MAP, {"metadata": {"name": name, "finalizers": ["example.com/held"]}})
    request = provider_pb2.DeleteRequest(
        urn=urn_of(CONFIG_MAP, "it"), id=made.id, old_inputs=encode(made.inputs), properties=encode(made.outputs), timeout=0.5
    )
    with pytest.raises(
        ProviderCallError, match=r"was deleted and is still there after 0.5 s: its finalizers .*example.com/held.* block its deletion"
    ):
        objects.client.call("Delete", request)
    assert api.request("PATCH", f"{MAPS}/{name}", {"metadata": {"finalizers": None}}, kind=MERGE).status == 200
    objects.remove(made)


def test_an_object_may_come_before_its_namespace(objects: Objects) -> None:
    name = fresh("late")
    inputs = objects.checked(CONFIG_MAP, {"metadata": {"name": "one", "namespace": name}})
    early = objects.client.stub.Create.future(provider_pb2.CreateRequest(urn=urn_of(CONFIG_MAP, "it"), properties=encode(inputs)))
    space = objects.make(NAMESPACE, {"metadata": {"name": name, "annotations": {"pulumi.com/skipAwait": "true"}}})
    assert early.result(timeout=60).id == f"{name}/one"
    objects.remove(space)


def test_an_object_may_come_before_its_kind_is_served(objects: Objects) -> None:
    group = f"{fresh('g')}.example.com"
    schema = {"type": "object", "x_kubernetes_preserve_unknown_fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    definition: Json = {
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "scope": "Cluster", "names": names, "versions": [version]},
    }
    token = f"kubernetes:{group}/v1:Thing"
    defined = objects.make(DEFINITION, definition)
    # Nobody waited for the kind to be served, and nobody knew that it has no namespaces.
    # What owns nothing need not wait for the garbage collector, which hears of a new kind only after half a minute.
    inputs: Json = {"metadata": {"name": "one", "annotations": {"pulumi.com/deletionPropagationPolicy": "background"}}, "spec": {"a": 1}}
    thing = objects.make(token, inputs)
    assert thing.id == "one"
    assert not objects.differing(defined, definition).detailedDiff
    assert not objects.differing(thing, inputs).detailedDiff
    assert defined.outputs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x_kubernetes_preserve_unknown_fields"] is True
    definition["spec"]["names"] = {**names, "shortNames": ["th"]}
    changed = objects.change(defined, definition)
    assert changed.uid == defined.uid
    refreshed = objects.refreshed(thing)
    assert refreshed is not None
    assert refreshed.uid == thing.uid
    objects.remove(thing)
    objects.remove(changed)
    assert objects.refreshed(thing) is None
    objects.remove(thing)


def test_secrets_are_secret_in_every_answer(objects: Objects, api: Api) -> None:
    name, word = fresh("secret"), "correct-horse-battery"
    coded = base64.b64encode(word.encode()).decode()
    inputs: Json = {"metadata": {"name": name}, "stringData": {"a": word}}
    checked = objects.checked(SECRET, inputs)
    request = provider_pb2.CreateRequest(urn=urn_of(SECRET, "it"), properties=encode(checked))
    answer = objects.client.call("Create", request)
    made = objects.refreshed(objects.make(CONFIG_MAP, {"metadata": {"name": name}, "data": {"a": Secret(word)}}))
    assert made is not None
    assert made.outputs["data"] == {"a": Secret(word)}
    assert made.inputs["data"] == {"a": Secret(word)}
    found, outputs, stored_inputs = objects.client.read(SECRET, answer.id, checked, {})
    assert outputs["data"] == stored_inputs["data"] == outputs["__inputs"]["data"] == Secret({"a": coded})
    imported, outputs, stored_inputs = objects.client.read(SECRET, answer.id)
    assert outputs["data"] == stored_inputs["data"] == Secret({"a": coded})
    objects.client.delete(SECRET, answer.id, stored_inputs, outputs)
    objects.remove(made)
    assert found == imported == answer.id
    bad: Json = {"metadata": {"name": name}, "data": {"a": Secret("b"), word: Secret(word)}, "binaryData": {word: "?"}}
    with pytest.raises(ProviderCallError) as failed:
        objects.make(CONFIG_MAP, bad)
    assert word not in failed.value.sentence
    assert api.request("GET", f"{MAPS}/{name}").status == 404


def test_what_the_server_warns_of_is_told(objects: Objects, engine: Heard) -> None:
    made = objects.make(SERVICE, {"metadata": {"name": fresh("typo")}, "spec": {"clusterIP": "None", "clusterIpp": "None"}})
    assert any('unknown field "spec.clusterIpp"' in message for message in engine.warnings())
    objects.remove(made)
