"""The balancer sends new connections to ready servers only and carries their bytes faithfully; as a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from backend_server import BackendServer, self_signed
from waiting import DEADLINE_SECONDS, until

from rehearsal.local_cluster.balancer.health_probe import Backend, ProbeSettings
from rehearsal.local_cluster.balancer.load_balancer import balancer_program, read_state, write_backends
from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.supervisor import Service, Supervisor

INTERVAL_SECONDS, FAILURES = 1.0, 3
"""Longer than a loaded machine keeps a server from its answer."""


class Balanced:
    """A balancer before three servers."""

    def __init__(self, run: RunDirectory, interval: float = INTERVAL_SECONDS, status: int = 200) -> None:
        certificate = self_signed(run.path / "certificate.pem")
        self.servers = [BackendServer(f"server-{index}", certificate, run.port(f"server-{index}")) for index in range(3)]
        for server in self.servers:
            server.status = status
        self.folder, self.port = run.path / "balancer", run.port("balancer")
        settings = ProbeSettings(interval, FAILURES)
        self.service: Service = Supervisor(run).add(balancer_program("balancer", self.folder, self.port, self.backends(), settings))
        self.service.start()
        self.service.wait_ready(DEADLINE_SECONDS)

    def backends(self) -> tuple[Backend, ...]:
        return tuple(Backend(server.name, "127.0.0.1", server.port) for server in self.servers)

    def up(self) -> set[str]:
        return {each["name"] for each in read_state(self.folder)["backends"] if each["up"]}

    def wait_up(self, *servers: int) -> None:
        until(lambda: self.up() == {f"server-{index}" for index in servers}, f"up are {servers}")

    def connect(self) -> tuple[socket.socket, str]:
        """A connection, and the name of the server that it reached; ConnectionResetError where none is up."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_SECONDS)
        try:
            connection.sendall(b"\n")
            return connection, _line(connection)
        except BaseException:
            connection.close()
            raise

    def reached(self, connections: int) -> Counter[str]:
        found: Counter[str] = Counter()
        for _ in range(connections):
            connection, name = self.connect()
            connection.close()
            found[name] += 1
        return found


def _line(connection: socket.socket) -> str:
    read = b""
    while not read.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            raise ConnectionResetError
        read += byte
    return read.decode().strip()


def everything(connection: socket.socket) -> bytes:
    """Return all bytes of a connection until its end."""
    read = bytearray()
    while said := connection.recv(2**20):
        read += said
    return bytes(read)


@contextlib.contextmanager
def balancing(interval: float = INTERVAL_SECONDS, status: int = 200) -> Iterator[Balanced]:
    with RunDirectory() as run:
        made = Balanced(run, interval, status)
        yield made
        for server in made.servers:
            server.close()


@pytest.fixture
def balanced() -> Iterator[Balanced]:
    with balancing() as made:
        yield made


def test_new_connections_are_spread_over_the_ready_servers(balanced: Balanced) -> None:
    balanced.wait_up(0, 1, 2)
    reached = balanced.reached(90)
    assert set(reached) == {"server-0", "server-1", "server-2"}
    assert min(reached.values()) >= 10


def test_a_server_that_says_it_is_not_ready_gets_no_new_connections_until_it_is_again(balanced: Balanced) -> None:
    balanced.wait_up(0, 1, 2)
    balanced.servers[1].status = 500
    balanced.wait_up(0, 2)
    assert "server-1" not in balanced.reached(30)
    assert next(each["last"] for each in read_state(balanced.folder)["backends"] if each["name"] == "server-1") == "500"
    balanced.servers[1].status = 200
    balanced.wait_up(0, 1, 2)
    assert "server-1" in balanced.reached(60)


def test_a_server_that_was_never_up_is_found_soon_after_it_is_however_long_the_interval() -> None:
    with balancing(interval=3600, status=500) as made:
        until(lambda: all(server.probes for server in made.servers), "the first probes")
        for server in made.servers:
            server.status = 200
        made.wait_up(0, 1, 2)
        assert set(made.reached(90)) == {"server-0", "server-1", "server-2"}


def test_a_server_that_does_not_answer_is_down_after_as_many_probes_as_told(balanced: Balanced) -> None:
    balanced.wait_up(0, 1, 2)
    before = balanced.servers[2].probes
    balanced.servers[2].status = None
    balanced.wait_up(0, 1)
    assert balanced.servers[2].probes >= before + FAILURES


def test_established_connections_outlive_the_readiness_of_their_server(balanced: Balanced) -> None:
    balanced.wait_up(0, 1, 2)
    connection, name = balanced.connect()
    with connection:
        for server in balanced.servers:
            server.status = 500
        balanced.wait_up()
        connection.sendall(b"still there?\n")
        # The first line break is the one that was sent to have the server begin.
        assert (_line(connection), _line(connection)) == ("", "still there?")
        flows = {each["name"]: each["flows"] for each in read_state(balanced.folder)["backends"]}
        assert flows[name] == 1


def test_without_a_ready_server_a_connection_is_reset(balanced: Balanced) -> None:
    # A first probe under way would otherwise still be answered with 200.
    balanced.wait_up(0, 1, 2)
    for server in balanced.servers:
        server.status = 500
    balanced.wait_up()
    refused = read_state(balanced.folder)["refused"]
    with pytest.raises(ConnectionResetError):
        balanced.connect()
    assert read_state(balanced.folder)["refused"] == refused + 1


def test_a_connection_ends_with_its_server(balanced: Balanced) -> None:
    balanced.wait_up(0, 1, 2)
    connection, name = balanced.connect()
    with connection:
        server = next(server for server in balanced.servers if server.name == name)
        server.close()
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            _talk_until_its_end(connection)
    until(lambda: name not in balanced.up(), "the dead server is down")
    assert name not in balanced.reached(20)


def _talk_until_its_end(connection: socket.socket) -> None:
    while connection.send(b"x"):
        if not connection.recv(1):
            return


def test_a_client_that_has_sent_all_still_gets_everything(balanced: Balanced) -> None:
    balanced.wait_up(0, 1, 2)
    connection, _ = balanced.connect()
    content = os.urandom(8 * 2**20)
    with connection:
        sender = threading.Thread(target=lambda: (connection.sendall(content), connection.shutdown(socket.SHUT_WR)))
        sender.start()
        assert everything(connection) == b"\n" + content + b"end"
        sender.join()
    until(lambda: read_state(balanced.folder)["flows"] == 0, "the flow has ended")


def test_a_server_that_does_not_read_holds_its_client_back_and_nobody_elses(balanced: Balanced) -> None:
    balanced.wait_up(0, 1, 2)
    slow, name = balanced.connect()
    server = next(server for server in balanced.servers if server.name == name)
    server.reading.clear()
    sent = 0
    with slow:
        slow.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while sent < 2**30:
                sent += slow.send(bytes(2**20))
        assert sent < 200 * 2**20
        assert balanced.service.usage().memory_bytes < 150 * 2**20
        assert sum(balanced.reached(20).values()) == 20
        slow.settimeout(DEADLINE_SECONDS)
        server.reading.set()
        reader: list[bytes] = []
        thread = threading.Thread(target=lambda: reader.append(everything(slow)))
        thread.start()
        slow.shutdown(socket.SHUT_WR)
        thread.join()
    assert reader[0] == b"\n" + bytes(sent) + b"end"


def test_a_thousand_connections_at_once_are_carried(balanced: Balanced) -> None:
    balanced.wait_up(0, 1, 2)
    with contextlib.ExitStack() as open_connections:
        connections = [open_connections.enter_context(balanced.connect()[0]) for _ in range(1000)]
        assert read_state(balanced.folder)["flows"] == 1000
        for index, connection in enumerate(connections):
            connection.sendall(f"{index}\n".encode())
        for index, connection in enumerate(connections):
            assert (_line(connection), _line(connection)) == ("", str(index))
    until(lambda: read_state(balanced.folder)["flows"] == 0, "all flows have ended")


def test_the_list_of_servers_is_read_again_at_a_hang_up_signal(balanced: Balanced) -> None:
    balanced.wait_up(0, 1, 2)
    connection, _ = balanced.connect()
    with connection:
        write_backends(balanced.folder, balanced.backends()[:1])
        balanced.service.kill(signal.SIGHUP)
        balanced.wait_up(0)
        assert set(balanced.reached(20)) == {"server-0"}
        connection.sendall(b"still there?\n")
        assert (_line(connection), _line(connection)) == ("", "still there?")
    assert balanced.service.restarts == 0


def test_a_balancer_at_rest_costs_next_to_nothing(balanced: Balanced) -> None:
    balanced.wait_up(0, 1, 2)
    probes = balanced.servers[0].probes
    before = balanced.service.usage().cpu_seconds
    until(lambda: balanced.servers[0].probes >= probes + 5, "five more probes")
    assert balanced.service.usage().cpu_seconds - before < 0.5


def test_the_state_of_a_balancer_that_does_not_run_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        read_state(tmp_path)
