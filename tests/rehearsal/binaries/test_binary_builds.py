"""Builds of the binaries are atomic, run once for concurrent callers, and fail with a helpful message."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_program import go_that, needs_go, preparing, tiny_pins

from rehearsal.binaries import go_command
from rehearsal.binaries.find import BinariesMissingError, Source, prepare, survey
from rehearsal.binaries.go_command import DISK, MEMORY, NETWORK, OTHER_REMEDY
from rehearsal.binaries.progress import Phase, ProgressEvent

PATIENCE = 60.0


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFLEET_CACHE", str(tmp_path / "cache"))


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


def gone(process: int) -> bool:
    """Return whether the process has ended, even if its parent has not yet read the exit status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def half_of_it(tmp_path: Path) -> str:
    """A go that writes half a program to where it was told to, tells its process, and then takes for ever."""
    half = 'while [ "$1" != -o ]; do shift; done; echo half > "$2"'
    return go_that(
        tmp_path / "bin", f"{half}; echo $$ > {tmp_path}/at-work.new; mv {tmp_path}/at-work.new {tmp_path}/at-work; exec sleep 600"
    )


@needs_go
def test_a_built_program_says_its_stamped_version_and_is_found_from_then_on(tmp_path: Path) -> None:
    pins = tiny_pins(tmp_path)
    events: list[ProgressEvent] = []
    (row,) = prepare(pins, events.append).rows
    assert row.source is Source.BUILT
    assert subprocess.check_output([row.path, "--version"], text=True) == "tiny version 1.2.3\n"
    assert [moment.phase for moment in events if moment.phase is not Phase.RUNS] == [Phase.STARTS, Phase.ENDS]
    assert survey(pins).rows[0].source is Source.CACHE
    assert {path.name for path in (tmp_path / "cache").rglob("*")} == {"engines", "lock", row.path.parent.name, "tiny"}


@needs_go
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_build_that_is_ended_in_the_middle_leaves_no_program_and_no_go(how: signal.Signals, tmp_path: Path) -> None:
    pins = tiny_pins(tmp_path)
    process = preparing(tmp_path, PATH=half_of_it(tmp_path))
    at_work = tmp_path / "at-work"
    until(at_work.exists)
    process.send_signal(how)
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    until(lambda: gone(int(at_work.read_text())))
    cache = survey(pins).cache
    assert list(cache.folder.iterdir()) == []
    if how is signal.SIGINT:
        assert not (cache.base / "engines" / "unfinished").exists()
    (row,) = prepare(pins, lambda _: None).rows
    assert row.source is Source.BUILT
    assert not (cache.base / "engines" / "unfinished").exists()


@needs_go
def test_of_two_at_once_one_builds_and_the_other_says_that_it_waits(tmp_path: Path) -> None:
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    path = go_that(tmp_path / "bin", f"echo build >> {begun}; while [ ! -e {go_on} ]; do sleep 0.1; done")
    tiny_pins(tmp_path)
    first = preparing(tmp_path, PATH=path)
    until(begun.exists)
    second = preparing(tmp_path, PATH=path)
    assert second.stdout is not None
    waits = second.stdout.readline()
    go_on.touch()
    output = (first.communicate(timeout=PATIENCE)[0], second.communicate(timeout=PATIENCE)[0])
    assert waits == f"binaries: waiting for another gpufleet that builds them (process {first.pid}: tiny, 1 of 1), 0 s\n"
    assert (first.returncode, second.returncode) == (0, 0)
    assert output[0].splitlines()[-1].startswith("built now ")
    assert output[1].splitlines() == [output[0].splitlines()[-1].replace("built now", "cache")]
    assert begun.read_text() == "build\n"


@needs_go
def test_a_program_that_says_another_version_than_its_pin_is_not_kept(tmp_path: Path) -> None:
    pins = tiny_pins(tmp_path, stamp="1.2.2")
    with pytest.raises(BinariesMissingError, match=r"it is '1\.2\.2', the pin is 1\.2\.3"):
        prepare(pins, lambda _: None)
    assert list(survey(pins).cache.folder.iterdir()) == []


@needs_go
def test_a_mistake_in_the_source_is_told_with_the_last_lines_of_go(tmp_path: Path) -> None:
    pins = tiny_pins(tmp_path)
    (tmp_path / "tiny" / "main.go").write_text("package main\n\nfunc main() { undefinedThing() }\n")
    with pytest.raises(BinariesMissingError) as raised:
        prepare(pins, lambda _: None)
    assert raised.value.what == "tiny v1.2.3 cannot be built"
    assert "undefined: undefinedThing" in raised.value.why
    assert raised.value.remedy == OTHER_REMEDY


@needs_go
def test_without_a_network_it_says_which_hosts_and_settings_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pins = tiny_pins(tmp_path)
    (tmp_path / "tiny" / "go.mod").write_text("module tiny\n\ngo 1.21\n\nrequire example.com/far v1.0.0\n")
    sums = [f"example.com/far v1.0.0{kind} h1:{'A' * 43}=\n" for kind in ("", "/go.mod")]
    (tmp_path / "tiny" / "go.sum").write_text("".join(sums))
    main = tmp_path / "tiny" / "main.go"
    main.write_text(main.read_text().replace('import "syscall"', 'import (\n\t"syscall"\n\n\t_ "example.com/far"\n)'))
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    with pytest.raises(BinariesMissingError) as raised:
        prepare(pins, lambda _: None)
    assert "connection refused" in raised.value.why
    assert raised.value.remedy == NETWORK
    assert "module proxy" in NETWORK
    assert "GOPROXY" in NETWORK


@needs_go
def test_too_little_disk_is_told_before_anything_is_built(tmp_path: Path) -> None:
    pins = tiny_pins(tmp_path, cold_gigabytes=1_000_000)
    events: list[ProgressEvent] = []
    with pytest.raises(BinariesMissingError, match=r"[\d.]+ GB are free on the disk of .*, at least 1000000\.2 GB are needed"):
        prepare(pins, events.append)
    assert events == []


@pytest.mark.parametrize(
    ("said", "returncode", "remedy"),
    [
        ("go: writing: write /x: no space left on device", 1, DISK),
        ("k8s.io/x: /usr/lib/go/compile: signal: killed", 1, MEMORY),
        ("", -9, MEMORY),
        ("go: lookup modules.example: no such host", 1, NETWORK),
        ("x.go:1: undefined: y", 1, OTHER_REMEDY),
    ],
)
def test_what_go_says_decides_what_is_advised(said: str, returncode: int, remedy: str) -> None:
    assert go_command.failure("it", said, returncode).remedy == remedy


def test_a_cache_that_cannot_be_written_is_told_with_the_setting_that_moves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("GPUFLEET_CACHE", str(tmp_path / "file"))
    with pytest.raises(BinariesMissingError, match="GPUFLEET_CACHE") as raised:
        prepare(tiny_pins(tmp_path), lambda _: None)
    assert str(tmp_path / "file") in raised.value.why


@needs_go
def test_settings_of_the_users_go_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("GOFLAGS", "-mod=vendor"), ("GOOS", "windows"), ("GOARCH", "386"), ("GOWORK", "/nowhere"), ("GOROOT", "/nowhere")):
        monkeypatch.setenv(name, value)
    (row,) = prepare(tiny_pins(tmp_path), lambda _: None).rows
    assert subprocess.check_output([row.path], text=True) == "tiny version 1.2.3\n"


@needs_go
def test_what_is_finished_stays_when_a_later_program_fails(tmp_path: Path) -> None:
    pins = tiny_pins(tmp_path)
    (program,) = pins.programs
    (tmp_path / "tiny" / "broken").mkdir()
    (tmp_path / "tiny" / "broken" / "main.go").write_text("package main\n\nfunc main() { undefinedThing() }\n")
    both = replace(pins, programs=(program, replace(program, name="broken", package="tiny/broken")))
    with pytest.raises(BinariesMissingError, match="broken"):
        prepare(both, lambda _: None)
    assert [row.source for row in survey(both).rows] == [Source.CACHE, Source.MISSING]
    assert os.listdir(survey(both).cache.folder) == ["tiny"]  # noqa: PTH208 names are what is compared


def test_lines_tell_place_time_and_an_estimate_that_is_called_one() -> None:
    going = ProgressEvent(Phase.RUNS, "kubectl", 31.2, 7, 8, 130.0)
    assert str(going) == "binaries: making kubectl (7 of 8), 31 s; about 2 min to go, by estimate"
    assert re.fullmatch(r"binaries: kubectl \(8 of 8\) is ready after 40 s", str(ProgressEvent(Phase.ENDS, "kubectl", 40.0, 8, 8, 0.0)))
