#!/usr/bin/env python3
"""Read this machine's secrets from its Key Vault with its managed identity, check them, and put them in place all at once."""

from __future__ import annotations

import base64
import http.client
import json
import os
import random
import re
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

MANIFEST = "/etc/gpufleet/secrets.json"
IMDS = os.environ.get("GPUFLEET_IMDS", "http://169.254.169.254")
DEADLINE_SECONDS = float(os.environ.get("GPUFLEET_DEADLINE_SECONDS", "900"))
KEEP_AFTER_SECONDS = min(60.0, DEADLINE_SECONDS)
BEGIN_KEY = re.compile(r"-----BEGIN ((EC |RSA )?PRIVATE KEY)-----\n[A-Za-z0-9+/=\n]+-----END \1-----\s*")
PUBLIC_KEY = re.compile(r"-----BEGIN PUBLIC KEY-----\n[A-Za-z0-9+/=\n]+-----END PUBLIC KEY-----\s*")
TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
PLACEHOLDER = re.compile(r"\{\{([a-z0-9-]+)\}\}")


class Refused(Exception):
    """A reason to give up or to try again, in words that hold no secret."""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the access token to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


# No proxy from the environment: neither the metadata service nor a private endpoint is behind one.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect())


def say(text: str) -> None:
    print(f"gpufleet-fetch-secrets: {text}", file=sys.stderr, flush=True)


def get(url: str, headers: dict[str, str]) -> dict[str, Any]:
    """One GET that answers a JSON object; Refused carries the status alone, for a body may quote the request."""
    try:
        with OPENER.open(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            body = json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise Refused(f"HTTP {error.code}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise Refused(f"{type(reason).__name__}: {getattr(reason, 'strerror', None) or 'no usable answer'}") from None
    if not isinstance(body, dict):
        raise Refused("the answer is no JSON object")
    return body


class Vault:
    """One Key Vault, read with a token that is renewed when it is refused."""

    def __init__(self, uri: str, identity: str, deadline: float) -> None:
        if not uri.startswith("https://"):
            raise Refused(f"the vault's address {uri} is not https")
        self.uri, self.identity, self.deadline, self.token = uri.rstrip("/"), identity, deadline, ""

    def _token(self) -> str:
        if not self.token:
            query = {"api-version": "2018-02-01", "resource": "https://vault.azure.net", "msi_res_id": self.identity}
            url = f"{IMDS}/metadata/identity/oauth2/token?{urllib.parse.urlencode(query)}"
            try:
                self.token = str(get(url, {"Metadata": "true"})["access_token"])
            except KeyError:
                raise Refused("no access_token from the metadata service") from None
            except Refused as error:
                raise Refused(f"no token from the metadata service: {error}") from None
        return self.token

    def _once(self, name: str) -> str:
        token = self._token()
        try:
            value = get(f"{self.uri}/secrets/{name}?api-version=7.4", {"Authorization": f"Bearer {token}"}).get("value")
        except Refused as error:
            self.token = "" if str(error) == "HTTP 401" else token
            raise
        if not isinstance(value, str) or not value:
            raise Refused("the vault's answer has no value")
        return value

    def read(self, name: str) -> str:
        """Value of a secret, tried with growing, scattered pauses until the deadline."""
        tries = 0
        while True:
            try:
                return self._once(name)
            except Refused as error:
                wait = random.uniform(0.5, 1.0) * 2.0 ** min(tries, 5)
                tries += 1
                if time.monotonic() + wait > self.deadline:
                    raise Refused(f"secret {name}: {error}; the deadline has passed after {tries} tries") from None
                say(f"secret {name}: {error}; next try in {wait:.1f} s")
                time.sleep(wait)


def check(name: str, kind: str, value: str) -> None:
    """Refuse a value that is not of its kind."""
    if kind == "certificate":
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=value)
        except (ssl.SSLError, ValueError):
            raise Refused(f"secret {name} is no PEM certificate") from None
    elif kind == "key32":
        try:
            size = len(base64.b64decode(value, validate=True))
        except ValueError:
            size = -1
        if size != 32:
            raise Refused(f"secret {name} is not 32 bytes in base64")
    elif not {"private-key": BEGIN_KEY, "public-key": PUBLIC_KEY, "token": TOKEN}[kind].fullmatch(value):
        raise Refused(f"secret {name} is no {kind}")


def files_of(manifest: dict[str, Any], values: dict[str, str]) -> dict[str, str]:
    """Content of every file by its path: one per secret that is kept, and those composed from secrets."""
    files = {f"{manifest['directory']}/{name}.pem": values[name] for name in manifest["keep"]}
    for path, lines in manifest["compose"].items():
        files[path] = PLACEHOLDER.sub(lambda found: values[found[1]].rstrip("\n"), "\n".join(lines) + "\n")
    return files


def write_aside(path: Path, content: str) -> Path:
    """Write a file's next content beside it, for root's eyes only; gives its path."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.next")
    aside.unlink(missing_ok=True)
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return aside


def check_pairs(asides: dict[Path, Path]) -> None:
    """Refuse a certificate whose private key is another's."""
    for path, aside in asides.items():
        key = asides.get(path.with_name(path.name.replace("-cert.pem", "-key.pem")))
        if key and key != aside:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(aside, key)
            except ssl.SSLError:
                raise Refused(f"{path.name} does not belong to the key beside it") from None


def put_in_place(files: dict[str, str]) -> None:
    """Write every file, or none."""
    asides: dict[Path, Path] = {}
    try:
        for path, content in files.items():
            asides[Path(path)] = write_aside(Path(path), content)
        check_pairs(asides)
        for target, aside in asides.items():
            aside.rename(target)
    except OSError as error:
        raise Refused(f"cannot write {error.filename}: {error.strerror}") from None
    finally:
        for aside in asides.values():
            aside.unlink(missing_ok=True)


def main(arguments: list[str]) -> int:
    os.umask(0o077)
    manifest = json.loads(Path(arguments[1] if len(arguments) > 1 else MANIFEST).read_text())
    kinds: dict[str, str] = manifest["secrets"]
    paths = list(files_of(manifest, dict.fromkeys(kinds, "")))
    complete = all(Path(path).exists() for path in paths)
    deadline = time.monotonic() + (KEEP_AFTER_SECONDS if complete else DEADLINE_SECONDS)
    try:
        vault = Vault(manifest["vault"], manifest["identity"], deadline)
        values = {name: vault.read(name) for name in kinds}
        for name, kind in kinds.items():
            check(name, kind, values[name])
        put_in_place(files_of(manifest, values))
    except Refused as error:
        # A machine that restarts while the vault is out of reach must come back: an etcd quorum does not wait for Key Vault.
        say(f"{error}; {'the files of the last successful run stay' if complete else 'nothing was written'}")
        return 0 if complete else 1
    say(f"{len(paths)} files in place")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
