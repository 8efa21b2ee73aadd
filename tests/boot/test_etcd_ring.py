"""A machine that finds a running cluster without it starts no second cluster; members of a new cluster do not wait for each other."""

from __future__ import annotations

import errno
import json
import runpy
import shlex
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from azure_on_loopback import certificate
from boot_machines import machines, regions

PROGRAM = Path(__file__).parents[2] / "components/boot/files/etcd_ring.py"
OWN = "https://etcd-1.test:2380"
Ask = Callable[..., tuple[int, str]]


def entry(name: str, peer: str, started: bool) -> dict[str, Any]:
    """A member as etcd 3.6 lists it on its peer port; one that has never run has no client URLs."""
    return {"id": 1, "peerURLs": [peer], "name": name, **({"clientURLs": [peer.replace("2380", "2379")]} if started else {})}


FOUNDER = "https://etcd-0.test:2380"


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate that is its own authority, and its key: the members' own."""
    paths = tmp_path / "member.pem", tmp_path / "member-key.pem"
    for path, text in zip(paths, certificate(), strict=True):
        path.write_text(text)
    return paths


@pytest.fixture
def ask(keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return status and output of the program for member etcd-1 with the given peers."""
    monkeypatch.setenv("GPUFLEET_ETCD_PROBE_SECONDS", "1")

    def call(*peers: str, authority: Path = keys[0]) -> tuple[int, str]:
        flags = ("--name=etcd-1", f"--own={OWN}", f"--authority={authority}", f"--certificate={keys[0]}", f"--key={keys[1]}")
        done = subprocess.run((sys.executable, str(PROGRAM), *flags, *peers), capture_output=True, text=True, timeout=30, check=False)
        assert done.stderr == ""
        return done.returncode, done.stdout

    return call


@pytest.fixture
def peer(keys: tuple[Path, Path]) -> Iterator[tuple[str, list[Any]]]:
    """Serve a member list to clients with a certificate of the authority; return URL and list."""
    listed: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(listed).encode()
            self.send_response(200 if self.path == "/members" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
            """Say nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*keys)
    context.load_verify_locations(keys[0])
    context.verify_mode = ssl.CERT_REQUIRED
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}", listed
    server.shutdown()
    server.server_close()
    thread.join()


def test_where_no_peer_answers_the_first_member_starts(ask: Ask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert ask("https://127.0.0.1:1", f"https://127.0.0.1:{silent.getsockname()[1]}") == (0, "")


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), True),
        (TimeoutError("timed out"), True),
        (socket.gaierror(socket.EAI_NONAME, "no such name"), True),
        (socket.gaierror(socket.EAI_AGAIN, "the name server does not answer"), False),
        (OSError(errno.ENETUNREACH, "no route of our own"), False),
        (ConnectionResetError(errno.ECONNRESET, "reset"), False),
    ],
    ids=repr,
)
def test_only_an_error_that_speaks_of_the_peer_counts_as_its_absence(error: OSError, verdict: bool) -> None:
    assert runpy.run_path(str(PROGRAM))["absent"](error) is verdict


def test_members_that_form_their_first_quorum_do_not_wait_for_each_other(ask: Ask, peer: tuple[str, list[Any]]) -> None:
    url, listed = peer
    listed += [entry("etcd-0", FOUNDER, started=False), entry("etcd-1", OWN, started=False)]
    assert ask(url) == (0, "")


def test_the_last_machine_of_a_first_start_comes_in_though_the_others_have_a_quorum(ask: Ask, peer: tuple[str, list[Any]]) -> None:
    url, listed = peer
    listed += [entry("etcd-0", FOUNDER, started=True), entry("etcd-1", OWN, started=False)]
    assert ask(url) == (0, "")


def test_a_machine_that_a_grown_plan_adds_waits_beside_the_ring_that_runs(ask: Ask, peer: tuple[str, list[Any]]) -> None:
    url, listed = peer
    listed += [entry("etcd-0", FOUNDER, started=True)]
    assert ask("https://127.0.0.1:1", url) == (3, "a ring founded without this machine runs: etcd-0\n")


def test_a_member_that_was_added_but_not_let_in_waits(ask: Ask, peer: tuple[str, list[Any]]) -> None:
    url, listed = peer
    listed += [entry("etcd-0", FOUNDER, started=True), entry("", OWN, started=False)]
    assert ask(url)[0] == 3


def test_a_member_that_lost_its_os_disk_too_waits(ask: Ask, peer: tuple[str, list[Any]]) -> None:
    url, listed = peer
    listed += [entry("etcd-0", FOUNDER, started=True), entry("etcd-1", OWN, started=True)]
    assert ask(url) == (3, "a ring of which this machine has been a member runs: etcd-0, etcd-1\n")


def test_an_answer_that_is_no_members_is_no_leave_to_start(ask: Ask, peer: tuple[str, list[Any]], tmp_path: Path) -> None:
    url, listed = peer
    other = tmp_path / "other.pem"
    other.write_text(certificate()[0])
    status, said = ask(url, authority=other)
    assert status == 3
    assert f"{url} answers, but not as a member of this ring: " in said
    assert ask(f"{url}/elsewhere")[0] == 3
    listed.append("no member")
    assert ask(url)[0] == 3


def test_every_member_asks_all_others_and_is_told_its_first_ring_by_the_environment() -> None:
    for region in regions():
        for cluster in region.clusters:
            for ring in (cluster.etcd, cluster.events_etcd):
                unit = machines()[f"{region.name}/{cluster.name}/{ring.role}"].file("/etc/systemd/system/etcd.service").content
                lines = unit.replace("\\\n", " ").splitlines()
                words = shlex.split(next(line for line in lines if line.startswith("ExecStartPre=")))
                urls = {member.name: f"https://{member.dns_name}:2380" for member in ring.members}
                assert [word for word in words if word.startswith("https://")] == list(urls.values())[1:]
                assert f"--own={next(iter(urls.values()))}" in words
                assert f"Environment=ETCD_INITIAL_CLUSTER={','.join(f'{name}={url}' for name, url in urls.items())}" in lines
                # A flag would win over what the machine is told when it joins a ring of other members.
                assert "--initial-cluster=" not in unit
