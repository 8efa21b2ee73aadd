"""A run's folder and ports are its own, and are free again when it has ended."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from rehearsal.local_cluster.run_directory import EPHEMERAL, MAX_PATH_LENGTH, RunDirectory, RunDirectoryError, parent_folder


def test_the_folder_is_its_owners_alone_short_and_gone_afterwards() -> None:
    with RunDirectory() as run:
        assert stat.S_IMODE(run.path.stat().st_mode) == stat.S_IMODE(run.path.parent.stat().st_mode) == 0o700
        assert len(str(run.path)) <= MAX_PATH_LENGTH
        (run.path / "machine/etc").mkdir(parents=True)
        (run.path / "machine/etc/key.pem").write_text("secret")
    assert not run.path.exists()
    assert not list(run.path.parent.glob(f"{run.path.name}*"))


def test_an_exception_ends_the_run_too() -> None:
    def fail() -> None:
        with RunDirectory() as run:
            (run.path / "file").write_text("something")
            left.append(run.path)
            raise ZeroDivisionError

    left: list[Path] = []
    with pytest.raises(ZeroDivisionError):
        fail()
    assert not left[0].exists()


def test_a_port_is_the_same_for_the_same_name_and_nobody_elses() -> None:
    with RunDirectory() as one, RunDirectory() as other:
        names = [f"etcd-{index}" for index in range(20)]
        ports = [one.port(name) for name in names]
        assert ports == [one.port(name) for name in names]
        assert len(set(ports)) == len(ports)
        assert set(ports).isdisjoint(other.port(name) for name in names)


def test_ports_lie_outside_the_ephemeral_range_and_can_be_listened_on() -> None:
    low, high = (int(word) for word in EPHEMERAL.read_text().split())
    with RunDirectory() as run:
        for name in ("one", "two", "three"):
            port = run.port(name)
            assert not low <= port <= high
            with socket.create_server(("127.0.0.1", port)):
                pass


def test_a_port_that_a_stranger_listens_on_is_not_given() -> None:
    with RunDirectory() as run:
        first = run.port("first")
        with socket.create_server(("127.0.0.1", first + 1)):
            assert run.port("second") not in (first, first + 1)


def test_ports_that_are_used_up_are_refused_in_a_sentence() -> None:
    def ask_for_all(run: RunDirectory) -> None:
        for index in range(101):
            run.port(f"port {index}")

    with RunDirectory() as run, pytest.raises(RunDirectoryError, match=r"port \d+: none of the 100 ports \d+-\d+ is free; end other runs"):
        ask_for_all(run)


def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    base = Path(f"/tmp/{tmp_path.name[:10]}-{os.getpid()}")  # noqa: S108 - made here, and short
    shared = base / f"gpufleet-{os.getuid()}"
    shared.mkdir(parents=True)
    shared.chmod(0o755)
    try:
        with pytest.raises(RunDirectoryError, match="only its owner may enter; remove it"):
            RunDirectory(base)
    finally:
        shared.rmdir()
        base.rmdir()


def test_a_path_too_long_for_sockets_is_refused_with_its_length(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"has \d+ characters, more than the 54 .* set TMPDIR to a shorter folder"):
        RunDirectory(tmp_path / ("long" * 20))


def test_runs_are_kept_where_programs_can_be_executed() -> None:
    assert not os.statvfs(parent_folder()).f_flag & os.ST_NOEXEC


def test_what_is_to_be_done_first_is_done_while_the_folder_stands_the_latest_first() -> None:
    done: list[tuple[str, bool]] = []
    with RunDirectory() as run:
        run.before_end(lambda: done.append(("first", run.path.exists())))
        run.before_end(lambda: done.append(("second", run.path.exists())))
    run.close()
    assert done == [("second", True), ("first", True)]
