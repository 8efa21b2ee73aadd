"""The verbs on an embedded Azure: what a person reads, exit statuses, and what is left when a command is cut off."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from gpufleet.options import report_refusals

ROOT = Path(__file__).parents[2]
GPUFLEET = Path(sys.executable).with_name("gpufleet")
ENVIRONMENT = {**os.environ, "NO_COLOR": "1"}


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    return subprocess.run([GPUFLEET, *words], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, env=ENVIRONMENT)


def snapshot(folder: Path) -> bytes:
    (path,) = folder.glob("state-*.json")
    return path.read_bytes()


def region_with(folder: Path, old: str, new: str) -> Path:
    """Dev's region file with one text changed, under the same name elsewhere."""
    text = (ROOT / "stacks" / "regions" / "dev.yaml").read_text()
    assert text.count(old) == 1
    folder.mkdir(exist_ok=True)
    path = folder / "dev.yaml"
    path.write_text(text.replace(old, new))
    return path


@pytest.fixture(scope="module")
def up_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory after a first up."""
    folder = tmp_path_factory.mktemp("azure") / "state"
    result = run("up", "dev", "--state", folder)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) < 40
    assert result.stderr.splitlines() == ["up: dev-base", "up: dev"]
    assert lines[-4] == "resources: + 245 created, 0 unchanged"
    assert lines[-3] == "instances: 0 -> 14"
    assert lines[-2].startswith("cost: 0.00 -> 11.75 US$ per hour (+11.75); ")
    assert lines[-1].endswith(f"kept in {folder}")
    return folder


@pytest.fixture
def state(up_once: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    for path in up_once.glob("state-*.json"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize("verb", ["up", "preview", "destroy"])
def test_help_teaches_the_verb(verb: str) -> None:
    result = run(verb, "--help")
    assert result.returncode == 0
    assert f"gpufleet {verb} dev" in result.stdout
    assert "Exit status" in result.stdout


def test_a_second_up_says_that_nothing_changes(state: Path) -> None:
    result = run("up", "dev", "--state", state)
    assert result.returncode == 0
    assert "dev: nothing to change: 245 resources and 14 machines are as planned" in result.stdout


def test_a_preview_shows_the_change_and_makes_none(state: Path, tmp_path: Path) -> None:
    before = snapshot(state)
    result = run("preview", region_with(tmp_path / "drafts", "nodes: 10\n", "nodes: 12\n"), "--state", state, "--diff")
    assert result.returncode == 0
    assert [line for line in result.stdout.splitlines() if "dev-cpu-000" in line] == [
        " ~         VirtualMachineScaleSet dev-cpu-000 [diff: ~sku.capacity] (instances: 10 -> 12)"
    ]
    assert "sku.capacity: 10 => 12" in result.stdout
    assert "cost: 11.75 -> 11.99 US$ per hour (+0.24); " in result.stdout
    assert "nothing was changed" in result.stdout
    assert snapshot(state) == before


@pytest.mark.parametrize("verb", ["up", "preview"])
def test_a_refusal_exits_1_and_leaves_the_state(verb: str, state: Path, tmp_path: Path) -> None:
    before = snapshot(state)
    result = run(verb, region_with(tmp_path / "drafts", "nodes: 10\n", "nodes: 7\n"), "--state", state)
    assert result.returncode == 1
    assert "refused; nothing was changed\nscale set dev-cpu-000: has 10 machines, but capacity 7 is wanted" in result.stdout
    assert snapshot(state) == before


def test_a_failure_exits_1_and_what_came_up_is_kept(tmp_path: Path) -> None:
    result = run("up", "dev", "--state", tmp_path / "state", "--scenario", "quota-one-short")
    assert result.returncode == 1
    assert "QuotaExceeded: VirtualMachineScaleSet" in result.stdout
    assert "resources: + 244 created, 1 failed, 0 unchanged\ninstances: 0 -> 12\n" in result.stdout
    assert list((tmp_path / "state").glob("state-*.json"))


def test_destroy_is_refused_until_it_is_allowed(state: Path) -> None:
    result = run("destroy", "dev", "--state", state)
    assert result.returncode == 1
    assert "--unprotect all for all 14" in result.stdout
    result = run("destroy", "dev", "--state", state, "--unprotect", "al")
    assert result.returncode == 2
    assert result.stderr.startswith("no protected resource is called al; ")
    result = run("destroy", "dev", "--state", state, "--unprotect", "all", "--purge")
    assert result.returncode == 0
    assert "resources: - 245 deleted, 0 unchanged" in result.stdout
    assert result.stdout.endswith("\n3 deleted vaults purged: their names are free\n")


def test_names_that_a_destroy_leaves_held_are_freed_by_the_command_that_is_told(state: Path) -> None:
    result = run("destroy", "dev", "--state", state, "--unprotect", "all")
    command = f"gpufleet destroy dev --state {state} --only-purge"
    last = result.stdout.splitlines()[-1]
    assert last.startswith("3 deleted vaults reserve their names until 2")
    assert last.endswith(f"; to free them now: {command}")
    before = snapshot(state)
    for verb in ("up", "preview"):
        result = run(verb, "dev", "--state", state)
        assert result.returncode == 1
        assert result.stdout.endswith(f"refused; nothing was changed\n{last}\n")
    assert snapshot(state) == before
    again = run("destroy", "dev", "--state", state, "--unprotect", "all")
    assert (again.returncode, again.stdout.splitlines()[-2:]) == (0, [f"dev: nothing to destroy in {state}", last])
    freed = run(*command.split()[1:])
    assert (freed.returncode, freed.stdout) == (0, "3 deleted vaults purged: their names are free\n")
    none = run(*command.split()[1:])
    assert (none.returncode, none.stdout) == (0, f"dev: no deleted vault to purge in {state}\n")


@pytest.mark.parametrize("verb", ["up", "preview", "destroy"])
def test_a_directory_of_another_region_exits_2(verb: str, state: Path) -> None:
    before = snapshot(state)
    result = run(verb, "southcentralus", "--state", state)
    assert result.returncode == 2
    assert result.stderr == f"{state} contains the region dev, not southcentralus; give another --state\n"
    assert snapshot(state) == before


@pytest.mark.parametrize("other", ["--purge", "--unprotect=all"])
def test_a_purge_alone_takes_nothing_that_deletes(other: str, tmp_path: Path) -> None:
    result = run("destroy", "dev", "--state", tmp_path / "state", "--only-purge", other)
    assert result.returncode == 2
    assert "--only-purge deletes no resources" in result.stderr


@pytest.mark.parametrize(
    ("number", "held", "said"),
    [
        (errno.ENOSPC, True, "the state in {0} is unchanged: free space there, then run the same command again\n"),
        (errno.ENOSPC, False, "{0} holds no state yet: free space there, then run the same command again\n"),
        (errno.EACCES, True, "the state in {0} is unchanged: fix this, then run the same command again\n"),
        (errno.EACCES, False, "give another directory with --state\n"),
    ],
)
def test_a_directory_that_takes_no_more_is_named_with_what_to_do(
    number: int, held: bool, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if held:
        (tmp_path / "state-000001.json").write_text("{}")
    with pytest.raises(SystemExit) as ended, report_refusals(Console(), "dev", tmp_path):
        raise OSError(number, os.strerror(number))
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{tmp_path}: {os.strerror(number)}; " + said.format(tmp_path)


def test_an_interrupt_after_the_state_was_written_says_that_it_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        (tmp_path / "state-000001.json").write_text("{}")
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended, report_refusals(Console(), "dev", tmp_path):
        interrupted()
    assert ended.value.code == 130
    after = "run the same command again to see whether anything is missing"
    assert capsys.readouterr().err == f"interrupted after the result was saved in {tmp_path}; {after}\n"


def cut_off(state: Path, tmp_path: Path, how: signal.Signals) -> subprocess.CompletedProcess[str]:
    """Begin an update that changes something, and end it in the middle."""
    region = region_with(tmp_path / "drafts", "nodes: 10\n", "nodes: 12\n")
    process = subprocess.Popen(
        [GPUFLEET, "up", region, "--state", state], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    assert process.stderr is not None
    while "up: dev\n" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(0.3)
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.mark.parametrize(("how", "word", "status"), [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "terminated", 143)])
def test_an_interrupted_up_leaves_the_old_state(state: Path, tmp_path: Path, how: signal.Signals, word: str, status: int) -> None:
    before = snapshot(state)
    result = cut_off(state, tmp_path, how)
    assert result.returncode == status
    assert result.stderr == f"{word}; nothing was saved, {state} is unchanged: run the same command again\n"
    assert snapshot(state) == before


def test_a_killed_up_leaves_the_old_state_and_the_next_one_does_the_work(state: Path, tmp_path: Path) -> None:
    before = snapshot(state)
    assert cut_off(state, tmp_path, signal.SIGKILL).returncode == -signal.SIGKILL
    assert snapshot(state) == before
    result = run("up", tmp_path / "drafts" / "dev.yaml", "--state", state)
    assert result.returncode == 0
    assert "(instances: 10 -> 12)" in result.stdout


def test_two_ups_at_once_are_refused(state: Path) -> None:
    first = subprocess.Popen([GPUFLEET, "up", "dev", "--state", state], cwd=ROOT, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert first.stderr is not None
    assert first.stderr.readline() == "up: dev-base\n"
    result = run("up", "dev", "--state", state)
    first.communicate(timeout=300)
    assert (result.returncode, first.returncode) == (2, 0)
    assert f"{state} is in use by process {first.pid} (gpufleet up dev --state {state}, since 20" in result.stderr
    assert f"stop it (kill {first.pid})" in result.stderr


def test_a_state_that_cannot_be_read_says_what_to_do(state: Path) -> None:
    (path,) = state.glob("state-*.json")
    path.write_text("{")
    result = run("up", "dev", "--state", state)
    assert result.returncode == 2
    assert "to begin anew" in result.stderr
    assert "Traceback" not in result.stderr


def test_sigterm_ends_a_background_command_of_a_script_which_ignores_sigint(state: Path) -> None:
    script = f'{GPUFLEET} preview dev --state "$0" & sleep 3; kill $!; wait $!'
    result = subprocess.run(
        ["sh", "-c", script, state], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, env=ENVIRONMENT
    )
    assert result.returncode == 143
    assert "terminated" in result.stderr.splitlines()[-1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("verb", ["up", "destroy"])
def test_a_result_that_cannot_be_written_is_saved_and_says_where(state: Path, verb: str) -> None:
    words = f"{GPUFLEET} {verb} dev --state {state}{' --unprotect all' if verb == 'destroy' else ''} >/dev/full"
    result = subprocess.run(["sh", "-c", words], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, env=ENVIRONMENT)
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == (
        f"output cannot be written: No space left on device; the {verb} is complete and saved in {state}: "
        "free space there or give another output"
    )


def test_an_unknown_scenario_exits_2_and_names_the_known(tmp_path: Path) -> None:
    result = run("up", "dev", "--state", tmp_path / "state", "--scenario", "quota")
    assert result.returncode == 2
    assert "quota-one-short" in result.stderr
