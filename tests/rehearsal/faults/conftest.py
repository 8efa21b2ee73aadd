"""A control plane for the tests of one file, which inject faults and wait for recovery."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from rehearsal.binaries.find import Binaries
from stacks.load import ROOT

sys.path.insert(0, str(ROOT / "tests" / "rehearsal" / "local_cluster"))
from faulty_plane import FaultyPlane, faulty_plane


@pytest.fixture(scope="module")
def running(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyPlane]:
    """Return the control plane for all tests of a file."""
    with faulty_plane(binaries, tmp_path_factory.mktemp("plane")) as made:
        yield made


@pytest.fixture
def plane(running: FaultyPlane) -> Iterator[FaultyPlane]:
    """Return the control plane, which is healthy before and after a test."""
    running.wait_whole()
    yield running
    running.wait_whole()
