"""Fixtures for tests that talk to the embedded Azure over HTTPS."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from arm_server import ArmServer, arm_server, bring_up


@pytest.fixture(scope="session")
def brought_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory in which `gpufleet up` has brought a region up; take a copy."""
    base = tmp_path_factory.getbasetemp()
    # The folder above is that of all processes of one run, which need it once.
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "brought-up" / "state"
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder.parent / "complete").exists():
            bring_up(folder)
            (folder.parent / "complete").touch()
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArmServer]:
    """One server for all tests that only need one, in which no call is counted and hours pass in a second."""
    folder: Path = tmp_path_factory.mktemp("arm") / "state"
    with arm_server(folder) as running:
        yield running
    assert "Traceback" not in folder.with_suffix(".err").read_text()
