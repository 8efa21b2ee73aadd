"""Choice between Pulumi's engine and the local up for one command, with the reason."""

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
"""The oldest CLI that is accepted. Versions before 3.260 are untested."""
CLI, LANGUAGE_HOST, UV = "pulumi", "pulumi-language-python", "uv"
INSTALL = "https://www.pulumi.com/docs/install/ has it"


@dataclass(frozen=True)
class PulumiPrograms:
    """The programs that Pulumi's engine needs: the CLI and its version, and the folders that must be on its PATH."""

    cli: Path
    version: str
    path: tuple[Path, ...]


@dataclass(frozen=True)
class EngineChoice:
    """Pulumi's programs where its engine runs the command, None for the local up; and the reason."""

    programs: PulumiPrograms | None
    reason: str

    @property
    def line(self) -> str:
        """Return the line to print first."""
        if self.programs is None:
            return f"engine: none (local up), because {self.reason}"
        return f"engine: Pulumi {self.programs.version} ({self.programs.cli}), because {self.reason}"


def choose_engine(unavailable_reason: Callable[[], str | None]) -> EngineChoice:
    """Choose Pulumi's engine where its CLI is on PATH, runs Python programs, and a hub namespace can be created; the local up otherwise.

    unavailable_reason returns why no hub namespace can be created here, or None; it is called only where the CLI is usable.
    """
    found = find_programs()
    if isinstance(found, str):
        return EngineChoice(None, found)
    outside = unavailable_reason()
    if outside is not None:
        return EngineChoice(None, f"the CLI is on PATH, but no hub namespace can be created here: {outside}")
    return EngineChoice(found, "the CLI is on PATH and a hub namespace can be created here")


def find_programs() -> PulumiPrograms | str:
    """Return the programs, or a sentence on what is missing."""
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
