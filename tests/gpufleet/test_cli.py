"""Command line: help, errors in arguments, exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpufleet.options import AzureOptions
from stacks.load import region_names

ROOT = Path(__file__).parents[2]
GPUFLEET = Path(sys.executable).with_name("gpufleet")


def run(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    return subprocess.run(
        [GPUFLEET, *words], cwd=cwd, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "NO_COLOR": "1"}
    )


@pytest.mark.parametrize(
    "words", [(), ("check",), ("rehearse",), ("schema",), ("rotation",), ("rotation", "plan"), ("rotation", "journal")]
)
def test_help_teaches_each_verb(words: tuple[str, ...]) -> None:
    result = run(*words, "--help")
    assert result.returncode == 0
    assert result.stdout.startswith("Usage: gpufleet")
    assert len(result.stdout.splitlines()) > 8


@pytest.mark.parametrize("words", [("--help",), ("check", "dev"), ("cost", "dev"), ("rotation", "plan", "--help")], ids=" ".join)
def test_a_verb_that_only_reads_files_imports_neither_pulumi_nor_what_other_verbs_need(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-X", "importtime", GPUFLEET, *words]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines() if line.startswith("import time:")}
    assert {"gpufleet.cli", "pydantic"} <= imported
    unused = {"aiohttp", "azure", "cryptography.x509", "grpc", "jinja2", "kubernetes", "pulumi", "rehearsal.azure.scenario"}
    assert imported.isdisjoint(unused)


def test_a_mistake_in_a_region_file_exits_2_with_one_line_and_no_traceback(tmp_path: Path) -> None:
    text = (ROOT / "stacks" / "regions" / "dev.yaml").read_text().replace("nodes: 10\n", "nodes: ten\n")
    (tmp_path / "dev.yaml").write_text(text)
    for verb, *options in (("check",), ("rehearse", "--out", str(tmp_path / "out"))):
        result = run(verb, str(tmp_path / "dev.yaml"), *options)
        assert result.returncode == 2
        assert "clusters[0].pools[0].nodes: 'ten' is text, not a whole number" in result.stderr
        assert len([line for line in result.stderr.splitlines() if not line.startswith(("rehearsal: ", "not rehearsed; open"))]) == 1
        assert "Traceback" not in result.stderr + result.stdout


def test_an_unknown_region_exits_2_and_names_the_known() -> None:
    result = run("check", "nowhere")
    assert (result.returncode, result.stdout) == (2, "")
    assert f"known: {', '.join(region_names())}; or give a path to a file" in result.stderr


def test_an_unknown_verb_is_a_mistake_of_the_command_line() -> None:
    result = run("chek", "dev")
    assert result.returncode == 2
    assert "No such command 'chek'" in result.stderr


def refused(folder: Path, old: str, new: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Rehearse dev with one text replaced, in a folder with the results of an earlier rehearsal; return the result and the new page."""
    text = (ROOT / "stacks" / "regions" / "dev.yaml").read_text()
    assert old in text
    (folder / "dev.yaml").write_text(text.replace(old, new, 1))
    out = folder / "out" / "dev"
    out.mkdir(parents=True)
    for name in ("report.html", "base.json", "clusters.json"):
        (out / name).write_text("<strong>All checks pass</strong>")
    result = run("rehearse", str(folder / "dev.yaml"), "--out", str(folder / "out"))
    assert [path.name for path in out.iterdir()] == ["report.html"]
    assert result.stderr.splitlines()[-1] == f"not rehearsed; open {out / 'report.html'}"
    page = (out / "report.html").read_text()
    assert "All checks pass" not in page
    assert "This region was not rehearsed" in page
    return result, page


def test_a_broken_limit_stops_a_rehearsal_and_the_report_has_its_reason_and_remedy_among_all_limits(tmp_path: Path) -> None:
    result, page = refused(tmp_path, "count: 3", "count: 4")
    assert result.returncode == 1
    assert "dev/etcd: etcd members: 4 members is over the bound of 3" in result.stderr
    assert "the plan exceeds 2 limits" in page
    assert "<li>dev/etcd: etcd members</li>" in page
    assert "Remedy: use 3, 5 or 7 members" in page
    assert "pods per node" in page


def test_the_errors_of_an_invalid_file_are_in_the_report_in_place_of_an_earlier_one(tmp_path: Path) -> None:
    result, page = refused(tmp_path, "location: swedencentral", "location: moon")
    assert result.returncode == 2
    assert "location: &#39;moon&#39; is no location" not in page, "place and reason are in columns of their own"
    assert f"<td>location<small>{tmp_path / 'dev.yaml'}:4</small></td>" in page
    assert "no cross-check was made" in page


def test_an_invalid_file_is_reported_also_where_no_report_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "dev.yaml").write_text("name: dev\n")
    (tmp_path / "out").write_text("a file, not a folder")
    result = run("rehearse", str(tmp_path / "dev.yaml"), "--out", str(tmp_path / "out" / "deep"))
    assert result.returncode == 2
    assert "location" in result.stderr


def test_a_rehearsal_tells_its_phases_and_ends_with_a_short_summary(tmp_path: Path) -> None:
    result = run("rehearse", "dev", "--out", str(tmp_path / "out"))
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr.splitlines() == [
        f"rehearsal: {phase}" for phase in ("plan", "limits", "base stack", "clusters", "cross-checks", "rotation", "report")
    ]
    assert result.stdout.startswith("dev (")
    assert len(result.stdout.splitlines()) < 25
    assert "  rotation of all 12 nodes, modelled population: " in result.stdout
    assert '<h2 id="rotation">' in (tmp_path / "out" / "dev" / "report.html").read_text()
    result = run("rehearse", "dev", "--no-rotation", "--out", str(tmp_path / "out"))
    assert "rotation" not in result.stdout + result.stderr
    assert '<h2 id="rotation">' not in (tmp_path / "out" / "dev" / "report.html").read_text()


def test_a_folder_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, not a folder")
    result = run("rehearse", "dev", "--out", str(tmp_path / "out" / "deep"))
    assert result.returncode == 2
    assert "cannot be written" in result.stdout
    assert "Traceback" not in result.stderr


def test_results_are_in_the_projects_folder_whatever_the_working_directory(tmp_path: Path) -> None:
    result = run("destroy", "dev", "--state", "here/../there", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "dev has no embedded Azure in there: nothing to destroy\n")
    result = run("destroy", "dev", "--state", "../elsewhere", cwd=tmp_path)
    assert result.stdout == f"dev has no embedded Azure in {tmp_path.parent}/elsewhere: nothing to destroy\n"
    options = AzureOptions(None, None, None, ())
    assert options.folder("dev").resolve() == ROOT / "out" / "dev" / "azure"


def test_the_shipped_schema_is_fresh() -> None:
    assert run("schema", "--check").returncode == 0
