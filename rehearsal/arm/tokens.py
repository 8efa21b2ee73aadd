"""Identity platform that issues and checks access tokens: signed for a client and a resource, valid for one hour.

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import secrets
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from components.errors import GpufleetError

LIFETIME = 3_600
"""Seconds for which a token is good; Entra ID's own last 60 to 90 minutes."""
ALGORITHM = "RS256"
MANAGEMENT = ("https://management.azure.com", "https://management.core.windows.net")
VAULT = ("https://vault.azure.net",)
CLAIMS = ("exp", "aud", "oid", "iss")
REMEMBERED = 10_000
"""Tokens whose signature is not checked again."""


class InvalidTokenError(GpufleetError):
    """An invalid token, or an invalid request for one: HTTP status, error code and sentence."""

    def __init__(self, status: int, error: str, message: str) -> None:
        self.status, self.error, self.message = status, error, message
        super().__init__(f"{error}: {message}")

    def body(self) -> dict[str, Any]:
        """Return the error in the format of the identity platform."""
        code = self.message.partition(":")[0].removeprefix("AADSTS")
        codes = [int(code)] if code.isdigit() else []
        return {"error": self.error, "error_description": self.message, "error_codes": codes, "trace_id": str(uuid.uuid4())}


@dataclass(frozen=True)
class ClientIdentity:
    """The stored identity of an embedded Azure: the client that may sign in, its secret, and the key that signs tokens."""

    client: str
    secret: str
    key: rsa.RSAPrivateKey
    key_id: str

    @classmethod
    def load_or_create(cls, folder: Path) -> ClientIdentity:
        """Return the identity in a state directory. A new one is stored: clients stay signed in after a restart. Raises ValueError."""
        path = folder / "identity.json"
        if not path.is_file():
            made = cls(str(uuid.uuid4()), secrets.token_urlsafe(24), rsa.generate_private_key(65_537, 2_048), secrets.token_hex(8))
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
                json.dump({"client": made.client, "secret": made.secret, "key_id": made.key_id, "key": made._pem()}, out)
            return made
        decoded = json.loads(path.read_bytes())
        key = serialization.load_pem_private_key(decoded["key"].encode(), None)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise TypeError("its key is no RSA key")
        return cls(decoded["client"], decoded["secret"], key, decoded["key_id"])

    def _pem(self) -> str:
        form = serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


@dataclass
class IdentityPlatform:
    """The identity platform of one tenant at a base URL."""

    tenant: str
    base: str
    identity: ClientIdentity
    _good: dict[str, tuple[float, str, str]] = field(default_factory=dict)

    def grant(self, form: Mapping[str, str], tenant: str, authorization: str = "") -> dict[str, Any]:
        """Return a token for a client-credentials request; raise InvalidTokenError."""
        self.check_tenant(tenant)
        if form.get("grant_type") != "client_credentials":
            kind = form.get("grant_type")
            raise InvalidTokenError(
                400, "unsupported_grant_type", f"AADSTS70003: grant type {kind!r} is not supported; use client_credentials."
            )
        client, secret = _credentials(form, authorization)
        if client != self.identity.client:
            raise InvalidTokenError(400, "unauthorized_client", f"AADSTS700016: Application with identifier '{client}' was not found.")
        if not hmac.compare_digest(self.identity.secret.encode(), secret.encode()):
            raise InvalidTokenError(401, "invalid_client", "AADSTS7000215: Invalid client secret provided.")
        scope = form.get("scope", "").split(" ")[0]
        audience = form.get("resource") or scope.removesuffix("/.default")
        if not audience:
            raise InvalidTokenError(400, "invalid_request", "AADSTS90014: The required field 'scope' is missing from the credential.")
        if "resource" not in form and not scope.endswith("/.default"):
            raise InvalidTokenError(400, "invalid_scope", f"AADSTS1002012: The scope {scope} is not valid; it must end in /.default.")
        return self.issue(client, audience)

    def check_tenant(self, tenant: str) -> None:
        """Reject another tenant; raise InvalidTokenError."""
        if tenant.lower() not in (self.tenant.lower(), "organizations", "common"):
            raise InvalidTokenError(400, "invalid_request", f"AADSTS90002: Tenant '{tenant[:100]}' not found.")

    def issue(self, client: str, audience: str, principal: str = "") -> dict[str, Any]:
        """Return a token for a client id and an audience, with the fields of the OAuth response; principal is its object id, if any."""
        now = int(time.time())
        oid = principal or str(uuid.uuid5(uuid.NAMESPACE_URL, f"principal/{client}"))
        claims = {
            "aud": audience,
            "iss": f"{self.base}/{self.tenant}/v2.0",
            "iat": now,
            "nbf": now - 60,
            "exp": now + LIFETIME,
            "appid": client,
            "azp": client,
            "oid": oid,
            "sub": oid,
            "tid": self.tenant,
            "ver": "2.0",
        }
        token = jwt.encode(claims, self.identity.key, ALGORITHM, {"kid": self.identity.key_id})
        return {"token_type": "Bearer", "expires_in": LIFETIME, "ext_expires_in": LIFETIME, "access_token": token}

    def check(self, authorization: str, audiences: Iterable[str]) -> str:
        """Return the object id of the principal of an Authorization header for one of the audiences; raise InvalidTokenError."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            message = "Authentication failed. The 'Authorization' header is missing or is no bearer token."
            raise InvalidTokenError(401, "AuthenticationFailed", message)
        known = self._good.get(token)
        if known is None or known[0] <= time.time():
            known = self._read(token)
        audience = known[2]
        if audience not in audiences and not f"{audience}/".startswith(f"{self.base}/"):
            message = f"The access token is for '{audience}', which is none of the audiences here: {', '.join(audiences)}."
            raise InvalidTokenError(401, "InvalidAuthenticationTokenAudience", message)
        return known[1]

    def _read(self, token: str) -> tuple[float, str, str]:
        """Return the expiry, the principal and the audience of a token; raise InvalidTokenError."""
        try:
            # The port may be another after a restart, and the clients stay signed in.
            claims = jwt.decode(
                token,
                self.identity.key.public_key(),
                [ALGORITHM],
                options={"verify_aud": False, "verify_iss": False, "require": list(CLAIMS)},
            )
        except jwt.ExpiredSignatureError:
            raise InvalidTokenError(401, "ExpiredAuthenticationToken", "The access token has expired; get a new one.") from None
        except (jwt.InvalidTokenError, ValueError) as error:
            # Bytes that are no UTF-8 are a ValueError.
            raise InvalidTokenError(401, "InvalidAuthenticationToken", f"The access token is invalid: {error}.") from None
        if claims.get("tid") != self.tenant:
            raise InvalidTokenError(401, "InvalidAuthenticationTokenTenant", f"The access token is not from tenant {self.tenant}.")
        if len(self._good) > REMEMBERED:
            self._good.clear()
        audience = str(claims["aud"]).rstrip("/")
        if (old := str(claims["iss"]).partition(f"/{self.tenant}")[0]) != self.base and audience.startswith(old):
            audience = self.base + audience.removeprefix(old)
        found = (float(claims["exp"]), str(claims["oid"]), audience)
        self._good[token] = found
        return found


def _credentials(form: Mapping[str, str], authorization: str) -> tuple[str, str]:
    """Return client id and secret, from the form or from a Basic header."""
    if not authorization.lower().startswith("basic "):
        return form.get("client_id", ""), form.get("client_secret", "")
    try:
        decoded = base64.b64decode(authorization[6:], validate=True).decode()
    except (binascii.Error, ValueError):
        raise InvalidTokenError(401, "invalid_client", "AADSTS7000215: The Authorization header is no Basic credential.") from None
    client, _, secret = decoded.partition(":")
    return client, secret
