"""A step that takes long prints its progress, and a short one prints nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpufleet.slow_step import slow_step

COMMAND = str(Path(sys.executable).with_name("gpufleet"))


def test_a_long_step_prints_lines_with_its_seconds_and_a_short_one_none(capsys: pytest.CaptureFixture[str]) -> None:
    with slow_step("reading", first=5.0):
        pass
    assert capsys.readouterr() == ("", "")
    with slow_step("reading [vaults]", first=0.05, apart=0.1):
        time.sleep(0.5)
    out, err = capsys.readouterr()
    assert out == ""
    assert 2 <= len(err.splitlines()) <= 5
    assert set(err.splitlines()) <= {"reading [vaults]: 0 s", "reading [vaults]: 1 s"}


def test_certificates_that_cannot_be_read_print_progress_before_the_reason() -> None:
    # A proxy that nobody serves: the sign-in fails in the same way on every machine, after its own retries.
    closed = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""}
    sign_in = {"AZURE_TENANT_ID": "7b0c9a44-2f0e-4f57-9c39-6a1f0f0f5a10", "AZURE_CLIENT_ID": "5c1e8e5b-9d7a-4a53-8a3c-20f6b1f6d9b2"}
    environment = {**os.environ, **closed, **sign_in, "AZURE_CLIENT_SECRET": "none"}
    result = subprocess.run([COMMAND, "certificates", "dev"], capture_output=True, text=True, env=environment, check=False)
    first, *_, reason = result.stderr.splitlines()
    assert result.returncode == 2
    assert first.startswith("reading the certificates of dev from its key vaults in Azure: 2 s")
    assert "dev" in reason
    assert "; " in reason
