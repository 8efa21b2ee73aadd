"""Acknowledged writes survive the server's death, and a write that cannot be stored is not acknowledged."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from arm_server import LOCATION, ArmServer, arm_server
from azure.core.exceptions import ClientAuthenticationError

from rehearsal.azure.directory_lock import DirectoryInUseError
from rehearsal.azure.directory_marker import MARKER, ForeignDirectoryError
from rehearsal.azure.state_directory import StateCorruptError, StateDirectory

GROUPS = "api-version=2025-04-01"
SECRETS = "api-version=7.6"
VAULTS = "api-version=2026-05-15"


def group(server: ArmServer, name: str) -> str:
    return f"/subscriptions/{server.subscription}/resourcegroups/{name}?{GROUPS}"


def hammer(server: ArmServer, worker: int, token: str, secrets: str, acknowledged: dict[str, Any], ended: threading.Event) -> None:
    """Make and delete groups, and write secrets, until the server dies; note what it acknowledged."""
    number = 0
    while not ended.is_set():
        number += 1
        name = f"w{worker}-{number}-{server.process.pid}"
        try:
            status, body, _ = server.ask("PUT", group(server, name), {"location": LOCATION, "tags": {"n": str(number)}}, token=token)
            if status == 201:
                acknowledged[name] = body["tags"]
            if number % 3 == 0:
                acknowledged.pop(name, None)
                if server.ask("DELETE", group(server, name), token=token)[0] not in (200, 202):
                    acknowledged[name] = body["tags"]
            status, body, _ = server.ask("PUT", f"/keyvault/kept-vault/secrets/{name}?{SECRETS}", {"value": name}, token=secrets)
            if status == 200:
                acknowledged[f"secret {name}"] = body["id"]
        except (OSError, HTTPException, ClientAuthenticationError):
            break
    server.close()


def check(server: ArmServer, acknowledged: dict[str, Any]) -> None:
    """Everything that was acknowledged is there."""
    token, secrets = server.token(), server.token("https://vault.azure.net")
    for name, expected in acknowledged.items():
        if name.startswith("secret "):
            status, body, _ = server.ask("GET", f"/keyvault/kept-vault/secrets/{name.partition(' ')[2]}?{SECRETS}", token=secrets)
            assert (status, body["id"], body["value"]) == (200, expected, name.partition(" ")[2])
        else:
            status, body, _ = server.ask("GET", group(server, name), token=token)
            assert (status, body.get("tags")) == (200, expected)


KILLS = int(os.environ.get("GPUFLEET_KILLS", "3"))
"""Kills in all; a complete run has 100."""
KILLS_OF_ONE = 10
"""Kills of one server at most, because a subscription has at most 980 groups."""


@pytest.mark.parametrize("kills", [min(KILLS_OF_ONE, KILLS - first) for first in range(0, KILLS, KILLS_OF_ONE)])
def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path, kills: int) -> None:
    acknowledged: dict[str, Any] = {}
    newest: dict[str, Any] = {}
    for turn in range(kills):
        with arm_server(tmp_path / "state") as server:
            if turn == 0:
                token = server.token()
                server.ask("PUT", group(server, "kept"), {"location": LOCATION}, token=token)
                vault = f"/subscriptions/{server.subscription}/resourceGroups/kept/providers/Microsoft.KeyVault/vaults/kept-vault?{VAULTS}"
                body = {"location": LOCATION, "properties": {"tenantId": server.tenant, "sku": {"family": "A", "name": "standard"}}}
                assert server.ask("PUT", vault, body, token=token)[0] in (200, 201)
                server.ask("POST", "/admin/clock", {"settle": True}, token=token)
            check(server, newest)
            acknowledged |= newest
            newest, ended = {}, threading.Event()
            token, secrets = server.token(), server.token("https://vault.azure.net")
            with ThreadPoolExecutor(8) as pool:
                for worker in range(8):
                    pool.submit(hammer, server, worker, token, secrets, newest, ended)
                ended.wait(0.7 + turn * 0.4 % 1.1)
                server.kill()
                ended.set()
    acknowledged |= newest
    with arm_server(tmp_path / "state") as server:
        check(server, acknowledged)
        assert len(acknowledged) > 10 * kills
        assert server.stop() == 0
    assert not list((tmp_path / "state").glob("journal-*"))
    with arm_server(tmp_path / "state") as server:
        check(server, acknowledged)


def test_time_that_was_told_of_does_not_go_back_and_clients_stay_signed_in(tmp_path: Path) -> None:
    with arm_server(tmp_path / "state", clock="manual") as server:
        token = server.token()
        for name in ("slow", "other"):
            server.ask("PUT", group(server, name), {"location": LOCATION}, token=token)
        tables = f"/subscriptions/{server.subscription}/resourceGroups/slow/providers/Microsoft.Network/routeTables/abc"
        _, _, headers = server.ask("PUT", f"{tables}?api-version=2026-03-01", {"location": LOCATION}, token=token)
        assert server.ask("GET", headers["Azure-AsyncOperation"], token=token)[1]["status"] == "InProgress"
        _, moved, _ = server.ask("POST", "/admin/clock", {"advance": "1h"}, token=token)
        assert server.ask("GET", headers["Azure-AsyncOperation"], token=token)[1]["status"] == "Succeeded"
        before, secret = server.base, server.environment["AZURE_CLIENT_SECRET"]
        server.kill()
    with arm_server(tmp_path / "state", clock="manual") as server:
        url = headers["Azure-AsyncOperation"].replace(before, server.base)
        assert server.ask("GET", url, token=token)[1]["status"] == "Succeeded"
        assert server.ask("GET", "/admin/clock", token=token)[1]["seconds"] == moved["seconds"]
        assert server.environment["AZURE_CLIENT_SECRET"] == secret


def test_keys_and_state_are_for_their_owner_alone(tmp_path: Path) -> None:
    with arm_server(tmp_path / "state") as server:
        server.ask("PUT", group(server, "mine"), {"location": LOCATION}, token=server.token())
        assert (tmp_path / "state").stat().st_mode & 0o077 == 0
        for path in (tmp_path / "state").iterdir():
            assert (path.suffix == ".pem" and path.stem in ("ca", "server")) or path.stat().st_mode & 0o077 == 0, path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_stops_acknowledging_until_there_is_room_again(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a disk")
    try:
        with arm_server(disk / "state") as server:
            token, made = server.token(), []
            for number in range(5_000):
                name = f"g{number}"
                status, body, _ = server.ask("PUT", group(server, name), {"location": LOCATION, "tags": {"t": "x" * 200}}, token=token)
                if status != 201:
                    break
                made.append(name)
            assert (status, body["error"]["code"]) == (503, "ServerBusy")
            assert server.ask("GET", group(server, made[0]), token=token)[0] == 503
            assert len(made) > 50
            for path in disk.glob("*.err"):
                path.unlink()
            (disk / "state" / "ca.pem").unlink()
            server.kill()
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        with arm_server(disk / "state") as server:
            token = server.token()
            for name in made:
                assert server.ask("GET", group(server, name), token=token)[0] == 200
            subprocess.run(["dd", "if=/dev/zero", f"of={disk}/filler", "bs=64k"], check=False, capture_output=True)
            statuses = [server.ask("PUT", group(server, f"h{number}"), {"location": LOCATION}, token=token)[0] for number in range(60)]
            assert 503 in statuses
            (disk / "filler").unlink()
            assert server.ask("PUT", group(server, "room-again"), {"location": LOCATION}, token=token)[0] == 201
            server.kill()
        with arm_server(disk / "state") as server:
            token = server.token()
            assert server.ask("GET", group(server, "room-again"), token=token)[0] == 200
            for number, status in enumerate(statuses):
                if status == 201:
                    assert server.ask("GET", group(server, f"h{number}"), token=token)[0] == 200
    finally:
        subprocess.run(["umount", disk], check=False)


def test_a_directory_has_one_holder_at_a_time(tmp_path: Path) -> None:
    with StateDirectory(tmp_path), pytest.raises(DirectoryInUseError, match=rf"in use by process {os.getpid()} \("):
        StateDirectory(tmp_path)
    (tmp_path / "lock").write_text('{"pid": 1, "command": "gpufleet up dev", "since": "2026-11-01 10:00:00", "start": "0"}')
    StateDirectory(tmp_path).close()
    assert (tmp_path / "lock").read_text() == ""


def test_a_directory_of_somebody_else_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    (tmp_path / "zoo").mkdir()
    refused = f"{tmp_path} contains thesis.tex and 1 more, which gpufleet did not write; give a new or an empty directory with --state"
    with pytest.raises(ForeignDirectoryError, match=re.escape(refused)):
        StateDirectory(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thesis.tex", "zoo"]
    (tmp_path / MARKER).write_text("Pulumi's engine\n")
    with pytest.raises(ForeignDirectoryError, match="contains Pulumi's engine, not embedded Azure"):
        StateDirectory(tmp_path)


@pytest.mark.parametrize("names", [(), ("lock",), ("lock", "state-000003.json", "ca.pem", "identity.json"), ("journal-000000.jsonl",)])
def test_a_new_directory_or_one_of_an_earlier_version_gets_the_marker(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).write_text("")
    StateDirectory(tmp_path).close()
    assert (tmp_path / MARKER).read_text().startswith("embedded Azure\n")
    (tmp_path / "notes.txt").write_text("a file beside the state")
    StateDirectory(tmp_path).close()


def test_a_torn_last_line_is_dropped_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    with StateDirectory(tmp_path) as directory:
        directory.replace({"a": 1})
        for number in range(3):
            directory.append({"n": number})
        directory.flush()
        journal = directory.journal
    with journal.open("ab") as out:
        out.write(b'{"n": 3')
    with StateDirectory(tmp_path) as directory:
        assert directory.saved() == {"a": 1}
        assert list(directory.since()) == [{"n": 0}, {"n": 1}, {"n": 2}]
        directory.append({"n": 3})
        directory.flush()
    with StateDirectory(tmp_path) as directory:
        assert [change["n"] for change in directory.since()] == [0, 1, 2, 3]
    journal.write_bytes(b'{"n": 0}\n{"n": \n{"n": 2}\n')
    with (
        StateDirectory(tmp_path) as directory,
        pytest.raises(StateCorruptError, match=r"cannot be read \(damaged at byte 16\); move it away \(mv .+ .+\.broken\) to begin anew"),
    ):
        list(directory.since())


def test_a_snapshot_that_was_not_finished_leaves_the_former_one_in_force(tmp_path: Path) -> None:
    with StateDirectory(tmp_path) as directory:
        directory.replace({"a": 1})
        directory.append({"n": 0})
        directory.flush()
    (tmp_path / "state-000002.part").write_text('{"half": ')
    with StateDirectory(tmp_path) as directory:
        assert directory.saved() == {"a": 1}
        assert list(directory.since()) == [{"n": 0}]
        assert not list(tmp_path.glob("*.part"))
        directory.replace({"a": 2})
    assert json.loads((tmp_path / "state-000002.json").read_text()) == {"a": 2}
    assert {path.name for path in tmp_path.iterdir()} == {"lock", MARKER, "state-000002.json"}
