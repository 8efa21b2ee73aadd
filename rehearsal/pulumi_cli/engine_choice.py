"""Decides which engine a command runs on, Pulumi's own or the one in process, and says why."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pulumi.automation import PulumiCommand
from pulumi.automation.errors import InvalidVersionError
from semver import VersionInfo

from stacks.load import ROOT

OLDEST_CLI = VersionInfo(3, 200)
"""The oldest CLI that is taken. Tried are 3.260 and none that is older."""
CLI, LANGUAGE_HOST, UV = "pulumi", "pulumi-language-python", "uv"
INSTALL = "https://www.pulumi.com/docs/install/ has it"


@dataclass(frozen=True)
class PulumiPrograms:
    """What Pulumi's own engine is run with: the CLI and its version, and the folders that must be on its PATH."""

    cli: Path
    version: str
    path: tuple[Path, ...]


@dataclass(frozen=True)
class EngineChoice:
    """The engine that a command runs on: Pulumi's with its programs, or the one in process where programs is None, and why."""

    programs: PulumiPrograms | None
    why: str

    @property
    def line(self) -> str:
        """What a person is told first."""
        if self.programs is None:
            return f"engine: in process, because {self.why}"
        return f"engine: Pulumi's own, {self.programs.version} ({self.programs.cli}), because {self.why}"


def choose_engine(why_not: Callable[[], str | None]) -> EngineChoice:
    """Pulumi's own engine where its CLI is on PATH, can run a Python program, and can be inside a hub; in process otherwise.

    why_not says why a hub's network cannot be made on this machine, None where it can; it is asked where the CLI can be used.
    """
    found = find_programs()
    if isinstance(found, str):
        return EngineChoice(None, found)
    outside = why_not()
    if outside is not None:
        return EngineChoice(None, f"the CLI is on PATH, but no hub's network can be made here: {outside}")
    return EngineChoice(found, "the CLI is on PATH and a hub's network can be made here")


def find_programs() -> PulumiPrograms | str:
    """The programs that are needed, or the sentence that says which is missing."""
    cli = shutil.which(CLI)
    if cli is None:
        return f"{CLI} is not on PATH ({INSTALL})"
    folder = Path(cli).resolve().parent
    if shutil.which(LANGUAGE_HOST, path=f"{folder}{os.pathsep}{os.environ.get('PATH', '')}") is None:
        return f"{cli} has no {LANGUAGE_HOST} beside it ({INSTALL})"
    uv = shutil.which(UV) or shutil.which(UV, path=str(ROOT / ".bootstrap" / "bin"))
    if uv is None:
        return f"{UV}, through which {CLI} runs Python, is neither on PATH nor in .bootstrap/bin (make setup puts it there)"
    try:
        version = PulumiCommand(version=OLDEST_CLI).version
    except (InvalidVersionError, OSError, subprocess.CalledProcessError) as error:
        return f"{cli} cannot be used: {str(error).strip() or type(error).__name__}"
    return PulumiPrograms(folder / CLI, f"v{version}", (folder, Path(uv).parent))
