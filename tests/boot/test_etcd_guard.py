"""An etcd member with an empty disk starts only if it has never been a member and no cluster runs without it, or if it was added again."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.boot import scripts
from components.boot.etcd import JOIN_ENVIRONMENT
from components.boot.etcd_flags import DATA_DIRECTORY

PROGRAM = Path(__file__).parents[2] / "components/boot/files/etcd_guard.sh"


class Member:
    """One member's places on its machine."""

    def __init__(self, folder: Path) -> None:
        self.data, self.marker, self.join = folder / "data", folder / "os-disk/marker", folder / "run/join.env"
        self.ring = folder / "ring"
        self.no_ring_runs()
        self.environment = {
            "PATH": os.environ["PATH"],
            "GPUFLEET_ETCD_DATA": str(self.data),
            "GPUFLEET_ETCD_MARKER": str(self.marker),
            "GPUFLEET_ETCD_JOIN": str(self.join),
            "GPUFLEET_ETCD_PAUSE": "0.05",
            "GPUFLEET_ETCD_RING": str(self.ring),
        }
        self.waiting: list[subprocess.Popen[str]] = []

    def no_ring_runs(self) -> None:
        """Response of the other members: this machine may start a new cluster."""
        self.ring.write_text("#!/bin/sh\nexit 0\n")
        self.ring.chmod(0o755)

    def a_ring_runs(self) -> None:
        """Response of the other members: a cluster runs without this machine. The guard passes its arguments on."""
        self.ring.write_text('#!/bin/sh\necho "a ring runs beside $*"\nexit 3\n')

    def guard(self, step: str) -> int:
        """Return the status of a step that must not wait."""
        return subprocess.run(("sh", str(PROGRAM), step), env=self.environment, timeout=10, check=False).returncode

    def wait(self) -> subprocess.Popen[str]:
        """The guard before a start that must wait, once it has said so."""
        process = subprocess.Popen(("sh", str(PROGRAM), "may-start", "--name=m3"), env=self.environment, stderr=subprocess.PIPE, text=True)
        self.waiting.append(process)
        return process

    def start(self) -> None:
        """Write data and become part of a quorum, as etcd does after its start."""
        (self.data / "member").mkdir(parents=True, exist_ok=True)
        assert self.guard("started") == 0

    def redeploy(self) -> None:
        """Erase the disk and the state in memory."""
        (self.data / "member").rmdir()
        self.join.unlink(missing_ok=True)


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    """A member on a new machine; a guard that still waits at the end is stopped."""
    made = Member(tmp_path)
    yield made
    for process in made.waiting:
        process.kill()
        process.communicate()


def test_a_new_machine_starts_and_starts_again(member: Member) -> None:
    assert member.guard("may-start") == 0
    member.start()
    assert member.guard("may-start") == 0


def test_a_first_start_that_wrote_nothing_may_be_repeated(member: Member) -> None:
    assert member.guard("may-start") == 0
    assert member.guard("may-start") == 0
    assert not member.marker.exists()


def test_a_member_that_wrote_data_but_never_reached_a_quorum_counts_as_one(member: Member) -> None:
    assert member.guard("may-start") == 0
    (member.data / "member").mkdir(parents=True)
    assert member.guard("may-start") == 0
    assert member.marker.exists()


def test_a_redeployed_member_waits_and_says_how_it_is_replaced(member: Member) -> None:
    member.start()
    member.redeploy()
    process = member.wait()
    assert process.stderr is not None
    said = process.stderr.readline()
    assert "this machine has been an etcd member and its disk is empty; it waits" in said
    assert all(word in said for word in ("member remove", "member add NAME --learner", "member promote", str(member.join)))
    time.sleep(0.5)
    assert process.poll() is None


def test_a_new_machine_beside_a_ring_that_runs_waits_until_it_is_let_in(member: Member) -> None:
    member.a_ring_runs()
    process = member.wait()
    assert process.stderr is not None
    assert "a ring runs beside --name=m3; it waits. One member at a time" in process.stderr.readline()
    time.sleep(0.3)
    assert process.poll() is None
    assert not member.marker.exists()
    member.join.parent.mkdir(parents=True)
    member.join.write_text("ETCD_INITIAL_CLUSTER_STATE=existing\n")
    assert process.wait(timeout=10) == 0


def test_a_member_with_its_data_starts_whatever_the_ring_does(member: Member) -> None:
    member.start()
    member.a_ring_runs()
    assert member.guard("may-start") == 0


def test_a_ring_that_cannot_be_asked_after_is_no_leave_to_start(member: Member) -> None:
    member.ring.unlink()
    process = member.wait()
    time.sleep(0.3)
    assert process.poll() is None


def test_no_message_names_a_file_of_this_project_that_does_not_exist() -> None:
    root = PROGRAM.parents[3]
    named = re.findall(r"playbooks/[\w.-]+", PROGRAM.read_text())
    assert [name for name in named if not (root / name).exists()] == []


def test_a_waiting_member_starts_once_it_is_let_in_and_the_leave_is_used_up_by_its_start(member: Member) -> None:
    member.start()
    member.redeploy()
    process = member.wait()
    assert process.stderr is not None
    process.stderr.readline()
    member.join.parent.mkdir(parents=True)
    member.join.write_text("ETCD_INITIAL_CLUSTER_STATE=existing\n")
    assert process.wait(timeout=10) == 0
    member.start()
    assert not member.join.exists()
    member.redeploy()
    second = member.wait()
    assert second.stderr is not None
    assert "waits" in second.stderr.readline()


def test_the_guard_looks_where_etcd_and_its_unit_look() -> None:
    text = PROGRAM.read_text()
    assert f"GPUFLEET_ETCD_DATA:-{DATA_DIRECTORY}}}" in text
    assert f"GPUFLEET_ETCD_JOIN:-{JOIN_ENVIRONMENT}}}" in text
    assert f"GPUFLEET_ETCD_RING:-{scripts.ETCD_RING.path}}}" in text


def test_a_step_that_does_not_exist_is_refused(member: Member) -> None:
    assert member.guard("restart") == 64
