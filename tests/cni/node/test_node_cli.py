"""The node program's words: it teaches, says no in one line, and tells systemd how it fares."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from cni.node import program
from cni.node.cli import main
from tests.support.azure_network.machine import SETTINGS


def options(tmp_path: Path) -> list[str]:
    """Options under which nothing outside of a folder is touched, and no metadata service answers."""
    (tmp_path / "network.json").write_text(json.dumps(SETTINGS))
    words = {
        "--settings": tmp_path / "network.json",
        "--state": tmp_path / "run",
        "--cni": tmp_path / "net.d",
        "--imds": "http://127.0.0.1:1",
    }
    return [str(word) for pair in words.items() for word in pair]


def test_help_says_what_each_verb_does_and_what_to_do_when_pods_hang(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    for words in (
        "run",
        "apply",
        "reconcile",
        "status",
        "remove",
        "certificate",
        "When pods hang in ContainerCreating",
        "/etc/gpufleet/network.json",
    ):
        assert words in said
    assert max(map(len, said.splitlines())) <= 120


def test_a_word_that_is_none_of_its_own_is_not_understood(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["aply"])
    assert ended.value.code == 2
    assert "invalid choice: 'aply'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "change", "said"),
    [
        (["apply", "--patience", "0"], {}, "http://127.0.0.1:1: no connection (Connection refused); HTTP 200; the request is repeated"),
        (["apply", "--patience", "0"], {"mtu": 9}, "mtu is 9; it is a whole number from 1280 to 65535; roll the machine out again"),
        (["run"], {"mode": "flannel"}, "mode is 'flannel'; it is native or azure-vnet"),
        (["remove"], {"version": 7}, "version is 7"),
        (["status"], {}, "nothing since this machine booted"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], change: dict[str, object], said: str
) -> None:
    given = options(tmp_path)
    (tmp_path / "network.json").write_text(json.dumps(SETTINGS | change))
    assert main([*words, *given]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("gpufleet-node: ")
    assert said in err


def test_a_metadata_service_that_is_no_url_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for url in ("", "169.254.169.254", "https://169.254.169.254", "http://", "http://[", "http://x:99999", "file:///etc/passwd"):
        assert main(["apply", *options(tmp_path), "--imds", url, "--patience", "0"]) == 1
        assert "http://HOST[:PORT]" in capsys.readouterr().err


def test_a_state_folder_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["run", *options(tmp_path), "--state", str(tmp_path / "file" / "run")]) == 1
    assert "file/run: Not a directory" in capsys.readouterr().err


def test_systemd_is_told_where_it_asks_to_be_and_does_not_hold_the_program_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "NOTIFY_SECONDS", 0.05)
    for name in (str(tmp_path / "notify"), f"@gpufleet-test-{tmp_path.name}"):
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        program.notify("READY=1")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(name.replace("@", "\0", 1))
            # Far more than the kernel keeps for one that does not read.
            for _ in range(30):
                program.notify("WATCHDOG=1", "STATUS=well")
            assert manager.recv(100) == b"WATCHDOG=1\nSTATUS=well"
    monkeypatch.delenv("NOTIFY_SOCKET")
    program.notify("READY=1")


def test_pauses_grow_to_ten_seconds_and_are_drawn() -> None:
    drawn = [[program.pause(failures) for _ in range(50)] for failures in (0, 1, 2, 50)]
    assert all(0.5 * most <= one <= most for row, most in zip(drawn, (1, 2, 4, 10), strict=True) for one in row)
    assert all(len(set(row)) > 10 for row in drawn)
