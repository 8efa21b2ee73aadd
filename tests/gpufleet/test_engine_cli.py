"""The verbs with --engine: which engine they say, what they refuse, and that without the CLI they do the same in process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GPUFLEET = Path(sys.executable).with_name("gpufleet")
BARE = {**os.environ, "NO_COLOR": "1", "PATH": "/usr/bin:/bin"}
"""An environment without the CLI."""
IN_PROCESS = "engine: none (local up), because pulumi is not on PATH (https://www.pulumi.com/docs/install/ has it)"


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the real command where there is no CLI."""
    return subprocess.run([GPUFLEET, *words], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, env=BARE)


def test_without_the_cli_up_works_in_process_and_says_so_first(tmp_path: Path) -> None:
    result = run("up", "dev", "--engine", "--state", tmp_path / "azure")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert result.stderr.splitlines()[0] == IN_PROCESS
    assert "resources: + 245 created, 0 unchanged" in lines
    assert list((tmp_path / "azure").glob("state-*.json"))


@pytest.mark.parametrize("verb", ["up", "preview", "destroy"])
def test_without_the_cli_no_fallback_refuses_and_changes_nothing(verb: str, tmp_path: Path) -> None:
    result = run(verb, "dev", "--engine", "--no-fallback", "--state", tmp_path / "azure")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == f"{IN_PROCESS}\nrefused: --no-fallback requires Pulumi's own engine; nothing was changed\n"
    assert not (tmp_path / "azure").exists()


def test_without_the_cli_there_is_nothing_to_refresh_with(tmp_path: Path) -> None:
    result = run("refresh", "dev", "--state", tmp_path / "engine")
    assert result.returncode == 2
    assert (result.stdout, result.stderr.splitlines()[0]) == ("", IN_PROCESS)
    assert not (tmp_path / "engine").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("up", "dev", "--no-fallback"), "--no-fallback goes with --engine"),
        (("preview", "dev", "--clock", "real"), "--clock goes with --engine"),
        (("up", "dev", "--engine", "--clock", "scaled:0"), "'scaled:0' is no clock"),
        (("destroy", "dev", "--engine", "--clock", "manual"), "operations of Pulumi's engine never end"),
        (("refresh", "dev", "--unprotect", "all"), "refresh deletes nothing"),
        (("refresh", "dev", "--scenario", "nowhere"), "nowhere"),
    ],
)
def test_a_mistake_in_the_options_is_told_in_a_sentence(words: tuple[str, ...], sentence: str) -> None:
    result = run(*words)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("verb", ["up", "preview", "destroy", "refresh"])
def test_help_says_how_pulumis_own_engine_is_had(verb: str) -> None:
    result = run(verb, "--help")
    assert result.returncode == 0
    assert "--engine" in result.stdout
    assert "--clock" in result.stdout
    assert all(len(line) <= 120 for line in result.stdout.splitlines())


def test_a_verb_in_process_refuses_the_folder_of_pulumis_own_engine(tmp_path: Path) -> None:
    (tmp_path / "passphrase").write_text("x")
    result = run("preview", "dev", "--state", tmp_path)
    assert result.returncode == 2
    assert "belongs to Pulumi's own engine; add --engine, or give another directory with --state" in result.stderr
