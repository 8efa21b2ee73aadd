"""The wheel that machines install is built, and each of its programs starts from that wheel alone."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from stacks.load import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT / "services", check=True, capture_output=True)
    (archive,) = folder.glob("gpufleet_services-*.whl")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder / "installed")
    return folder / "installed"


def test_the_wheel_has_the_services_and_the_names_of_the_plan_and_nothing_else(wheel: Path) -> None:
    packages = {path.relative_to(wheel).as_posix() for path in wheel.rglob("*.py") if path.relative_to(wheel).parts[0] != "services"}
    plan = {f"components/plan/{name}.py" for name in ("__init__", "access", "naming")}
    assert packages == {"components/__init__.py"} | plan
    assert {path.name for path in (wheel / "services").glob("*/")} == {"csr_approver", "etcd_snapshot"}


STARTED = """
import importlib, sys
wheel, checkout, module = sys.argv[1:]
sys.path[:] = [wheel, *(entry for entry in sys.path if entry != checkout)]
sys.argv[:] = ["program", "--help"]
try:
    importlib.import_module(module).main()
finally:
    files = [str(one.__file__) for name, one in sys.modules.items() if name.split(".")[0] in ("components", "services")]
    assert files and all(file.startswith(wheel) for file in files), files
"""
"""Prints the help of a program of the wheel, and fails where a module of ours came from the checkout."""


@pytest.mark.parametrize("module", ["services.csr_approver.cli", "services.etcd_snapshot.snapshot"])
def test_a_program_starts_from_the_wheel_alone(wheel: Path, module: str, tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-c", STARTED, str(wheel), str(ROOT), module]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()
