"""Fixtures that every test may use."""

from __future__ import annotations

import difflib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings

from rehearsal.binaries import find

# How fast a test runs says nothing of what it tests, and machines are busy.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# A shell that starts tests in the background has them ignore Ctrl-C, and the programs that they start and interrupt with them.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Where the environment keeps Python from writing bytecode, each of the thousand programs that tests start would compile the SDKs anew,
# which takes longer than what it does. Kept apart from what the user keeps, and from other users.
BYTECODE = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(BYTECODE)
sys.dont_write_bytecode = False

GOLDEN = Path(__file__).parent / "golden"
COSTLY = ("running_plane", "bare_plane", "etcd")
"""Fixtures of a session that keep a dozen programs running, which take processor time from other tests while nobody asks them anything."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """End what is costly once the next test does without it; who needs it again has it anew."""
    yield
    needed = getattr(nextitem, "fixturenames", ())
    for name in set(COSTLY).intersection(getattr(item, "fixturenames", ())).difference(needed):
        for fixture in item._fixtureinfo.name2fixturedefs[name]:  # type: ignore[attr-defined]
            fixture.finish(item._request)  # type: ignore[attr-defined]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need the pinned binaries, so that a fast run can leave them out."""
    for item in items:
        if "binaries" in getattr(item, "fixturenames", ()):
            item.add_marker("binaries")


@pytest.fixture(scope="session")
def binaries() -> find.Binaries:
    """The real programs of a control plane; where they are missing, one process builds them and the others wait."""
    return find.find_binaries(lambda line: print(line, file=sys.__stderr__))


class Golden(Protocol):
    """Compares a text with a file below tests/golden."""

    def __call__(self, name: str, text: str, reference: str | None = None) -> None:
        """Compare `text`, or its differences from a `reference` text that another golden pins, with the file `name`."""


@pytest.fixture
def golden() -> Golden:
    """Compare a text with tests/golden/<name>; GPUFLEET_UPDATE_GOLDEN=1 rewrites the file instead, for review as a diff."""

    def compare(name: str, text: str, reference: str | None = None) -> None:
        path = GOLDEN / name
        if reference is not None:
            text = "".join(difflib.unified_diff(reference.splitlines(True), text.splitlines(True), "reference", name, n=1))
        if os.environ.get("GPUFLEET_UPDATE_GOLDEN") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if not text:
                path.unlink()
            return
        expected = path.read_text() if path.exists() else ""
        if text != expected:
            diff = "".join(difflib.unified_diff(expected.splitlines(True), text.splitlines(True), f"golden/{name}", "now", n=2))
            pytest.fail(
                f"tests/golden/{name} differs; if the change is meant, run GPUFLEET_UPDATE_GOLDEN=1 pytest\n{diff[:6000]}", pytrace=False
            )

    return compare
