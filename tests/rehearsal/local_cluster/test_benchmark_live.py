"""Checks of the security benchmark that need a running control plane: access, TLS versions, and files on disk."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import uuid

import pytest
from plane_tls import context, get, identity, speaks_http2
from running_plane import RunningPlane
from waiting import until

from components.boot.etcd_flags import HTTP_URL
from components.plan.model import API_SERVER_PORT, ETCD_CLIENT_PORT

AUDIT_SECONDS = 60
"""The log is written in batches, at most 30 s old."""
TOKEN_CACHE_SECONDS = 40
HTTP_PORT = int(HTTP_URL.rpartition(":")[2])
ACCEPTED = {f"ECDHE-{key}-AES{size}" for key in ("ECDSA", "RSA") for size in ("128-GCM-SHA256", "256-GCM-SHA384")}
"""The four rendered suites: our key is ECDSA, and the one that kube-apiserver makes to call itself is RSA."""


def port(running: RunningPlane) -> int:
    return running.control.api_servers[0].port(API_SERVER_PORT)


def admin(running: RunningPlane) -> ssl.SSLContext:
    return context(running.control.authority, identity(running.control.api_servers[0], "admin"))


def listens(at: int) -> bool:
    """Return whether a port of this machine accepts a connection."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", at)) == 0


@pytest.mark.parametrize(
    ("path", "status"),
    [("/livez", 200), ("/readyz", 200), ("/healthz", 200), ("/version", 401), ("/metrics", 401), ("/api", 401), ("/openapi/v3", 401)],
)
def test_nobody_without_a_name_sees_more_than_health(running_plane: RunningPlane, path: str, status: int) -> None:
    assert get(port(running_plane), path, context(running_plane.control.authority, None)).status == status


def test_nobody_profiles_the_api_server(running_plane: RunningPlane) -> None:
    assert get(port(running_plane), "/version", admin(running_plane)).status == 200
    assert get(port(running_plane), "/debug/pprof/profile", admin(running_plane)).status == 404


@pytest.mark.parametrize("program_port", [10257, 10259])
def test_nobody_profiles_the_programs_beside_it(running_plane: RunningPlane, program_port: int) -> None:
    machine = running_plane.control.api_servers[0]
    trust = context(None, identity(machine, "admin"))
    at = machine.port(program_port)
    # They begin when the API server answers, which tells them only then who signs for clients.
    until(lambda: listens(at) and get(at, "/metrics", trust).status == 200, f"port {program_port} tells an administrator its metrics")
    assert get(at, "/debug/pprof/profile", trust).status == 404


def test_a_service_gets_no_external_address(running_plane: RunningPlane) -> None:
    spec = {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "drawn", "namespace": "default"}, "spec": spec}
    with pytest.raises(AssertionError, match="externalIPs"):
        running_plane.kubectl("create", "-f", "-", document=service)


def test_deeds_are_written_down(running_plane: RunningPlane) -> None:
    name, confidential = f"audited-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    for kind, body in (("Secret", {"stringData": {"key": confidential}}), ("ServiceAccount", {})):
        document = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, **body}
        running_plane.kubectl("create", "-f", "-", document=document)
    logs = [machine.path("/var/log/kubernetes/audit.log") for machine in running_plane.control.api_servers]

    def written() -> list[dict[str, object]]:
        lines = [line for log in logs if log.exists() for line in log.read_text().splitlines() if name in line]
        found = [json.loads(line) for line in lines]
        made = [entry for entry in found if entry["verb"] == "create"]
        return made if {entry["objectRef"]["resource"] for entry in made} == {"secrets", "serviceaccounts"} else []

    levels = {entry["objectRef"]["resource"]: entry["level"] for entry in until(written, "both deeds are in the log", AUDIT_SECONDS)}
    assert levels == {"secrets": "Metadata", "serviceaccounts": "Request"}
    assert not any(confidential in log.read_text() for log in logs if log.exists())
    assert all(not log.stat().st_mode & 0o077 for log in logs if log.exists())
    running_plane.kubectl("delete", "secret,serviceaccount", name)


def test_a_deleted_accounts_token_ends(running_plane: RunningPlane) -> None:
    name = f"short-{uuid.uuid4().hex[:8]}"
    running_plane.kubectl("create", "serviceaccount", name)
    token = running_plane.kubectl("create", "token", name).strip()
    trust = context(running_plane.control.authority, None)

    def status() -> int:
        return get(port(running_plane), "/api/v1/nodes", trust, token).status

    assert status() == 403, "known, and allowed nothing"
    running_plane.kubectl("delete", "serviceaccount", name)
    until(lambda: status() == 401, "the token is known no more", TOKEN_CACHE_SECONDS)


@pytest.mark.parametrize("version", ["tls1", "tls1_1"])
def test_old_tls_is_refused(running_plane: RunningPlane, version: str) -> None:
    servers = {"API server": port(running_plane), "etcd": running_plane.control.etcd[0].port(ETCD_CLIENT_PORT)}
    for what, number in servers.items():
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{number}", f"-{version}", "-cipher", "ALL:@SECLEVEL=0"]
        result = subprocess.run(command, input="", capture_output=True, text=True, timeout=20, check=False)
        assert "alert protocol version" in result.stderr, what


def test_only_strong_suites_are_offered(running_plane: RunningPlane) -> None:
    every = ssl.create_default_context()
    every.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    names = [one["name"] for one in every.get_ciphers() if one["protocol"] != "TLSv1.3"]
    assert len(names) > 50
    assert {name for name in names if _accepted(port(running_plane), name)} == ACCEPTED


def _accepted(server: int, suite: str) -> bool:
    """Return whether a server accepts TLS 1.2 with a cipher suite."""
    trust = context(None, None)
    trust.maximum_version = ssl.TLSVersion.TLSv1_2
    trust.set_ciphers(f"{suite}:@SECLEVEL=0")
    try:
        with socket.create_connection(("127.0.0.1", server), 10) as plain, trust.wrap_socket(plain) as secured:
            return secured.cipher() is not None
    except (ssl.SSLError, ConnectionError):
        return False


def test_a_secret_lies_encrypted_in_etcd(running_plane: RunningPlane) -> None:
    name, confidential = f"sealed-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
        "stringData": {"key": confidential},
    }
    running_plane.kubectl("create", "-f", "-", document=document)
    lies = running_plane.etcdctl(running_plane.control.etcd[0], "get", f"/registry/secrets/default/{name}", "--print-value-only")
    assert lies.startswith(b"k8s:enc:secretbox:v1:key1:")
    assert confidential.encode() not in lies
    assert running_plane.get("secret", name)["data"]
    running_plane.kubectl("delete", "secret", name)


def test_data_of_etcd_is_its_owners_alone(running_plane: RunningPlane) -> None:
    for machine in (*running_plane.control.etcd, *running_plane.control.events):
        assert machine.path("/var/lib/etcd/data").stat().st_mode & 0o777 == 0o700


def test_etcd_talks_to_nobody_without_a_certificate(running_plane: RunningPlane) -> None:
    for machine in (*running_plane.control.etcd, *running_plane.control.events):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            speaks_http2(machine.port(ETCD_CLIENT_PORT), context(None, None))


def test_what_etcd_answers_without_tls_is_no_key(running_plane: RunningPlane) -> None:
    for machine in (running_plane.control.etcd[0], running_plane.control.events[0]):
        assert "etcdserver" in get(machine.port(HTTP_PORT), "/version", None).body
        for path in ("/v2/keys", "/v3/kv/range", "/v3/maintenance/snapshot", "/debug/pprof/heap"):
            assert get(machine.port(HTTP_PORT), path, None).status == 404, path


def test_the_clusters_own_certificates_open_no_etcd(running_plane: RunningPlane) -> None:
    server = running_plane.control.api_servers[0]
    for machine in (running_plane.control.etcd[0], running_plane.control.events[0]):
        assert speaks_http2(machine.port(ETCD_CLIENT_PORT), context(None, identity(server, "etcd-client")))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            speaks_http2(machine.port(ETCD_CLIENT_PORT), context(None, identity(server, "admin")))
