"""Choice of the engine and its message."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rehearsal.pulumi_cli import engine_choice
from rehearsal.pulumi_cli.engine_choice import choose_engine


def made_here() -> None:
    """A machine on which a hub's network can be made."""


def program(folder: Path, name: str, text: str = "exit 0") -> Path:
    """A program by a name."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, which holds a uv."""
    folder = tmp_path / "bin"
    program(folder, "uv")
    program(folder, "sh", f'exec {shutil.which("sh")} "$@"')
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_without_the_cli_it_is_done_in_process_and_the_line_says_where_the_cli_is_had() -> None:
    chosen = choose_engine(made_here)
    assert chosen.programs is None
    assert chosen.line.startswith("engine: none (local up), because pulumi is not on PATH (https://www.pulumi.com/docs/install/")


def test_a_cli_without_its_language_host_is_not_used(path: Path) -> None:
    program(path, "pulumi", "echo v3.260.0")
    assert "has no pulumi-language-python beside it" in choose_engine(made_here).line


def test_a_cli_that_is_too_old_is_not_used(path: Path) -> None:
    program(path, "pulumi", "echo v3.1.0")
    program(path, "pulumi-language-python")
    choice = choose_engine(made_here)
    assert choice.programs is None
    assert "cannot be used: Minimum version requirement failed" in choice.line
    assert "requirement is 3.200.0, your current CLI version is 3.1.0" in choice.line


def test_a_cli_that_does_not_run_is_not_used(path: Path) -> None:
    program(path, "pulumi", "exit 3")
    program(path, "pulumi-language-python")
    assert "cannot be used: Command '['pulumi', 'version']' returned non-zero exit status 3" in choose_engine(made_here).line


def test_without_uv_the_line_says_what_puts_it_there(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(path, "pulumi", "echo v3.260.0")
    program(path, "pulumi-language-python")
    (path / "uv").unlink()
    monkeypatch.setattr(engine_choice, "ROOT", tmp_path)
    assert choose_engine(made_here).line.endswith("is neither on PATH nor in .bootstrap/bin (make setup puts it there)")


def test_a_machine_without_a_hubs_network_works_in_process_and_says_why(path: Path) -> None:
    program(path, "pulumi", "echo v3.260.0")
    program(path, "pulumi-language-python")
    chosen = choose_engine(lambda: "the kernel lets nobody make namespaces")
    assert chosen.programs is None
    assert chosen.line == (
        "engine: none (local up), because the CLI is on PATH, but "
        "no hub namespace can be created here: the kernel lets nobody make namespaces"
    )


def test_a_usable_cli_is_used_and_named(path: Path) -> None:
    cli = program(path, "pulumi", "echo v3.260.0")
    program(path, "pulumi-language-python")
    chosen = choose_engine(made_here)
    assert chosen.programs is not None
    assert (chosen.programs.cli, chosen.programs.version, chosen.programs.path) == (cli, "v3.260.0", (path, path))
    assert chosen.line == (f"engine: Pulumi v3.260.0 ({cli}), because the CLI is on PATH and a hub namespace can be created here")
