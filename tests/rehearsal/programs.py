"""Small Pulumi programs and clouds that several tests of the rehearsal engine share."""

from collections.abc import Mapping
from typing import Any

import pulumi
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pulumi import dynamic

from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.dispatch import CreatedResource

SUBSCRIPTION = "11111111-1111-1111-1111-111111111111"
OTHER_SUBSCRIPTION = "22222222-2222-2222-2222-222222222222"


class Group(pulumi.ComponentResource):
    """A component with the children that a test gives it."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:test:Group", name, {}, opts)


class KeyPairs(dynamic.ResourceProvider):
    """Makes a P-256 key pair; refuses an empty common name."""

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        failures = [] if news["commonName"] else [dynamic.CheckFailure("commonName", "is empty")]
        return dynamic.CheckResult(news, failures)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        return dynamic.CreateResult(props["commonName"], {"private_key": pem.decode(), "public_key": public.decode()})


class KeyPair(dynamic.Resource, module="pki", name="KeyPair"):
    private_key: pulumi.Output[str]
    public_key: pulumi.Output[str]

    def __init__(self, name: str, common_name: pulumi.Input[str]) -> None:
        props: dict[str, Any] = {"commonName": common_name, "private_key": None, "public_key": None}
        super().__init__(KeyPairs(), name, props, pulumi.ResourceOptions(additional_secret_outputs=["private_key"]))


class Readiness(dynamic.ResourceProvider):
    """Would wait for an API server, which a rehearsal has none of."""

    waits_for_cloud = True

    def create(self, _props: dict[str, Any]) -> dynamic.CreateResult:
        raise AssertionError("a provider that waits for the cloud runs nowhere in a rehearsal")


class Ready(dynamic.Resource, module="control", name="Ready"):
    def __init__(self, name: str) -> None:
        super().__init__(Readiness(), name, {"endpoint": "https://10.0.0.1:6443"})


class RecordingBackend(AcceptingCloud):
    """The default cloud, remembering what it was asked to create."""

    def __init__(self) -> None:
        super().__init__(subscription=SUBSCRIPTION)
        self.requests: list[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]] = []

    def create(self, resource_type: str, name: str, inputs: Mapping[str, Any], provider: Mapping[str, Any], /) -> CreatedResource:
        self.requests.append((resource_type, name, inputs, provider))
        return super().create(resource_type, name, inputs, provider)
