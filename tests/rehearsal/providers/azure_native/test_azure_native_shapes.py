"""A provider process reads the shapes of bodies out of a file where there is one, and does as well without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from provider_process import ROOT

CODE = """
import sys
from rehearsal.providers.azure_native.kinds import kind_of
kind = kind_of("azure-native:network:VirtualNetwork")
assert kind.located and "addressSpace" in kind.shape.inner.properties
print("azure.mgmt.network" in sys.modules)
"""


def reads_the_clients(cache: Path) -> bool:
    """Whether a process with this cache folder read the official clients."""
    ended = subprocess.run(
        [sys.executable, "-c", CODE], env={"GPUFLEET_CACHE": str(cache)}, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout == "True\n"


def test_the_clients_are_read_once_and_again_where_the_file_is_broken(tmp_path: Path) -> None:
    assert reads_the_clients(tmp_path)
    (file,) = (tmp_path / "azure-shapes").iterdir()
    whole = file.read_bytes()
    assert not reads_the_clients(tmp_path)
    file.write_bytes(whole[: len(whole) // 2])
    assert reads_the_clients(tmp_path)
    assert file.read_bytes() == whole


def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert reads_the_clients(tmp_path / "file")
