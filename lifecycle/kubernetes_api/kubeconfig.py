"""Access to an API server from a kubeconfig: server, certificate authority, client certificate or token."""

from __future__ import annotations

import base64
import binascii
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from components.errors import GpufleetError


class KubeconfigError(GpufleetError):
    """A kubeconfig that cannot be used: its path or description, the reason, and the remedy."""

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason
        self.remedy = "give a kubeconfig with a server, its authority, and a client certificate or a token"
        super().__init__(f"{where}: {reason}; {self.remedy}")


@dataclass(frozen=True)
class ApiAccess:
    """Access to an API server.

    host and port of the server; name that its certificate must carry; TLS settings with the client's certificate; bearer token or "";
    the context's namespace or "".
    """

    host: str
    port: int
    name: str
    tls: ssl.SSLContext
    token: str = field(repr=False)
    namespace: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that authenticate a request; empty if the TLS client certificate does."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def read(path: Path) -> ApiAccess:
    """Return the access of a kubeconfig's current context, or raise KubeconfigError."""
    try:
        text = path.read_text()
    except OSError as error:
        raise KubeconfigError(str(path), error.strerror or type(error).__name__) from error
    except ValueError as error:
        raise KubeconfigError(str(path), f"{type(error).__name__} {error}") from error
    return parse(text, str(path), path.parent)


def parse(text: str, where: str, folder: Path, *, context: str = "", cluster: str = "") -> ApiAccess:
    """Return the access of a kubeconfig's text, or raise KubeconfigError.

    where is its name in messages; paths in it are relative to the folder. An empty context means the current one, an empty cluster the
    context's.
    """
    try:
        document = yaml.safe_load(text)
        chosen = _named(document["contexts"], context or document["current-context"])["context"]
        reached = _named(document["clusters"], cluster or chosen["cluster"])["cluster"]
        user = _named(document["users"], chosen["user"])["user"]
        url = urlsplit(reached["server"])
        port = url.port or 443
        tls = ssl.create_default_context(cadata=_pem(reached, "certificate-authority", folder).decode())
        if certificate := _pem(user, "client-certificate", folder):
            with _unnamed(certificate) as chain, _unnamed(_pem(user, "client-key", folder)) as key:
                tls.load_cert_chain(chain, key)
    except OSError as error:
        raise KubeconfigError(where, error.strerror or type(error).__name__) from error
    except (KeyError, TypeError, StopIteration, AttributeError, ValueError, yaml.YAMLError) as error:
        raise KubeconfigError(where, f"{type(error).__name__} {error}".splitlines()[0]) from error
    if url.scheme != "https" or not url.hostname:
        raise KubeconfigError(where, f"server {reached['server']} is no https address")
    name, namespace = str(reached.get("tls-server-name", url.hostname)), str(chosen.get("namespace", ""))
    return ApiAccess(url.hostname, port, name, tls, str(user.get("token", "")), namespace)


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _pem(holder: Mapping[str, str], name: str, folder: Path) -> bytes:
    """Return a key or certificate from the kubeconfig or from the file that it names; empty if it has neither."""
    if data := holder.get(f"{name}-data"):
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{name}-data is no base64") from error
    return (folder / holder[name]).read_bytes() if name in holder else b""


@contextmanager
def _unnamed(pem: bytes) -> Iterator[str]:
    """Yield the path of a nameless file: ssl reads keys only from files, and none may remain if the process is killed."""
    with tempfile.TemporaryFile() as file:
        file.write(pem)
        file.seek(0)
        yield f"/dev/fd/{file.fileno()}"
