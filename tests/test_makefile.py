"""make passes REGION to the command unchanged, also if it is empty."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize(("words", "region"), [((), "southcentralus"), (("REGION=dev",), "dev"), (("REGION=",), "")])
def test_make_rehearse_hands_its_region_on_as_it_was_given(words: tuple[str, ...], region: str) -> None:
    # Under `make test` this make would be an inner one, which prints its directory and inherits the outer one's variables.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name not in ("MFLAGS", "REGION")}
    output = subprocess.run(
        ["make", "-n", "rehearse", *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert output.splitlines()[-1].endswith(f'gpufleet rehearse "{region}"')
