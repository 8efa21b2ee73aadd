"""Runs the real verbs on Pulumi's own engine, and writes the region files that they are given."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
GPUFLEET = Path(sys.executable).with_name("gpufleet")
ENVIRONMENT = {**os.environ, "NO_COLOR": "1"}
CLOCK = ("--clock", "scaled:600")
PATIENCE = 900.0


@dataclass(frozen=True)
class Engine:
    """Commands on one folder."""

    folder: Path

    def words(self, verb: str, region: str | Path, *more: str) -> list[str | Path]:
        """The command line."""
        engine = () if verb == "refresh" else ("--engine", "--no-fallback")
        return [GPUFLEET, verb, region, *engine, *CLOCK, "--state", self.folder, *more]

    def run(self, verb: str, region: str | Path = "dev", *more: str) -> subprocess.CompletedProcess[str]:
        """Run a verb to its end."""
        return subprocess.run(
            self.words(verb, region, *more), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False, env=ENVIRONMENT
        )

    def start(self, verb: str, region: str | Path = "dev", *more: str) -> subprocess.Popen[str]:
        """Run a verb, to be stopped."""
        return subprocess.Popen(
            self.words(verb, region, *more), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT
        )


def draft(folder: Path, *changes: tuple[str, str]) -> Path:
    """Dev's region file with texts changed, under the same name elsewhere."""
    text = (ROOT / "stacks" / "regions" / "dev.yaml").read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    folder.mkdir(exist_ok=True)
    path = folder / "dev.yaml"
    path.write_text(text)
    return path
