"""Waits in a real cluster without nodes, and the messages where they fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from api_client import MERGE, Api, eventually
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from listening_engine import Heard
from objects_made import Made, Objects, fresh
from provider_process import ProviderCallError, provider_process, urn_of
from pulumi.runtime.proto import provider_pb2

from rehearsal.program.pulumi_values import Json, decode, encode

MODULE = "rehearsal.pulumi_cli.providers.kubernetes"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
POD = "kubernetes:core/v1:Pod"
CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
QUOTA = "kubernetes:core/v1:ResourceQuota"
NAMESPACE = "kubernetes:core/v1:Namespace"
CONTAINER = {"name": "main", "image": "registry.k8s.io/pause:3.10"}


@pytest.fixture(scope="module", autouse=True)
def _accounts(api: Api) -> None:
    """No pod is made before its namespace has an account."""
    eventually(lambda: api.request("GET", "/api/v1/namespaces/default/serviceaccounts/default").status == 200, "the default account")


def deployment(name: str, **annotations: str) -> Json:
    """A Deployment of one pod, which no node will run."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name, **({"annotations": annotations} if annotations else {})}, "spec": spec}


def half_made(objects: Objects, kind: str, inputs: Json, timeout: float) -> tuple[Made, list[str]]:
    """A resource that was made and did not become ready, and why."""
    checked = objects.checked(kind, inputs)
    with pytest.raises(ProviderCallError) as failed:
        objects.client.create(kind, checked, timeout=timeout)
    found = failed.value.half_made
    assert found is not None, failed.value.sentence
    return Made(kind, found.id, decode(found.inputs), decode(found.properties)), list(found.reasons)


def creating(objects: Objects, kind: str, inputs: Json) -> Any:
    """A Create that is under way."""
    request = provider_pb2.CreateRequest(urn=urn_of(kind, "it"), properties=encode(objects.checked(kind, inputs)), timeout=60)
    return objects.client.stub.Create.future(request)


def test_a_deployment_that_never_gets_ready_is_kept_with_the_reasons(objects: Objects) -> None:
    name = fresh("never")
    made, reasons = half_made(objects, DEPLOYMENT, deployment(name), 4)
    assert made.id == f"default/{name}"
    assert made.outputs["metadata"]["uid"]
    assert made.inputs == objects.checked(DEPLOYMENT, deployment(name))
    assert reasons[0] == f"Deployment default/{name} is not ready after 4 s"
    assert "0 of 1 pods ready, 1 of the newest revision" in reasons
    assert any(one.startswith(f"pod default/{name}-") and "is not scheduled: no nodes available" in one for one in reasons), reasons
    # A refresh says it too, and keeps what it found.
    with pytest.raises(ProviderCallError, match=f"Deployment default/{name} is not ready; .*no nodes available") as failed:
        objects.refreshed(made)
    assert failed.value.half_made is not None
    assert failed.value.half_made.id == made.id
    # The next update goes on waiting.
    with pytest.raises(ProviderCallError, match="is not ready after 1 s"):
        objects.change(made, deployment(name), timeout=1)
    objects.remove(made)


def test_an_object_that_says_so_is_not_waited_for(objects: Objects) -> None:
    made = objects.make(DEPLOYMENT, deployment(fresh("skipped"), **{"pulumi.com/skipAwait": "true"}))
    refreshed = objects.refreshed(made)
    assert refreshed is not None
    assert refreshed.uid == made.uid
    objects.remove(made)


def test_an_object_says_how_long_it_is_waited_for(objects: Objects) -> None:
    name = fresh("claim")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "none"}
    inputs = {"metadata": {"name": name, "annotations": {"pulumi.com/timeoutSeconds": "1"}}, "spec": spec}
    made, reasons = half_made(objects, CLAIM, inputs, 0)
    assert reasons == [
        f"PersistentVolumeClaim default/{name} is not ready after 1 s",
        "it is Pending: check that a volume of its class can be created",
    ]
    assert not objects.differing(made, inputs).detailedDiff
    objects.remove(made)


def test_a_pod_is_waited_for_until_it_is_ready(objects: Objects, api: Api, engine: Heard) -> None:
    name = fresh("pod")
    path = f"/api/v1/namespaces/default/pods/{name}"
    # Nobody schedules it, so that nobody writes its conditions but this test.
    under_way = creating(objects, POD, {"metadata": {"name": name}, "spec": {"containers": [CONTAINER], "schedulerName": "nobody"}})
    eventually(lambda: any("is not scheduled" in message for _, _, message in engine.lines), "the engine hears what is waited for")
    conditions = [{"type": one, "status": "True"} for one in ("PodScheduled", "Initialized", "Ready")]
    assert not under_way.done()
    assert api.request("PATCH", f"{path}/status", {"status": {"conditions": conditions}}, kind=MERGE).status == 200
    answer = under_way.result(timeout=60)
    assert answer.id == f"default/{name}"
    api.remove(path)


def test_a_quota_is_waited_for_until_it_is_in_force(objects: Objects) -> None:
    name = fresh("quota")
    space = objects.make(NAMESPACE, {"metadata": {"name": name, "annotations": {"pulumi.com/skipAwait": "true"}}})
    made = objects.make(QUOTA, {"metadata": {"name": "one", "namespace": name}, "spec": {"hard": {"pods": "3", "requests.cpu": "2000m"}}})
    assert made.outputs["status"]["hard"] == made.outputs["spec"]["hard"]
    assert not objects.differing(made, made.inputs).detailedDiff
    objects.remove(made)
    objects.remove(space)


def test_an_object_that_is_deleted_while_it_is_waited_for_is_told_of(objects: Objects, api: Api) -> None:
    name = fresh("gone")
    path = f"/api/v1/namespaces/default/pods/{name}"
    under_way = creating(objects, POD, {"metadata": {"name": name}, "spec": {"containers": [CONTAINER]}})
    eventually(lambda: api.request("GET", path).status == 200, "the pod is there")
    api.remove(path)
    assert f"Pod default/{name} was deleted by another client" in under_way.exception(timeout=60).details()


def test_a_cancelled_wait_keeps_the_object(kubeconfig: Path, api: Api, engine: Heard) -> None:
    name = fresh("cancelled")
    with provider_process(MODULE, {}, engine.address) as process:
        process.client.configure(kubeconfig=kubeconfig.read_text())
        objects = Objects(process.client)
        heard = len(engine.lines)
        under_way = creating(objects, DEPLOYMENT, deployment(name))
        eventually(lambda: any(said.startswith("0 of 1 pods ready") for _, _, said in engine.lines[heard:]), "it is waited for")
        objects.client.call("Cancel", empty_pb2.Empty())
        # A minute is what it was to wait.
        failure = ProviderCallError(under_way.exception(timeout=30))
        assert failure.half_made is not None
        assert failure.half_made.id == f"default/{name}"
        assert "was cancelled during the wait" in failure.sentence
        with pytest.raises(ProviderCallError, match="cancelled before it began"):
            objects.make(NAMESPACE, {"metadata": {"name": name}})
    api.remove(f"/apis/apps/v1/namespaces/default/deployments/{name}")
