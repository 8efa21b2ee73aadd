"""Dynamic providers of a cluster's PKI: creation, renewal and replacement of certificates and keys.

The engine imports these classes in a separate process and does not detect changes of their code: raise SCHEMA for a change that existing
certificates must get.
"""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pulumi
from pulumi import dynamic

from components.x509 import Authority, Issued, Subject, issue_authority, issue_leaf, new_private_key, public_key, renewal_due

SCHEMA = 1
"""Version of the leaf format; a higher number reissues every leaf in place."""
AUTHORITY_LIFETIME = timedelta(days=3_650)
LEAF_LIFETIME = timedelta(days=365)
LEAF_INPUTS = ("common_name", "organizations", "dns_names", "addresses", "usages", "schema", "ca_certificate")
"""Inputs of a leaf that its state contains; the state does not contain the authority's key."""
ENCRYPTION_KEY_BYTES = 32


class AuthorityProvider(dynamic.ResourceProvider):
    """Create an authority; only a higher generation replaces it, because all clients that trust it fail then."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        if not olds:
            return dynamic.CheckResult(news, [])
        before, after = int(olds["generation"]), int(news["generation"])
        failures = []
        if after < before:
            reason = f"falls from {before} to {after}, but a replaced authority cannot be restored; give {before} or more"
            failures.append(dynamic.CheckFailure("generation", reason))
        elif after == before and news["common_name"] != olds["common_name"]:
            reason = (
                f"changes from {olds['common_name']!r} to {news['common_name']!r}, which would replace the authority and cut off all"
                f" clients that trust it; to replace it, raise generation from {before} to {before + 1}"
            )
            failures.append(dynamic.CheckFailure("common_name", reason))
        return dynamic.CheckResult(news, failures)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        changes = int(olds["generation"]) != int(news["generation"])
        return dynamic.DiffResult(changes=changes, replaces=["generation"] if changes else [])

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        issued = issue_authority(props["common_name"], AUTHORITY_LIFETIME, datetime.now(UTC))
        inputs = {name: props[name] for name in ("common_name", "generation")}
        return dynamic.CreateResult(uuid.uuid4().hex, {**inputs, **asdict(issued)})


class LeafProvider(dynamic.ResourceProvider):
    """Create a leaf, and reissue it in place if its inputs change or less than a third of its lifetime remains."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        changed = any(olds.get(name) != news.get(name) for name in LEAF_INPUTS)
        return dynamic.DiffResult(changes=changed or renewal_due(olds["issued_at"], olds["not_after"], datetime.now(UTC)), replaces=[])

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult(uuid.uuid4().hex, _leaf(props, private_key=None))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        # Certificate and key are two secrets of a vault, written one after the other. Under the same authority the key is unchanged, so
        # that a machine that reads in between gets a matching pair.
        same_authority = olds["ca_certificate"] == news["ca_certificate"]
        return dynamic.UpdateResult(_leaf(news, private_key=olds["private_key"] if same_authority else None))


class KeyPairProvider(dynamic.ResourceProvider):
    """Create a key pair once."""

    def create(self, _props: dict[str, Any]) -> dynamic.CreateResult:
        key = new_private_key()
        return dynamic.CreateResult(uuid.uuid4().hex, {"private_key": key, "public_key": public_key(key)})


class EncryptionKeyProvider(dynamic.ResourceProvider):
    """Create once the key with which the API servers encrypt Secrets in etcd."""

    def create(self, _props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult(uuid.uuid4().hex, {"key": base64.b64encode(secrets.token_bytes(ENCRYPTION_KEY_BYTES)).decode()})


def _leaf(props: Mapping[str, Any], private_key: str | None) -> dict[str, Any]:
    """Issue a leaf and return its state."""
    subject = Subject(
        common_name=props["common_name"],
        organizations=tuple(props["organizations"]),
        dns_names=tuple(props["dns_names"]),
        addresses=tuple(props["addresses"]),
        usages=tuple(props["usages"]),
    )
    authority = Authority(props["ca_certificate"], props["ca_key"])
    issued: Issued = issue_leaf(subject, authority, LEAF_LIFETIME, datetime.now(UTC), private_key)
    return {**{name: props[name] for name in LEAF_INPUTS}, **asdict(issued)}


class CertificateAuthority(dynamic.Resource, module="pki", name="CertificateAuthority"):
    """An authority; a higher generation replaces it."""

    certificate: pulumi.Output[str]
    private_key: pulumi.Output[str]
    not_after: pulumi.Output[str]

    def __init__(self, name: str, common_name: str, generation: int, opts: pulumi.ResourceOptions) -> None:
        props = {"common_name": common_name, "generation": generation, **_computed("certificate", "private_key", "issued_at", "not_after")}
        super().__init__(AuthorityProvider(), name, props, _hiding(opts, "private_key"))


class Certificate(dynamic.Resource, module="pki", name="Certificate"):
    """A leaf under an authority."""

    certificate: pulumi.Output[str]
    private_key: pulumi.Output[str]
    not_after: pulumi.Output[str]

    def __init__(self, name: str, subject: Subject, authority: CertificateAuthority, opts: pulumi.ResourceOptions) -> None:
        subject_inputs = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(subject).items()}
        issuer = {"ca_certificate": authority.certificate, "ca_key": authority.private_key, "schema": SCHEMA}
        computed = _computed("certificate", "private_key", "issued_at", "not_after")
        super().__init__(LeafProvider(), name, {**subject_inputs, **issuer, **computed}, _hiding(opts, "private_key"))


class KeyPair(dynamic.Resource, module="pki", name="KeyPair"):
    """A key pair."""

    private_key: pulumi.Output[str]
    public_key: pulumi.Output[str]

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        super().__init__(KeyPairProvider(), name, _computed("private_key", "public_key"), _hiding(opts, "private_key"))


class EncryptionKey(dynamic.Resource, module="pki", name="EncryptionKey"):
    """32 random bytes, base64."""

    key: pulumi.Output[str]

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        super().__init__(EncryptionKeyProvider(), name, _computed("key"), _hiding(opts, "key"))


def _computed(*names: str) -> dict[str, Any]:
    """Return unset outputs: Pulumi sets only the attributes of a resource that are among its inputs."""
    return dict.fromkeys(names)


def _hiding(opts: pulumi.ResourceOptions, *outputs: str) -> pulumi.ResourceOptions:
    """Return the options with secret outputs; otherwise a dynamic provider's outputs are plain text in the state."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=list(outputs)))
