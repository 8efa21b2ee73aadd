"""What make is asked for is what runs: an empty region is no region."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize(("words", "region"), [((), "southcentralus"), (("REGION=dev",), "dev"), (("REGION=",), "")])
def test_make_rehearse_hands_its_region_on_as_it_was_given(words: tuple[str, ...], region: str) -> None:
    told = subprocess.run(["make", "-n", "rehearse", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert told.splitlines()[-1].endswith(f'gpufleet rehearse "{region}"')
