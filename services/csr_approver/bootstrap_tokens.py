"""Bootstrap tokens that live for hours: the leader creates them, and machines read the current one from the nodes' key vault.

A token's only right is to create and read signing requests. The tokens have fixed ids, so that this program needs no right to list Secrets.
https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/
"""

from __future__ import annotations

import base64
import datetime
import json
import logging
import secrets
import ssl
import string
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import urllib3
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError
from kubernetes import client

from components.plan.access import BOOTSTRAP_GROUP, BOOTSTRAP_TOKEN, BOOTSTRAP_TOKEN_IDS
from services.csr_approver.approval_loop import ServiceUnreachableError

LOG = logging.getLogger("gpufleet.csr-approver")
LIFETIME = datetime.timedelta(hours=6)
PERIOD = datetime.timedelta(hours=2)
"""Time from one token to the next, so that a machine that has read one has at least 4 hours to use it."""
NAMESPACE = "kube-system"
SECRET_TYPE = "bootstrap.kubernetes.io/token"  # noqa: S105 - a type
IN_VAULT = "gpufleet.io/in-vault"
"""Annotation of a token that the vault has."""
VAULT_RESOURCE = "https://vault.azure.net"
VAULT_VERSION = "7.4"
CHECK_SECONDS = 60.0
RETRY_SECONDS = 5.0
REQUEST_SECONDS = 30
ALPHABET = string.ascii_lowercase + string.digits
OK, NOT_FOUND, CONFLICT = 200, 404, 409

Json = dict[str, Any]


@dataclass(frozen=True)
class Token:
    """One token: id, secret, end of its life, and whether the vault has it; version is the resourceVersion."""

    token_id: str
    secret: str
    expires: datetime.datetime
    in_vault: bool
    version: str = ""

    def __repr__(self) -> str:
        """Return the token without its secret."""
        return f"Token({self.token_id}, expires {self.expires.isoformat()})"


class TokenStore(Protocol):
    """Tokens as Secrets of the cluster; both methods raise ServiceUnreachableError."""

    def tokens(self) -> tuple[Token, ...]:
        """Return the existing tokens."""
        ...

    def write(self, token: Token) -> Token:
        """Create a token or replace the version that it names, and return it as stored."""
        ...


class Vault(Protocol):
    """The nodes' key vault."""

    def set(self, name: str, value: str, expires: datetime.datetime) -> None:
        """Write a secret; raise ServiceUnreachableError."""
        ...


def next_token(found: tuple[Token, ...], now: datetime.datetime) -> Token | None:
    """Return the token to create now, in place of the one that ends first; None if the newest is younger than PERIOD."""
    if found and max(one.expires for one in found) > now + LIFETIME - PERIOD:
        return None
    by_id = {one.token_id: one for one in found}
    earliest = datetime.datetime.min.replace(tzinfo=datetime.UTC)
    token_id = min(BOOTSTRAP_TOKEN_IDS, key=lambda one: by_id[one].expires if one in by_id else earliest)
    version = by_id[token_id].version if token_id in by_id else ""
    return Token(token_id, "".join(secrets.choice(ALPHABET) for _ in range(16)), now + LIFETIME, in_vault=False, version=version)


class BootstrapTokens:
    """Creates a token every PERIOD, and then writes it into the vault; clock returns the time of day."""

    def __init__(self, store: TokenStore, vault: Vault, clock: Callable[[], datetime.datetime]) -> None:
        self._store, self._vault, self._clock = store, vault, clock

    def step(self) -> None:
        """Create the next token if it is due, and write the newest into the vault if it is not there; raise ServiceUnreachableError."""
        found = self._store.tokens()
        token = next_token(found, self._clock())
        if token is not None:
            newest = self._store.write(token)
            LOG.info("created bootstrap token %s, valid until %s", newest.token_id, newest.expires.isoformat())
        else:
            newest = max(found, key=lambda one: one.expires)
        if not newest.in_vault:
            self._vault.set(BOOTSTRAP_TOKEN, f"{newest.token_id}.{newest.secret}", newest.expires)
            LOG.info("the vault has bootstrap token %s", newest.token_id)
            self._store.write(Token(newest.token_id, newest.secret, newest.expires, in_vault=True, version=newest.version))


def rotate_tokens(tokens: BootstrapTokens) -> None:
    """Create tokens for ever; a failure is logged, and the tokens of the last hours remain valid."""
    while True:
        try:
            tokens.step()
        except ServiceUnreachableError as missing:
            LOG.warning("bootstrap token: %s; next try in %.0f s", missing, RETRY_SECONDS)
            time.sleep(RETRY_SECONDS)
        else:
            time.sleep(CHECK_SECONDS)


def secret_of(token: Token) -> Json:
    """Return the Secret of a token."""
    metadata: Json = {"name": f"bootstrap-token-{token.token_id}", "labels": {"app.kubernetes.io/managed-by": "gpufleet-csr-approver"}}
    metadata |= {"annotations": {IN_VAULT: "true"}} if token.in_vault else {}
    metadata |= {"resourceVersion": token.version} if token.version else {}
    fields = {
        "token-id": token.token_id,
        "token-secret": token.secret,
        "expiration": token.expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": BOOTSTRAP_GROUP,
    }
    return {"type": SECRET_TYPE, "metadata": metadata, "stringData": fields}


def token_of(item: Json) -> Token | None:
    """Convert a Secret from JSON; None for one that this program did not write."""
    metadata, data = item["metadata"], item.get("data") or {}
    try:
        token_id, secret, expires = (base64.b64decode(data[key]).decode() for key in ("token-id", "token-secret", "expiration"))
        ends = datetime.datetime.fromisoformat(expires)
    except (KeyError, ValueError):
        return None
    in_vault = (metadata.get("annotations") or {}).get(IN_VAULT) == "true"
    return Token(token_id, secret, ends, in_vault, metadata["resourceVersion"]) if ends.tzinfo else None


class SecretTokens:
    """Tokens as Secrets with fixed names."""

    def __init__(self, api: client.CoreV1Api) -> None:
        self._api = api

    def tokens(self) -> tuple[Token, ...]:
        """Return the existing tokens; raise ServiceUnreachableError."""
        found = (self._call(self._api.read_namespaced_secret, f"bootstrap-token-{one}", NAMESPACE) for one in BOOTSTRAP_TOKEN_IDS)
        return tuple(token for item in found if item is not None and (token := token_of(item)) is not None)

    def write(self, token: Token) -> Token:
        """Create a token or replace the version that it names, and return it as stored; raise ServiceUnreachableError."""
        body = secret_of(token)
        name = body["metadata"]["name"]
        if token.version:
            stored = self._call(self._api.replace_namespaced_secret, name, NAMESPACE, body)
        else:
            stored = self._call(self._api.create_namespaced_secret, NAMESPACE, body)
        written = token_of(stored) if stored is not None else None
        if written is None:
            # The token cleaner has deleted it meanwhile, or its content is not readable.
            raise ServiceUnreachableError(f"the API server did not store Secret {name}")
        return written

    def _call(self, function: Any, *arguments: Any) -> Json | None:
        """Call the API server and return its JSON, None where the object does not exist."""
        try:
            response = function(*arguments, _request_timeout=REQUEST_SECONDS, _preload_content=False)
            body: Json = json.loads(response.data)
        except client.ApiException as error:
            if error.status == NOT_FOUND:
                return None
            raise ServiceUnreachableError(f"HTTP {error.status} {error.reason} from the API server") from error
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise ServiceUnreachableError(f"{type(error).__name__} from the API server") from error
        return body


class KeyVault:
    """One Azure key vault, by its https URL."""

    def __init__(self, credential: TokenCredential, url: str) -> None:
        self._credential, self._url = credential, url.rstrip("/")
        # No redirect, which would carry the access token to another host.
        self._pool = urllib3.PoolManager(ssl_context=ssl.create_default_context(), retries=False, timeout=REQUEST_SECONDS)

    def set(self, name: str, value: str, expires: datetime.datetime) -> None:
        """Write a secret; raise ServiceUnreachableError."""
        try:
            access = self._credential.get_token(f"{VAULT_RESOURCE}/.default").token
            response = self._pool.request(
                "PUT",
                f"{self._url}/secrets/{name}?api-version={VAULT_VERSION}",
                headers={"Authorization": f"Bearer {access}"},
                json={"value": value, "attributes": {"exp": int(expires.timestamp())}},
                redirect=False,
            )
        except (AzureError, urllib3.exceptions.HTTPError) as error:
            raise ServiceUnreachableError(f"{type(error).__name__} from the nodes' vault") from error
        if response.status != OK:
            raise ServiceUnreachableError(f"HTTP {response.status} from the nodes' vault")
