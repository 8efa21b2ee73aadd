"""The command that serves: what it prints, what it refuses, its clocks, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from arm_server import LOCATION, ArmServer, arm_server

from gpufleet.azure import azure
from rehearsal.arm.listeners import ListenAddressError, read_address
from rehearsal.arm.time_source import InvalidClockError, read_clock
from stacks.file_problems import InvalidFileError


def gpufleet(*arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of the command line."""
    ended = subprocess.run(
        [Path(sys.executable).with_name("gpufleet"), *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("text", ["127.0.0.1:0", "localhost:8443", "[::1]:0", "127.8.9.10:65535"])
def test_addresses_of_this_machine_alone_are_listened_on(text: str) -> None:
    assert read_address(text)[1] == int(text.rpartition(":")[2])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0.0.0.0:0", "can be reached from other machines"),
        ("[::]:0", "can be reached from other machines"),
        ("192.168.1.4:443", "can be reached from other machines"),
        ("example.org:443", "no address of this machine"),
        ("127.0.0.1", "no address to listen on"),
        ("127.0.0.1:70000", "no address to listen on"),
        ("127.0.0.1:-1", "no address to listen on"),
        (":0", "no address to listen on"),
    ],
)
def test_other_addresses_are_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ListenAddressError, match=reason):
        read_address(text)


@pytest.mark.parametrize(("text", "factor"), [("real", 1.0), ("manual", 0.0), ("scaled:60", 60.0), ("scaled:0.5", 0.5)])
def test_a_clock_is_real_scaled_or_manual(text: str, factor: float) -> None:
    assert read_clock(text) == factor


@pytest.mark.parametrize("text", ["", "fast", "scaled", "scaled:0", "scaled:-1", "scaled:1e9", "scaled:9999999", "Real"])
def test_another_clock_is_refused(text: str) -> None:
    with pytest.raises(InvalidClockError, match="scaled:FACTOR"):
        read_clock(text)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["dev", "--listen", "0.0.0.0:0"], "can be reached from other machines"),
        (["dve"], "did you mean dev"),
        ([], "Missing argument 'REGION'"),
        (["dev", "--region", "dev"], "remove --region dev"),
        (["dev", "--scenario", "calmer"], "did you mean calm"),
        (["dev", "--clock", "sundial"], "no clock"),
        (["dev", "--state", "/proc/nowhere"], "/proc/nowhere"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(arguments: list[str], told: str) -> None:
    with pytest.raises((click.ClickException, InvalidFileError)) as refused:
        azure.main(arguments, standalone_mode=False)
    assert told in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_port_and_a_directory_in_use_are_told_in_one_line(server: ArmServer) -> None:
    status, _, err = gpufleet("azure", "dev", "--listen", server.base.removeprefix("https://"))
    assert (status, len(err.strip().splitlines())) == (2, 1)
    assert "in use" in err
    status, _, err = gpufleet("azure", "dev", "--state", str(Path(server.authority).parent))
    assert (status, len(err.strip().splitlines())) == (2, 1)
    assert f"in use by process {server.process.pid} (gpufleet azure dev " in err


@pytest.mark.parametrize("content", ['{"format": 0}', "{", '{"format": 1}', "[]"])
def test_a_state_of_another_making_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "state-000001.json").write_text(content)
    with pytest.raises(click.ClickException, match="begin anew") as refused:
        azure.main(["dev", "--state", str(tmp_path)], standalone_mode=False)
    assert len(str(refused.value).splitlines()) == 1
    assert (tmp_path / "state-000001.json").read_text() == content


def test_the_former_option_for_the_region_works_with_a_warning() -> None:
    status, out, err = gpufleet("azure", "--region", "dev", "--clock", "sundial")
    warning, reason = err.splitlines()
    assert (status, out, warning) == (2, "", "DeprecationWarning: The option --region is deprecated. Use gpufleet azure dev.")
    assert "no clock" in reason


def test_the_help_says_how_to_begin() -> None:
    status, out, _ = gpufleet("azure", "--help")
    assert (status, "--region" in out) == (0, False)
    assert "keeps the endpoint after a restart" in " ".join(out.split())
    for word in (
        "gpufleet azure [OPTIONS] REGION",
        "--listen",
        "--state",
        "--scenario",
        "--clock",
        "verify_challenge_resource",
        "/imds",
        "/admin/clock",
    ):
        assert word in out


def test_the_printed_python_works_as_it_is_pasted(server: ArmServer) -> None:
    server.resources().resource_groups.create_or_update("pasted", {"location": LOCATION})
    lines = server.told.splitlines()
    first = lines.index("for azure-identity and Azure's Python SDKs, in Python:") + 1
    example = lines[first : first + 5]
    bare = {key: value for key, value in os.environ.items() if not key.startswith(("AZURE_", "ARM_", "REQUESTS_", "SSL_"))}
    ended = subprocess.run([sys.executable, "-c", "\n".join(example)], capture_output=True, text=True, check=False, timeout=120, env=bare)
    assert ended.returncode == 0, ended.stderr
    assert "'pasted'" in ended.stdout
    assert "shell" in lines[first + 5]


def test_the_end_says_what_was_kept(tmp_path: Path) -> None:
    for keep, output in (
        (True, f"stopped; snapshot written to {tmp_path / 'state'}\n"),
        (False, "stopped; nothing was kept, as no --state was given\n"),
    ):
        with arm_server(tmp_path / "state", keep=keep) as server:
            assert server.stop() == 0
            assert server.process.stdout is not None
            assert server.process.stdout.read() == output


def test_a_manual_clock_stands_until_it_is_moved_and_an_interrupt_ends_the_server_well(tmp_path: Path) -> None:
    with arm_server(tmp_path / "state", clock="manual") as server:
        token = server.token()
        _, before, _ = server.ask("GET", "/admin/clock", token=token)
        server.resources().resource_groups.create_or_update("still", {"location": LOCATION})
        assert server.ask("GET", "/admin/clock", token=token)[1]["seconds"] == before["seconds"]
        _, after, _ = server.ask("POST", "/admin/clock", {"advance": "2h30m"}, token=token)
        assert after["seconds"] - before["seconds"] == 9_000
        for wrong in (
            {},
            {"advance": "90m2h"},
            {"seconds": -1},
            {"seconds": True},
            {"seconds": 1e12},
            {"advance": "1h", "seconds": 1},
            {"settle": 1},
        ):
            assert server.ask("POST", "/admin/clock", wrong, token=token)[0] == 400
        assert server.ask("GET", "/admin/clock")[0] == 401
        assert server.ask("GET", "/admin/nothing", token=token)[0] == 404
        status, body, _ = server.ask("GET", "/admin/state", token=token)
        assert (status, body["resources"]["Microsoft.Resources/resourceGroups"]) == (200, 1)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(30) == 0
    assert not (tmp_path / "state.err").read_text()
    assert [path.name for path in (tmp_path / "state").glob("journal-*")] == []
