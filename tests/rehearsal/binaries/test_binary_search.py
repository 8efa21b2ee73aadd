"""A binary comes from PATH only in the exact version, and from the cache only if it is complete."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tiny_program import needs_go, script, tiny_pins

from rehearsal.binaries import version_check
from rehearsal.binaries.find import BinariesMissingError, Source, find_binaries, prepare, survey

WRONG = [
    pytest.param("echo tiny version 1.2.4", "it is '1.2.4', the pin is 1.2.3", id="another"),
    pytest.param("echo tiny version 1.2.3-dispatcher", "it is '1.2.3-dispatcher', the pin is 1.2.3", id="a dispatcher"),
    pytest.param("echo tiny version 1.2.3 or so", "it prints no version in the form of tiny", id="more words"),
    pytest.param("echo tiny version 1.2.3; exit 3", "it ends with 3 when run to print its version", id="failing"),
    pytest.param("echo 1.2.3", "it prints no version in the form of tiny: '1.2.3'", id="another program"),
    pytest.param("sleep 60 & echo tiny version 1.2.3", "it prints no version within 1 s", id="never ending"),
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFLEET_CACHE", str(tmp_path / "cache"))


def on_path(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = script(tmp_path / "bin" / "tiny", text)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    return path


def test_the_right_version_on_path_is_used_and_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = on_path(tmp_path, 'test "$1" = --version && echo tiny version 1.2.3', monkeypatch)
    (row,) = prepare(tiny_pins(tmp_path), lambda _: None).rows
    assert (row.source, row.path, row.passed_over) == (Source.PATH, path, ())
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(("text", "reason"), WRONG)
def test_another_version_on_path_is_passed_over_and_the_reason_is_told(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_check, "PATIENCE", 1.0)
    path = on_path(tmp_path, text, monkeypatch)
    (row,) = survey(tiny_pins(tmp_path)).rows
    assert row.source is Source.MISSING
    assert len(row.passed_over) == 1
    assert row.passed_over[0].startswith(f"{path}: {reason}")


def empty(path: Path) -> None:
    path.touch(mode=0o755)


def not_executable(path: Path) -> None:
    script(path, "echo tiny version 1.2.3").chmod(0o644)


def wrong_version(path: Path) -> None:
    script(path, "echo tiny version 1.2.2")


def folder(path: Path) -> None:
    (path / "tiny").mkdir(parents=True)


@needs_go
@pytest.mark.parametrize("garbage", [empty, not_executable, wrong_version, folder])
def test_garbage_in_the_cache_is_built_anew(garbage, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    pins = tiny_pins(tmp_path)
    cached = survey(pins).cache.folder / "tiny"
    cached.parent.mkdir(parents=True)
    garbage(cached)
    (before,) = survey(pins).rows
    assert before.source is Source.MISSING
    assert before.passed_over
    (row,) = prepare(pins, lambda _: None).rows
    assert (row.source, row.path) == (Source.BUILT, cached)
    (again,) = prepare(pins, lambda _: None).rows
    assert (again.source, again.path) == (Source.CACHE, cached)


def test_where_nothing_may_be_built_what_is_missing_is_told_with_the_command_that_builds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BinariesMissingError) as raised:
        find_binaries(build=False)
    assert raised.value.what.split(", ")[:2] == ["etcd", "etcdctl"]
    assert "gpufleet binaries" in raised.value.remedy


@pytest.mark.parametrize(
    ("gpufleet", "xdg", "expected"),
    [
        ("/a/b", "/x", "/a/b/engines"),
        ("", "/x", "/x/gpufleet/engines"),
        ("", "relative", "/home/me/.cache/gpufleet/engines"),
        ("", "", "/home/me/.cache/gpufleet/engines"),
    ],
)
def test_the_cache_is_where_the_environment_says(
    gpufleet: str, xdg: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("GPUFLEET_CACHE", gpufleet), ("XDG_CACHE_HOME", xdg), ("HOME", "/home/me")):
        monkeypatch.setenv(name, value)
    assert str(survey(tiny_pins(tmp_path)).cache.folder.parent) == expected
