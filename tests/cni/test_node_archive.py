"""The node program is one file, the same from the same sources, which needs nothing but the machine's Python."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import cni.node
from cni import node_archive
from gpufleet.cli import group

SOURCES = sorted(Path(cni.node.__path__[0]).glob("*.py"))
OLDEST_PYTHON = (3, 10)
"""Python of Ubuntu 22.04, the oldest base image."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_module_needs_no_newer_python_and_only_the_standard_library_and_its_neighbours(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=OLDEST_PYTHON)
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module for module in modules if module.partition(".")[0] not in sys.stdlib_module_names} <= {
        "cni.node",
        *(f"cni.node.{one.stem}" for one in SOURCES),
    }


def test_the_file_is_the_same_at_another_time_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    first = node_archive.node_archive()
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(2_000_000_000))
    globbed = Path.glob
    monkeypatch.setattr(Path, "glob", lambda self, pattern: sorted(globbed(self, pattern), reverse=True))
    assert node_archive.node_archive() == first
    archive = zipfile.ZipFile(io.BytesIO(first))
    assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert archive.namelist() == sorted(["__main__.py", "cni/__init__.py", *(f"cni/node/{path.name}" for path in SOURCES)])


def test_the_written_file_starts_alone(tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["image-files", "node", "--out", str(tmp_path / "files")])
    assert result.exit_code == 0, result.output
    path = tmp_path / "files" / "gpufleet-node"
    assert path.read_bytes().startswith(b"#!/usr/bin/python3\n")
    assert os.access(path, os.X_OK)
    digest = result.output.split()[0]
    assert (
        subprocess.run(("sha256sum", "--check"), input=f"{digest}  {path}\n", text=True, capture_output=True, check=False).returncode == 0
    )
    shown = subprocess.run((sys.executable, "-I", "-S", str(path), "--help"), capture_output=True, text=True, check=False, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "reconcile" in shown.stdout


def test_a_folder_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(group, ["image-files", "node", "--out", str(tmp_path / "file" / "below")])
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert "give a writable folder with --out" in result.output
