"""Leaked reservations, from host-local's files, containerd's list and the running plugins."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from cni.node import addresses
from cni.node.commands import CommandError

OLD = time.time() - 2 * addresses.IN_FLIGHT_SECONDS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """host-local's folder, with a reservation of long ago for each of two sandboxes."""
    made = tmp_path / "gpufleet"
    made.mkdir()
    (made / "last_reserved_ip.0").write_text("10.0.0.6")
    reserve(made, "10.0.0.5", "alive\r\neth0")
    reserve(made, "10.0.0.6", "dead\r\neth0")
    return made


def reserve(folder: Path, address: str, text: str, when: float = OLD) -> None:
    (folder / address).write_text(text)
    os.utime(folder / address, (when, when))


def containerd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    """A ctr that answers as containerd's does: one id a line."""
    program = tmp_path / "bin" / "ctr"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def held(folder: Path) -> list[str]:
    return [one.address for one in addresses.read_reservations(folder)]


def test_an_address_whose_sandbox_is_gone_is_freed_and_a_live_one_is_not(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    containerd(monkeypatch, tmp_path, "printf 'alive\\nsome-container\\n'")
    assert addresses.free_leaked(folder) == ["address 10.0.0.6 freed: sandbox dead is gone"]
    assert held(folder) == ["10.0.0.5"]
    assert (folder / "last_reserved_ip.0").exists()


def test_a_young_reservation_is_spared_for_its_sandbox_may_not_be_recorded_yet(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    containerd(monkeypatch, tmp_path, "echo alive")
    reserve(folder, "10.0.0.6", "starting\r\neth0", time.time())
    assert addresses.free_leaked(folder) == []
    assert held(folder) == ["10.0.0.5", "10.0.0.6"]


def test_a_sandbox_whose_plugin_still_runs_is_spared_however_old(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    containerd(monkeypatch, tmp_path, "echo alive; echo dead")
    # A name of its own: plugins are looked for on the whole machine, where other tests run too.
    busy = uuid4().hex
    reserve(folder, "10.0.0.7", f"{busy}\r\neth0")
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "CNI_CONTAINERID": busy}) as plugin:
        while busy not in addresses.sandboxes_in_flight():
            time.sleep(0.01)
        assert addresses.free_leaked(folder) == []
        plugin.kill()
    assert addresses.free_leaked(folder) == [f"address 10.0.0.7 freed: sandbox {busy} is gone"]


def test_an_empty_reservation_is_freed_at_once(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    containerd(monkeypatch, tmp_path, "printf 'alive\\ndead\\n'")
    reserve(folder, "10.0.0.7", "", time.time())
    assert addresses.free_leaked(folder) == ["address 10.0.0.7 freed: its reservation was empty"]


@pytest.mark.parametrize("script", ["echo 'connection refused' >&2; exit 1", 'rm -- "$0"; exec ctr'])
def test_where_the_runtime_cannot_be_asked_nothing_is_freed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    containerd(monkeypatch, tmp_path, script)
    with pytest.raises(CommandError, match="ctr"):
        addresses.free_leaked(folder)
    assert held(folder) == ["10.0.0.5", "10.0.0.6"]


def test_an_address_that_was_taken_anew_while_the_runtime_was_asked_is_spared(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = f"rm {folder}/10.0.0.6; printf 'fresh\\r\\neth0' >{folder}/10.0.0.6; touch -d @{OLD} {folder}/10.0.0.6; echo alive"
    containerd(monkeypatch, tmp_path, again)
    assert addresses.free_leaked(folder) == []
    assert held(folder) == ["10.0.0.5", "10.0.0.6"]


def test_without_an_old_reservation_the_runtime_is_not_even_asked(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    containerd(monkeypatch, tmp_path, "exit 1")
    for address in ("10.0.0.5", "10.0.0.6"):
        os.utime(folder / address)
    assert addresses.free_leaked(folder) == []
    assert addresses.free_leaked(tmp_path / "missing") == []


def test_nothing_is_freed_while_a_plugin_holds_the_lock(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    containerd(monkeypatch, tmp_path, "echo alive")
    monkeypatch.setattr(addresses, "HOST_LOCAL_LOCK_SECONDS", 0.1)
    hold = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", hold, str(folder / "lock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as plugin:
        assert plugin.stdout is not None
        plugin.stdout.readline()
        with pytest.raises(Exception, match="another process holds this lock"):
            addresses.free_leaked(folder)
        plugin.kill()
    assert held(folder) == ["10.0.0.5", "10.0.0.6"]
