"""gpufleet binaries: the versions and paths that it reports are those of the programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal.binaries.find import Binaries, cni_plugins
from rehearsal.binaries.pins import CNI_PINS, PINS

GPUFLEET = Path(sys.executable).with_name("gpufleet")


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([GPUFLEET, "binaries", *words], env=os.environ | environment, capture_output=True, text=True, check=False)


def test_where_prints_the_path_alone(binaries: Binaries) -> None:
    result = run("--where", "kubectl")
    assert result.stdout == f"{binaries.program('kubectl')}\n", result.stderr


def test_every_binary_says_that_it_is_of_the_pinned_version(binaries: Binaries) -> None:
    for program in PINS.selected(measuring=False):
        said = subprocess.check_output([binaries.program(program.name), *program.version_arguments], text=True)
        assert PINS.version(program) in said


def test_where_stages_is_a_folder_with_every_set_of_kwoks_stage_files(binaries: Binaries) -> None:
    assert run("--where", "stages").stdout == f"{binaries.stages}\n"
    assert {path.name for path in binaries.stages.iterdir()} == set(PINS.stages)
    assert [path.name for path in binaries.stage_files("node-heartbeat-with-lease")] == ["node-heartbeat-with-lease.yaml"]
    assert [path.name for path in binaries.stage_files("pod-fast")] == ["pod-complete.yaml", "pod-delete.yaml", "pod-ready.yaml"]
    for name in PINS.stages:
        assert all("kind: Stage" in path.read_text() for path in binaries.stage_files(name))


def test_the_table_has_a_line_for_each_program_with_version_source_size_and_path(binaries: Binaries) -> None:
    plugins = cni_plugins()
    result = run("--check")
    assert result.returncode == 0, result.stderr
    rows = {line.split()[0]: line.split() for line in result.stdout.splitlines() if line.strip()}
    pinned = {program.name: PINS.version(program) for program in PINS.selected(measuring=False)}
    pinned |= {program.name: CNI_PINS.version(program) for program in CNI_PINS.programs}
    for name, expected in pinned.items():
        path = plugins[name] if name in plugins else binaries.program(name)
        _, version, source, size, where = rows[name]
        assert version == expected
        assert source in ("PATH", "cache")
        assert (int(size), where) == (round(path.stat().st_size / 1e6), str(path))


def test_check_of_an_empty_cache_names_what_is_missing_and_exits_1_without_building(tmp_path: Path) -> None:
    result = run("--check", GPUFLEET_CACHE=str(tmp_path / "cache"), PATH="/nowhere")
    assert result.returncode == 1
    names = ", ".join(program.name for program in PINS.selected(measuring=False))
    plugins = ", ".join(program.name for program in CNI_PINS.programs)
    assert result.stderr.startswith(f"missing: {names}, kwok's stage files, {plugins}; gpufleet binaries builds them")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("wanted", ["etcd", "stages", "ptp"])
def test_where_of_what_is_missing_prints_no_path_and_exits_1(wanted: str, tmp_path: Path) -> None:
    result = run("--where", wanted, GPUFLEET_CACHE=str(tmp_path / "cache"), PATH="/nowhere")
    assert (result.returncode, result.stdout) == (1, "")
    assert "gpufleet binaries builds them" in result.stderr


def test_an_unknown_program_is_refused_with_the_names_of_the_known(tmp_path: Path) -> None:
    result = run("--where", "kubelet", GPUFLEET_CACHE=str(tmp_path))
    assert result.returncode == 2
    assert "kube-apiserver" in result.stderr


def test_the_former_name_of_the_verb_works_with_a_warning_on_standard_error() -> None:
    former = subprocess.run([GPUFLEET, "engines", "--where", "stages"], capture_output=True, text=True, check=False)
    assert former.stdout == run("--where", "stages").stdout
    assert former.stderr == "DeprecationWarning: The command 'engines' is deprecated. Use gpufleet binaries.\n"
    assert "engines" not in subprocess.run([GPUFLEET, "--help"], capture_output=True, text=True, check=True).stdout
