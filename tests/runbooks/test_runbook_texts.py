"""Every runbook has the same parts, its shell blocks parse, and a test runs each of its steps."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from runbook import FOLDER, VARIABLES, steps

RUNBOOKS = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")
TESTS = Path(__file__).parents[1]
PARTS = ("## What you see", "## What to look at", f"## {VARIABLES}")


@pytest.mark.parametrize("name", RUNBOOKS)
def test_a_runbook_says_what_is_seen_what_to_look_at_and_what_to_set(name: str) -> None:
    text = (FOLDER / f"{name}.md").read_text()
    assert [part for part in PARTS if f"\n{part}\n" not in text] == []


@pytest.mark.parametrize("name", RUNBOOKS)
def test_the_shell_of_a_runbook_is_shell(name: str) -> None:
    for heading, blocks in steps((FOLDER / f"{name}.md").read_text()).items():
        for block in blocks:
            done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{heading}: {done.stderr}"


@pytest.mark.parametrize("name", RUNBOOKS)
def test_a_test_runs_every_step_of_a_runbook(name: str) -> None:
    tests = [path.read_text() for path in TESTS.rglob("test_*.py")]
    assert any(f'"{name}"' in text and ".left == []" in text for text in tests)
