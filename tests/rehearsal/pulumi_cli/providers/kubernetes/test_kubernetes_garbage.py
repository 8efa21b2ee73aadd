"""Every call with what no engine should send: a sentence, no traceback, and a provider that lives on."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.protobuf import empty_pb2, struct_pb2  # type: ignore[import-untyped]
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from objects_made import CONFIG_MAP, Objects, config_map
from provider_process import ProviderCallError, urn_of
from pulumi.runtime.proto import provider_pb2

from rehearsal.program.graph import Secret
from rehearsal.program.pulumi_values import UNKNOWN, encode

TYPES = (CONFIG_MAP, "kubernetes:core/v1:Secret", "kubernetes:apps/v1:Deployment", "kubernetes:example.com/v1:Thing", "x:y:z", "")
IDS = ("default/none", "none", "", "/", "a/b/c", "../x", "default/ä", "default/" + "a" * 300)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from(["", "a", UNKNOWN, "ä/%?#", "v1", "ConfigMap"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["metadata", "name", "labels", "data", "annotations", "spec"]), inner, max_size=3)
        | inner.map(Secret)
    ),
    max_leaves=6,
)
FIELDS = st.sampled_from(["apiVersion", "kind", "metadata", "data", "stringData", "spec", "__inputs", "__fieldManager", "immutable", "x"])
WHOLE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "garbage", "namespace": "default"}}
GARBAGE = st.dictionaries(FIELDS, VALUE, max_size=5)
PROPERTIES = (GARBAGE | GARBAGE.map(lambda given: {**given, **WHOLE}) | GARBAGE.map(lambda given: {**WHOLE, **given})).map(encode)
CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "Check": (provider_pb2.CheckRequest, {"news": PROPERTIES, "olds": PROPERTIES}),
    "Diff": (provider_pb2.DiffRequest, {"id": st.sampled_from(IDS), "news": PROPERTIES, "olds": PROPERTIES, "old_inputs": PROPERTIES}),
    "Create": (provider_pb2.CreateRequest, {"properties": PROPERTIES, "preview": st.just(True)}),
    "Update": (
        provider_pb2.UpdateRequest,
        {"id": st.sampled_from(IDS), "news": PROPERTIES, "olds": PROPERTIES, "old_inputs": PROPERTIES, "preview": st.just(True)},
    ),
    "Read": (provider_pb2.ReadRequest, {"id": st.sampled_from(IDS), "properties": PROPERTIES, "inputs": PROPERTIES}),
    "Delete": (provider_pb2.DeleteRequest, {"id": st.sampled_from(IDS), "properties": PROPERTIES, "old_inputs": PROPERTIES}),
}


@pytest.mark.parametrize("call", CALLS)
def test_no_properties_bring_a_call_down(objects: Objects, call: str) -> None:
    message, fields = CALLS[call]

    @settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
    @given(st.sampled_from(TYPES), st.fixed_dictionaries(fields))
    def sent(kind: str, values: dict[str, Any]) -> None:
        failed = failure_of(objects, call, message(urn=urn_of(kind, "it"), **values))
        if failed is not None:
            assert failed.code.name not in ("INTERNAL", "DEADLINE_EXCEEDED"), failed.sentence
            assert failed.sentence

    sent()


def failure_of(objects: Objects, call: str, message: Any) -> ProviderCallError | None:
    """Return the failure of a call; None for none."""
    try:
        objects.client.call(call, message)
    except ProviderCallError as failed:
        return failed
    return None


@given(st.dictionaries(st.sampled_from(["kubeconfig", "context", "namespace", "clusterIdentifier", "x"]), VALUE, max_size=4).map(encode))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_configuration_brings_the_provider_down(unconfigured: Objects, config: struct_pb2.Struct) -> None:
    urn = urn_of("pulumi:providers:kubernetes", "it")
    unconfigured.client.call("CheckConfig", provider_pb2.CheckRequest(urn=urn, news=config))
    unconfigured.client.call("DiffConfig", provider_pb2.DiffRequest(urn=urn, olds=config, news=config))
    unconfigured.client.call("DiffConfig", provider_pb2.DiffRequest(urn=urn, news=config))


@pytest.mark.parametrize("call", [*CALLS, "CheckConfig", "Configure", "Invoke", "Handshake", "Attach", "GetSchema", "Parameterize"])
def test_bytes_that_are_no_message_are_refused(objects: Objects, call: str) -> None:
    with pytest.raises(ProviderCallError, match=f"{call}: the content is not a ") as failed:
        objects.client.raw(call, b"\xff\xff\xff\xff")
    assert failed.value.code.name == "INVALID_ARGUMENT"


def test_numbers_that_are_none_are_refused(objects: Objects) -> None:
    for number in (math.nan, math.inf):
        with pytest.raises(ProviderCallError, match="is not a JSON number"):
            objects.client.check(CONFIG_MAP, {**config_map("one"), "data": {"a": number}})


def test_the_provider_says_which_one_it_stands_for(objects: Objects) -> None:

    assert objects.client.call("GetPluginInfo", empty_pb2.Empty()).version == "4.34.2"
