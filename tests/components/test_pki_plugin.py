"""The providers under Pulumi's own plugin server, as the engine starts it: another process, another folder, gRPC."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import PROVIDER_KEY, serialize_provider
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc
from pulumi.runtime.rpc import UNKNOWN

from components.pki_provider import AuthorityProvider, EncryptionKeyProvider, KeyPairProvider, LeafProvider

LEAF = {
    "common_name": "etcd-0",
    "organizations": [],
    "dns_names": ["etcd-0.dev.internal"],
    "addresses": ["10.48.0.10"],
    "usages": ["server", "client"],
    "schema": 1,
}


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("engine")
    server = subprocess.Popen([sys.executable, "-u", "-m", "pulumi.dynamic"], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{int(server.stdout.readline())}") as channel:
            yield provider_pb2_grpc.ResourceProviderStub(channel)
    finally:
        server.terminate()
        server.communicate()


def sent(provider: ResourceProvider, properties: Mapping[str, Any]) -> Struct:
    struct = Struct()
    struct.update({**properties, PROVIDER_KEY: serialize_provider(provider)})
    return struct


def made(plugin: Any, provider: ResourceProvider, properties: Mapping[str, Any]) -> dict[str, Any]:
    answer = plugin.Create(provider_pb2.CreateRequest(properties=sent(provider, properties)))
    assert answer.id
    return MessageToDict(answer.properties)


def changes(plugin: Any, olds: Mapping[str, Any], news: Mapping[str, Any]) -> int:
    request = provider_pb2.DiffRequest(id="leaf", olds=sent(LeafProvider(), olds), news=sent(LeafProvider(), news))
    return int(plugin.Diff(request).changes)


def test_a_leaf_is_made_compared_and_reissued(plugin: Any) -> None:
    authority = made(plugin, AuthorityProvider(), {"common_name": "dev etcd CA", "generation": 1})
    inputs = {**LEAF, "ca_certificate": authority["certificate"], "ca_key": authority["private_key"]}
    leaf = made(plugin, LeafProvider(), inputs)
    assert changes(plugin, leaf, inputs) == provider_pb2.DiffResponse.DIFF_NONE
    assert changes(plugin, leaf, {**inputs, "ca_certificate": UNKNOWN, "ca_key": UNKNOWN}) == provider_pb2.DiffResponse.DIFF_SOME
    wider = {**inputs, "dns_names": ["etcd-0.dev.internal", "localhost"]}
    assert changes(plugin, leaf, wider) == provider_pb2.DiffResponse.DIFF_SOME
    request = provider_pb2.UpdateRequest(id="leaf", olds=sent(LeafProvider(), leaf), news=sent(LeafProvider(), wider))
    reissued = MessageToDict(plugin.Update(request).properties)
    assert reissued["private_key"] == leaf["private_key"]
    assert changes(plugin, reissued, wider) == provider_pb2.DiffResponse.DIFF_NONE


def test_another_authority_is_refused_before_anything_is_touched(plugin: Any) -> None:
    olds, news = ({"common_name": f"{name} etcd CA", "generation": 1} for name in ("dev", "prod"))
    request = provider_pb2.CheckRequest(olds=sent(AuthorityProvider(), olds), news=sent(AuthorityProvider(), news))
    (failure,) = plugin.Check(request).failures
    assert failure.property == "common_name"
    assert "raise generation from 1 to 2" in failure.reason


@pytest.mark.parametrize(
    ("provider", "outputs"),
    [(KeyPairProvider(), {"private_key", "public_key"}), (EncryptionKeyProvider(), {"key"})],
)
def test_what_is_made_once_is_made(plugin: Any, provider: ResourceProvider, outputs: set[str]) -> None:
    assert set(made(plugin, provider, {})) == outputs | {PROVIDER_KEY}
