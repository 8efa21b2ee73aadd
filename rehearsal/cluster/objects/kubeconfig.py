"""How an API server is reached and who asks, from a kubeconfig: server, authority, client certificate or token."""

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


class KubeconfigRefused(Exception):
    """A kubeconfig that cannot be used: path, what is wrong, and the remedy."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path, self.reason = path, reason
        self.remedy = "give a kubeconfig with a server, its authority, and a client certificate or a token"
        super().__init__(f"{path}: {reason}; {self.remedy}")


@dataclass(frozen=True)
class Access:
    """Where and as whom: host and port of the server, the name that its certificate must carry, TLS settings with the client's
    certificate in them, a bearer token or ""."""

    host: str
    port: int
    name: str
    tls: ssl.SSLContext
    token: str = field(repr=False)


def read(path: Path) -> Access:
    """Access by a kubeconfig's current context; KubeconfigRefused where it is none that can be used."""
    try:
        document = yaml.safe_load(path.read_text())
        context = _named(document["contexts"], document["current-context"])["context"]
        cluster = _named(document["clusters"], context["cluster"])["cluster"]
        user = _named(document["users"], context["user"])["user"]
        url = urlsplit(cluster["server"])
        tls = ssl.create_default_context(cadata=_pem(cluster, "certificate-authority", path).decode())
        if certificate := _pem(user, "client-certificate", path):
            with _unnamed(certificate) as chain, _unnamed(_pem(user, "client-key", path)) as key:
                tls.load_cert_chain(chain, key)
    except OSError as error:
        raise KubeconfigRefused(path, error.strerror or type(error).__name__) from error
    except (KeyError, TypeError, StopIteration, AttributeError, ValueError, yaml.YAMLError) as error:
        raise KubeconfigRefused(path, f"{type(error).__name__} {error}".splitlines()[0]) from error
    if url.scheme != "https" or not url.hostname:
        raise KubeconfigRefused(path, f"server {cluster['server']} is no https address")
    return Access(url.hostname, url.port or 443, cluster.get("tls-server-name", url.hostname), tls, user.get("token", ""))


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _pem(holder: Mapping[str, str], name: str, path: Path) -> bytes:
    """A key or certificate that stands in the kubeconfig, or in the file that it names; empty where there is neither."""
    if data := holder.get(f"{name}-data"):
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{name}-data is no base64") from error
    return (path.parent / holder[name]).read_bytes() if name in holder else b""


@contextmanager
def _unnamed(pem: bytes) -> Iterator[str]:
    """Path of a file without a name: ssl reads keys from files only, and none is to stay behind, however the process ends."""
    with tempfile.TemporaryFile() as file:
        file.write(pem)
        file.seek(0)
        yield f"/dev/fd/{file.fileno()}"
