"""Waiting for API servers and looking for the hub, against real servers on this machine."""

from __future__ import annotations

import errno
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import dns.message
import dns.rcode
import dns.rrset
import pytest
from pulumi.dynamic import CheckResult

from components.inside_hub import InsideHubProvider
from components.ready import ApiServerNotReadyError, Endpoint, Obstacle, ReadyProvider, WaitTimes, obstacle_of, wait_until_ready
from components.x509 import Authority, Issued, Subject, issue_authority, issue_leaf

HOST = "localhost"
LIFE = timedelta(days=1)
PATIENT = WaitTimes(deadline=20, hopeless=20, between=0.02, progress=60)
HASTY = WaitTimes(deadline=0.2, hopeless=0.1, between=0.02, progress=60)
READY, STARTING = (200, "ok"), (500, "[-]etcd failed: reason withheld\nreadyz check failed")


class _Server(ThreadingHTTPServer):
    """Answers /readyz with one answer after the other, the last for ever."""

    daemon_threads = True

    def __init__(self, leaf: Issued, folder: Path, answers: Sequence[tuple[int, str]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers, self.asked = list(answers), 0
        pem = folder / "server.pem"
        pem.write_text(leaf.certificate + leaf.private_key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that does not trust the server and disconnects."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        status, body = self.server.answers[min(self.server.asked, len(self.server.answers) - 1)]
        self.server.asked += 1
        if self.path != "/readyz":
            status, body = 404, "not found"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it so
        """Nothing goes to the terminal."""


def _authority() -> Authority:
    issued = issue_authority("test CA", LIFE, datetime.now(UTC))
    return Authority(issued.certificate, issued.private_key)


def _leaf(authority: Authority, host: str = HOST) -> Issued:
    return issue_leaf(Subject("kube-apiserver", (), (host,), (), ("server",)), authority, LIFE, datetime.now(UTC))


@contextmanager
def _serving(leaf: Issued, folder: Path, answers: Sequence[tuple[int, str]]) -> Iterator[_Server]:
    server = _Server(leaf, folder, answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return _authority()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def test_a_ready_server_is_asked_once(authority: Authority, tmp_path: Path) -> None:
    with _serving(_leaf(authority), tmp_path, [READY]) as server:
        wait_until_ready(Endpoint(HOST, server.server_port, authority.certificate), PATIENT, pytest.fail)
        assert server.asked == 1


def test_a_server_that_starts_late_is_waited_for_with_progress_lines(authority: Authority, tmp_path: Path) -> None:
    said: list[str] = []
    talkative = WaitTimes(deadline=20, hopeless=20, between=0.02, progress=0)
    with _serving(_leaf(authority), tmp_path, [STARTING, STARTING, STARTING, READY]) as server:
        wait_until_ready(Endpoint(HOST, server.server_port, authority.certificate), talkative, said.append)
        assert server.asked == 4
    assert len(said) == 3
    assert said[0] == (
        f"localhost:{server.server_port}: not ready after 0 s of at most 20 s: 500 [-]etcd failed: reason withheld readyz check failed"
    )


def test_an_answer_of_200_that_is_not_ok_is_not_ready(authority: Authority, tmp_path: Path) -> None:
    with _serving(_leaf(authority), tmp_path, [(200, "welcome")]) as server, pytest.raises(ApiServerNotReadyError) as caught:
        wait_until_ready(Endpoint(HOST, server.server_port, authority.certificate), HASTY, pytest.fail)
    assert caught.value.value == "200 welcome"


def test_a_server_that_is_never_ready_ends_with_value_bound_reason_and_remedy(authority: Authority, tmp_path: Path) -> None:
    with _serving(_leaf(authority), tmp_path, [STARTING]) as server, pytest.raises(ApiServerNotReadyError) as caught:
        wait_until_ready(Endpoint(HOST, server.server_port, authority.certificate), HASTY, pytest.fail)
    assert str(caught.value) == (
        f"localhost:{server.server_port}: 500 [-]etcd failed: reason withheld readyz check failed after 0.2 s: no API server is ready; "
        "read the consoles of the API servers' scale set and of the etcd machines in Azure, then run pulumi up again"
    )
    assert caught.value.bound == 0.2


def test_no_server_at_all_is_waited_for_until_the_deadline(authority: Authority) -> None:
    with pytest.raises(ApiServerNotReadyError, match=r"Connection refused after 0\.2 s: no API server is ready"):
        wait_until_ready(Endpoint(HOST, _free_port(), authority.certificate), HASTY, pytest.fail)


def test_a_server_of_another_authority_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    with _serving(_leaf(_authority()), tmp_path, [READY]) as server, pytest.raises(ApiServerNotReadyError) as caught:
        wait_until_ready(Endpoint(HOST, server.server_port, authority.certificate), HASTY, pytest.fail)
    assert "certificate verify failed" in caught.value.value
    assert caught.value.reason == "the certificate is not the cluster's"
    assert caught.value.bound == 0.1
    assert server.asked == 0


def test_a_server_with_another_name_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    with _serving(_leaf(authority, "api.other.example"), tmp_path, [READY]) as server, pytest.raises(ApiServerNotReadyError) as caught:
        wait_until_ready(Endpoint(HOST, server.server_port, authority.certificate), HASTY, pytest.fail)
    assert caught.value.reason == "the certificate is not the cluster's"


def test_a_name_that_does_not_resolve_means_to_run_inside_the_hub(authority: Authority) -> None:
    with pytest.raises(ApiServerNotReadyError, match=r"the name does not resolve; run pulumi from inside the hub's network") as caught:
        wait_until_ready(Endpoint("api.dev.invalid", 6443, authority.certificate), HASTY, pytest.fail)
    assert "\n" not in str(caught.value)
    assert caught.value.bound == 0.1


def test_an_address_without_a_route_means_to_run_inside_the_hub() -> None:
    assert obstacle_of(OSError(errno.ENETUNREACH, "Network is unreachable")) is Obstacle.UNROUTED
    assert obstacle_of(OSError(errno.EHOSTUNREACH, "No route to host")) is Obstacle.UNROUTED
    assert obstacle_of(TimeoutError("timed out")) is Obstacle.STARTING


def test_the_resource_is_complete_only_when_a_server_is_ready(
    authority: Authority, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with _serving(_leaf(authority), tmp_path, [READY]) as server:
        props = {"host": HOST, "port": float(server.server_port), "ca_certificate": authority.certificate}
        created = ReadyProvider().create(props)
        assert (created.id, created.outs) == (HOST, props)
        assert ReadyProvider().update(HOST, {}, props).outs == props
        assert server.asked == 2
    assert capsys.readouterr().out == ""


ZONE = "dev.fleet.internal."


class _Resolver(socketserver.BaseRequestHandler):
    """Answers DNS over TCP for one zone, as the hub's resolver does."""

    def handle(self) -> None:
        (length,) = struct.unpack("!H", self.request.recv(2))
        query = dns.message.from_wire(self.request.recv(length))
        answer = dns.message.make_response(query)
        if str(query.question[0].name) == ZONE:
            answer.answer.append(dns.rrset.from_text(ZONE, 60, "IN", "SOA", "azureprivatedns.net. host.example. 1 2 3 4 5"))
        else:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        wire = answer.to_wire()
        self.request.sendall(struct.pack("!H", len(wire)) + wire)


@contextmanager
def _resolver(handler: type[socketserver.BaseRequestHandler]) -> Iterator[int]:
    with socketserver.TCPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def _look(port: int, zone: str = ZONE) -> CheckResult:
    return InsideHubProvider().check({}, {"resolver": "127.0.0.1", "port": float(port), "zone": zone, "gateway": "dev-hub-gateway"})


def test_a_resolver_that_knows_the_hubs_zone_means_being_inside_the_hub() -> None:
    with _resolver(_Resolver) as port:
        assert not _look(port).failures


def test_a_resolver_that_does_not_know_the_zone_is_another_networks() -> None:
    with _resolver(_Resolver) as port:
        (failure,) = _look(port, "southcentralus.fleet.internal.").failures
    assert "does not serve southcentralus.fleet.internal. (NXDOMAIN)" in failure.reason


def test_a_network_that_accepts_every_connection_is_not_the_hub() -> None:
    with _resolver(socketserver.BaseRequestHandler) as port:
        (failure,) = _look(port).failures
    assert "does not answer within 5 s" in failure.reason


def test_outside_the_hub_one_line_says_so_and_what_to_do() -> None:
    port = _free_port()
    (failure,) = _look(port).failures
    assert failure.reason == (
        f"the hub's resolver 127.0.0.1:{port} does not answer within 5 s (Connection refused): "
        "this machine is not in the hub's network; dial in to VPN gateway dev-hub-gateway, or use a machine in the hub's runner subnet"
    )
