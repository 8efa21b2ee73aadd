"""First client certificate of the kubelet: Azure's attested data proves this machine to gpufleet's approver.

The nonce of the attested data is a hash of the request's public key, so that nobody can use the document with another key. The key stays
the same over all tries, because the approver certifies only one key. The kubelet renews the certificate by itself.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import random
import re
import ssl
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cni.node.errors import NodeNetworkError, shown

SETTINGS = Path("/etc/gpufleet/join.json")
TOKEN = "bootstrap-token"  # noqa: S105 - a name
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
ANNOTATION = "gpufleet.io/attested-data"
ISSUERS_ANNOTATION = "gpufleet.io/attested-data-issuers"
ISSUER_HOSTS = frozenset(
    {"cacerts.digicert.com", "cacerts.digicert.cn", "cacerts.geotrust.com", "caissuers.microsoft.com", "www.microsoft.com"}
)
"""Hosts that issuers' certificates are downloaded from:
https://learn.microsoft.com/azure/security/fundamentals/azure-certificate-authority-details#certificate-downloads-and-revocation-lists"""
ISSUER_BYTES = 16_384
MOST_ISSUERS = 3
PEM = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n", re.DOTALL)
ISSUER_URL = re.compile(r"CA Issuers - URI:(\S+)")
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
IMDS_VERSION = "2021-12-13"
IMDS_TRIES = 8
"""Requests to the metadata service until an answer is accepted, with pauses of 1, 2, 4, … 30 seconds."""
LONGEST_PAUSE_SECONDS = 30.0
APPROVAL_SECONDS = 900.0
"""Time in which a request is approved: longer than the node's lease after a crash, and than a delay of Azure's lists."""
LONGEST_POLL_SECONDS = 15.0
REQUEST_SECONDS = 30.0
AGAIN = "the unit tries again; if the error persists, look at the journal of gpufleet-csr-approver on the API servers"

Json = dict[str, Any]
Say = Callable[[str], None]


def get_certificate(settings: Path, imds: str, say: Say) -> None:
    """Get and store the first client certificate, unless there is one; NodeNetworkError if it cannot be had now."""
    wanted: Json = json.loads(settings.read_text())
    stored = Path(wanted["certificate"])
    write_kubeconfig(wanted)
    if stored.exists():
        return
    key = own_key(stored)
    node = str(ask_imds(imds, "instance/compute", "", say)["osProfile"]["computerName"]).lower()
    document = attested_document(imds, nonce_of(key), say)
    body = signing_request(node, key, document, missing_issuers(base64.b64decode(document), say))
    server = ApiServer(wanted["server"], wanted["authority"], read_token(wanted))
    name = str(server.ask(REQUESTS, body)["metadata"]["name"])
    say(f"waits for the approval of signing request {name}")
    store(stored, await_certificate(server, name, say), key)
    say(f"has the first client certificate of node {node}")


def openssl(*arguments: str, given: bytes = b"") -> bytes:
    """Return the output of the openssl program for its input."""
    try:
        done = subprocess.run(("openssl", *arguments), input=given, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.stdout
    except subprocess.CalledProcessError as error:
        raise NodeNetworkError(f"openssl {arguments[0]}", f"exit status {error.returncode}", "0", AGAIN) from None


def own_key(certificate: Path) -> Path:
    """Return the file of this machine's key beside the certificate, created at the first try and only readable for root."""
    key = certificate.with_name("gpufleet-join.key")
    if not key.exists():
        key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        following = key.with_name(f"{key.name}.next")
        following.unlink(missing_ok=True)
        os.close(os.open(following, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(following))
        following.chmod(0o600)
        following.rename(key)
    return key


def nonce_of(key: Path) -> str:
    """Return the nonce for attested data of a key: base32 of 160 bits of SHA-256 over the public key, 32 letters and digits."""
    public = openssl("pkey", "-in", str(key), "-pubout", "-outform", "DER")
    return base64.b32encode(hashlib.sha256(public).digest()[:20]).decode()


def ask_imds(imds: str, path: str, more: str, say: Say, accept: Callable[[Json], bool] = lambda _: True) -> Json:
    """Return an answer of the metadata service that is accepted, tried IMDS_TRIES times; NodeNetworkError without one."""
    url = f"{imds}/metadata/{path}?api-version={IMDS_VERSION}{more}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    why = ""
    for number in range(IMDS_TRIES):
        if number:
            pause = min(2.0 ** (number - 1), LONGEST_PAUSE_SECONDS)
            say(f"{url.partition('?')[0]}: {why}; next try in {pause:.0f} s")
            time.sleep(pause)
        try:
            with opener.open(urllib.request.Request(url, headers={"Metadata": "true"}), timeout=10) as answer:
                found: Json = json.loads(answer.read())
            if accept(found):
                return found
            why = "an answer to an earlier request"
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = str(getattr(error, "reason", error))
    raise NodeNetworkError(url.partition("?")[0], why, f"an answer within {IMDS_TRIES} tries", AGAIN)


def content_nonce(answer: Json) -> str:
    """Return the nonce in attested data: JSON inside DER. The approver verifies the signature, and this machine need not."""
    document = base64.b64decode(str(answer["signature"]))
    text = document[document.find(b'"nonce"') :].split(b'"', 4)
    return text[3].decode("ascii", "replace") if document.find(b'"nonce"') >= 0 and len(text) > 3 else ""


def attested_document(imds: str, nonce: str, say: Say) -> str:
    """Return attested data for a nonce in base64; the service is known to return a cached document for an earlier nonce:
    https://github.com/MicrosoftDocs/azure-docs/issues/43938"""
    return str(ask_imds(imds, "attested/document", f"&nonce={nonce}", say, lambda answer: content_nonce(answer) == nonce)["signature"])


def missing_issuers(document: bytes, say: Say) -> str:
    """Return in PEM the issuers' certificates that a document lacks, downloaded from the URLs that its certificates name.

    Azure's documents do not always contain them: https://github.com/gravitational/teleport/pull/68004. The machine downloads them, because
    the API servers' machines have no way to the internet. The approver trusts none of them by itself.
    """
    certificates = PEM.findall(openssl("pkcs7", "-inform", "DER", "-print_certs", given=document).decode())
    subjects = {_hash(one, "-subject_hash") for one in certificates}
    found: list[str] = []
    for one in certificates:
        if _hash(one, "-issuer_hash") in subjects or len(found) == MOST_ISSUERS:
            continue
        url = ISSUER_URL.search(openssl("x509", "-noout", "-ext", "authorityInfoAccess", given=one.encode()).decode())
        issuer = download_issuer(url[1], say) if url is not None else ""
        if issuer:
            subjects.add(_hash(issuer, "-subject_hash"))
            found.append(issuer)
            certificates.append(issuer)
    return "".join(found)


def _hash(certificate: str, which: str) -> str:
    """Return openssl's hash of the subject or the issuer of a certificate in PEM."""
    return openssl("x509", "-noout", which, given=certificate.encode()).decode().strip()


def allowed_url(url: str) -> bool:
    """Return whether an issuer's certificate may be downloaded from a URL: HTTP from one of ISSUER_HOSTS, without port or user."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() in ISSUER_HOSTS and url.isascii() and url.isprintable()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which can lead to any host."""

    def redirect_request(self, *_: object) -> None:
        return None


def download_issuer(url: str, say: Say) -> str:
    """Return the certificate at a URL in PEM; nothing if it cannot be had, because the approver may have the chain without it."""
    if not allowed_url(url):
        say(f"does not download an issuer's certificate from {shown(url)}: Microsoft does not list the host")
        return ""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
    try:
        with opener.open(url, timeout=10) as answer:
            content = answer.read(ISSUER_BYTES + 1)
        form = "PEM" if content.lstrip().startswith(b"-----BEGIN") else "DER"
        return openssl("x509", "-inform", form, given=content).decode() if len(content) <= ISSUER_BYTES else ""
    except (OSError, ValueError, http.client.HTTPException, NodeNetworkError) as error:
        say(f"no issuer's certificate from {shown(url)}: {error}")
        return ""


def write_kubeconfig(settings: Json) -> None:
    """Write the kubelet's kubeconfig, unless it has this content; it contains paths and no secret."""
    cluster = {"server": settings["server"], "certificate-authority": settings["authority"]}
    user = {"client-certificate": settings["certificate"], "client-key": settings["certificate"]}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": "machine", "user": user}],
        "contexts": [{"name": "machine", "context": {"cluster": "cluster", "user": "machine"}}],
        "current-context": "machine",
    }
    file, text = Path(settings["kubeconfig"]), json.dumps(document, indent=1) + "\n"
    if not file.exists() or file.read_text() != text:
        following = file.with_name(f"{file.name}.next")
        following.write_text(text)
        following.rename(file)


def token_manifest(secrets: Json, directory: str) -> Json:
    """Return the settings with which gpufleet-fetch-secrets reads the bootstrap token into a folder; secrets are the machine's own."""
    own = {key: secrets[key] for key in ("vault", "identity")}
    return {**own, "directory": directory, "secrets": {TOKEN: "token"}, "keep": [TOKEN], "compose": {}}


def read_token(settings: Json) -> str:
    """Return the current bootstrap token, which gpufleet-fetch-secrets reads from the vault; it does not remain in the file system."""
    folder = Path(settings["run"])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file, manifest = folder / f"{TOKEN}.pem", folder / "secrets.json"
    file.unlink(missing_ok=True)
    manifest.write_text(json.dumps(token_manifest(json.loads(Path(settings["secrets"]).read_text()), str(folder))))
    try:
        status = subprocess.run((settings["fetch"], str(manifest)), check=False).returncode
        if status != 0 or not file.exists():
            raise NodeNetworkError("bootstrap token", f"exit status {status} of {settings['fetch']}", "a token in the nodes' vault", AGAIN)
        return file.read_text().strip()
    finally:
        file.unlink(missing_ok=True)


class ApiServer:
    """The API servers, with a bootstrap token."""

    def __init__(self, url: str, authority: str, token: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        https = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=authority))
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), https)

    def ask(self, path: str, body: Json | None = None) -> Json:
        """Return the answer to a GET, or to a POST of a body; NodeNetworkError without one, which does not contain the token."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}{path}", data=data, headers=self._headers)
        try:
            with self._opener.open(request, timeout=REQUEST_SECONDS) as answer:
                found: Json = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise NodeNetworkError(self._url, f"HTTP {error.code}", "HTTP 200 or 201", AGAIN) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise NodeNetworkError(self._url, f"no answer ({getattr(error, 'reason', error)})", "HTTP 200 or 201", AGAIN) from None
        return found


def signing_request(node: str, key: Path, document: str, issuers: str = "") -> Json:
    """Return the CertificateSigningRequest of a node for a key, with attested data and certificates for its chain."""
    annotations = {ANNOTATION: document} | ({ISSUERS_ANNOTATION: issuers} if issuers else {})
    request = openssl("req", "-new", "-key", str(key), "-subj", f"/O=system:nodes/CN=system:node:{node}")
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "node-csr-", "annotations": annotations},
        "spec": {"request": base64.b64encode(request).decode(), "signerName": SIGNER, "usages": ["digital signature", "client auth"]},
    }


def certificate_of(found: Json) -> bytes | None:
    """Return the certificate of a signing request, None while it is pending; NodeNetworkError if it was denied."""
    status = found.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] in ("Denied", "Failed"):
            value = f"{condition['type'].lower()}: {condition.get('message')}"
            raise NodeNetworkError(f"signing request {found['metadata']['name']}", value, "approved", AGAIN)
    return base64.b64decode(status["certificate"]) if status.get("certificate") else None


def await_certificate(server: ApiServer, name: str, say: Say) -> bytes:
    """Return the certificate of a signing request, read until it is approved; NodeNetworkError after APPROVAL_SECONDS."""
    end, pause = time.monotonic() + APPROVAL_SECONDS, 0.5
    while time.monotonic() < end:
        time.sleep(random.uniform(0.5, 1.0) * pause)
        pause = min(pause * 1.5, LONGEST_POLL_SECONDS)
        try:
            found = server.ask(f"{REQUESTS}/{name}")
        except NodeNetworkError as error:
            say(str(error))
            continue
        certificate = certificate_of(found)
        if certificate is not None:
            return certificate
    raise NodeNetworkError(f"signing request {shown(name)}", f"pending for {APPROVAL_SECONDS:.0f} s", "approved", AGAIN)


def store(link: Path, certificate: bytes, key: Path) -> None:
    """Store certificate and key as the kubelet does, in a dated file and a link to it, and delete the key's own file.

    https://github.com/kubernetes/client-go/blob/v0.36.3/util/certificate/certificate_store.go
    """
    dated = link.with_name(time.strftime("kubelet-client-%Y-%m-%d-%H-%M-%S.pem", time.gmtime()))
    dated.unlink(missing_ok=True)
    with os.fdopen(os.open(dated, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(certificate.rstrip() + b"\n" + key.read_bytes())
        file.flush()
        os.fsync(file.fileno())
    following = link.with_name(f"{link.name}.next")
    following.unlink(missing_ok=True)
    following.symlink_to(dated)
    following.rename(link)
    key.unlink()
