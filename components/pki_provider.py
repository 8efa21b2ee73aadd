"""When a certificate or key is made anew, and when that is refused: Pulumi's dynamic providers of what a cluster's PKI consists of.

The engine runs these classes in a process of their own, by their import path, and never looks at their code: an edit that should
reach certificates that exist must raise SCHEMA.
"""

from __future__ import annotations

import base64
import secrets
import string
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pulumi
from pulumi import dynamic

from components.x509 import Authority, Issued, Subject, issue_authority, issue_leaf, new_private_key, public_key, renewal_due

SCHEMA = 1
"""Version of how leaves are made; raising it reissues every leaf in place."""
AUTHORITY_LIFETIME = timedelta(days=3_650)
LEAF_LIFETIME = timedelta(days=365)
LEAF_INPUTS = ("common_name", "organizations", "dns_names", "addresses", "usages", "schema", "ca_certificate")
"""What a leaf is made of and its state keeps; the authority's key is used and not kept."""
ENCRYPTION_KEY_BYTES = 32
TOKEN_ALPHABET = string.ascii_lowercase + string.digits
"""https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/#token-format"""


class AuthorityProvider(dynamic.ResourceProvider):
    """Makes an authority once; another comes only with a higher generation, because all that trusts the first then fails."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        if not olds:
            return dynamic.CheckResult(news, [])
        before, after = int(olds["generation"]), int(news["generation"])
        failures = []
        if after < before:
            reason = f"falls from {before} to {after}, but an authority that was replaced does not come back; give {before} or more"
            failures.append(dynamic.CheckFailure("generation", reason))
        elif after == before and news["common_name"] != olds["common_name"]:
            reason = (
                f"changes from {olds['common_name']!r} to {news['common_name']!r}, which would replace the authority and cut off all"
                f" that trusts it; raise generation from {before} to {before + 1} if that is meant"
            )
            failures.append(dynamic.CheckFailure("common_name", reason))
        return dynamic.CheckResult(news, failures)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        changes = int(olds["generation"]) != int(news["generation"])
        return dynamic.DiffResult(changes=changes, replaces=["generation"] if changes else [])

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        issued = issue_authority(props["common_name"], AUTHORITY_LIFETIME, datetime.now(UTC))
        kept = {name: props[name] for name in ("common_name", "generation")}
        return dynamic.CreateResult(uuid.uuid4().hex, {**kept, **asdict(issued)})


class LeafProvider(dynamic.ResourceProvider):
    """Makes a leaf, and reissues it in place when what it says changes or less than a third of its life remains."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.DiffResult:
        changed = any(olds.get(name) != news.get(name) for name in LEAF_INPUTS)
        return dynamic.DiffResult(changes=changed or renewal_due(olds["issued_at"], olds["not_after"], datetime.now(UTC)), replaces=[])

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult(uuid.uuid4().hex, _leaf(props, private_key=None))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        # Certificate and key are two secrets of a vault, written one after the other: under the same authority the key stays, so that
        # a machine that reads in between still gets a pair.
        same_authority = olds["ca_certificate"] == news["ca_certificate"]
        return dynamic.UpdateResult(_leaf(news, private_key=olds["private_key"] if same_authority else None))


class KeyPairProvider(dynamic.ResourceProvider):
    """Makes a bare key pair, once."""

    def create(self, _props: dict[str, Any]) -> dynamic.CreateResult:
        key = new_private_key()
        return dynamic.CreateResult(uuid.uuid4().hex, {"private_key": key, "public_key": public_key(key)})


class BootstrapTokenProvider(dynamic.ResourceProvider):
    """Makes a bootstrap token, once."""

    def create(self, _props: dict[str, Any]) -> dynamic.CreateResult:
        token_id, secret = ("".join(secrets.choice(TOKEN_ALPHABET) for _ in range(length)) for length in (6, 16))
        return dynamic.CreateResult(uuid.uuid4().hex, {"token": f"{token_id}.{secret}"})


class EncryptionKeyProvider(dynamic.ResourceProvider):
    """Makes the key under which the API servers encrypt Secrets in etcd, once."""

    def create(self, _props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult(uuid.uuid4().hex, {"key": base64.b64encode(secrets.token_bytes(ENCRYPTION_KEY_BYTES)).decode()})


def _leaf(props: Mapping[str, Any], private_key: str | None) -> dict[str, Any]:
    """State of a leaf issued now."""
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
        said = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(subject).items()}
        issuer = {"ca_certificate": authority.certificate, "ca_key": authority.private_key, "schema": SCHEMA}
        computed = _computed("certificate", "private_key", "issued_at", "not_after")
        super().__init__(LeafProvider(), name, {**said, **issuer, **computed}, _hiding(opts, "private_key"))


class KeyPair(dynamic.Resource, module="pki", name="KeyPair"):
    """A bare key pair."""

    private_key: pulumi.Output[str]
    public_key: pulumi.Output[str]

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        super().__init__(KeyPairProvider(), name, _computed("private_key", "public_key"), _hiding(opts, "private_key"))


class BootstrapToken(dynamic.Resource, module="pki", name="BootstrapToken"):
    """A bootstrap token, id.secret."""

    token: pulumi.Output[str]

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        super().__init__(BootstrapTokenProvider(), name, _computed("token"), _hiding(opts, "token"))


class EncryptionKey(dynamic.Resource, module="pki", name="EncryptionKey"):
    """32 random bytes, base64."""

    key: pulumi.Output[str]

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        super().__init__(EncryptionKeyProvider(), name, _computed("key"), _hiding(opts, "key"))


def _computed(*names: str) -> dict[str, Any]:
    """Outputs to be: Pulumi gives a resource only the attributes whose names it was made with."""
    return dict.fromkeys(names)


def _hiding(opts: pulumi.ResourceOptions, *outputs: str) -> pulumi.ResourceOptions:
    """The options, with outputs that stay encrypted: a dynamic provider's are plain in the state otherwise."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=list(outputs)))
