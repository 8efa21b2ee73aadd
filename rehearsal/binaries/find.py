"""Search for the pinned programs: on PATH in exactly the pinned version, then in the cache; a missing program is built."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from rehearsal.binaries.build import NO_STAGES, build, stages_whole
from rehearsal.binaries.cache import Cache, cache_of
from rehearsal.binaries.pins import CNI_PINS, PINS, BinariesMissingError, Pins, Program
from rehearsal.binaries.progress import Phase, ProgressEvent, ReportProgress, line_reporter
from rehearsal.binaries.version_check import version_mismatch

__all__ = [
    "Binaries",
    "BinariesMissingError",
    "FoundProgram",
    "Source",
    "Survey",
    "cni_plugins",
    "find_binaries",
    "locate",
    "locate_stages",
    "prepare",
    "survey",
]

BUILD_THEM = "gpufleet binaries builds them, which takes about 10 minutes on two cores"


@dataclass(frozen=True)
class Binaries:
    """Paths of the programs by name, and the folder of kwok's stage files, with one folder of YAML files per set."""

    programs: Mapping[str, Path]
    stages: Path

    def program(self, name: str) -> Path:
        """Return the path of a program. KeyError for one that was not requested (kube-proxy and kubemark need `measuring`)."""
        return self.programs[name]

    def stage_files(self, name: str) -> tuple[Path, ...]:
        """Return the files of a set: node-fast, node-heartbeat-with-lease, pod-fast or pod-general."""
        return tuple(sorted((self.stages / name).glob("*.yaml")))


class Source(Enum):
    PATH = "PATH"
    CACHE = "cache"
    BUILT = "built now"
    MISSING = "missing"


@dataclass(frozen=True)
class FoundProgram:
    """One program: its source and path, and the reasons why other files of its name were rejected."""

    program: Program
    version: str
    source: Source
    path: Path
    passed_over: tuple[str, ...] = ()


@dataclass(frozen=True)
class Survey:
    """All requested programs in the pins' order, and the folder of the stage files (None if it is missing)."""

    rows: tuple[FoundProgram, ...]
    stages: Path | None
    cache: Cache

    @property
    def missing(self) -> tuple[Program, ...]:
        return tuple(row.program for row in self.rows if row.source is Source.MISSING)

    @property
    def lacking(self) -> tuple[str, ...]:
        """Return the names of all missing programs and files."""
        return (*(program.name for program in self.missing), *(() if self.stages else (NO_STAGES,)))


def find_binaries(say: Callable[[str], None] = lambda _: None, *, build: bool = True, measuring: bool = False) -> Binaries:
    """Return the pinned programs. Missing ones are built first if `build` is true; `say` gets the progress as lines of text.

    `measuring` adds kube-proxy and kubemark. Raises BinariesMissingError.
    """
    found = _all_of(PINS, say, build, measuring)
    return Binaries({row.program.name: row.path for row in found.rows}, found.stages or found.cache.stages)


def cni_plugins(say: Callable[[str], None] = lambda _: None, *, build: bool = True) -> Mapping[str, Path]:
    """Return the paths of the pinned CNI plugins by name, found or built like the other programs. Raises BinariesMissingError."""
    return {row.program.name: row.path for row in _all_of(CNI_PINS, say, build).rows}


def _all_of(pins: Pins, say: Callable[[str], None], build: bool, measuring: bool = False) -> Survey:
    found = prepare(pins, line_reporter(say), measuring) if build else survey(pins, measuring)
    if found.lacking:
        raise BinariesMissingError(", ".join(found.lacking), _nowhere(found.cache), BUILD_THEM)
    return found


def survey(pins: Pins, measuring: bool = False) -> Survey:
    """Search for the programs without building any."""
    cache = cache_of(pins)
    programs = pins.selected(measuring)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = tuple(pool.map(lambda program: _look(pins, cache, program), programs))
    return Survey(rows, cache.stages if stages_whole(pins, cache) else None, cache)


def locate(pins: Pins, name: str) -> Path:
    """Return the path of one program without building it. Raises BinariesMissingError."""
    cache = cache_of(pins)
    (program,) = (program for program in pins.programs if program.name == name)
    row = _look(pins, cache, program)
    if row.source is Source.MISSING:
        raise BinariesMissingError(name, _nowhere(cache), BUILD_THEM)
    return row.path


def locate_stages(pins: Pins) -> Path:
    """Return the folder of kwok's stage files without creating it. Raises BinariesMissingError."""
    cache = cache_of(pins)
    if not stages_whole(pins, cache):
        raise BinariesMissingError(NO_STAGES, _nowhere(cache), BUILD_THEM)
    return cache.stages


def prepare(pins: Pins, tell: ReportProgress, measuring: bool = False) -> Survey:
    """Search for the programs and build the missing ones. Of two processes, one builds and the other waits.

    Raises BinariesMissingError.
    """
    try:
        found = survey(pins, measuring)
        return _with_the_rest(pins, found, tell) if found.lacking else found
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        raise BinariesMissingError(
            "the programs cannot be stored",
            f"{error.strerror or error}{where}",
            "free disk space there, or set GPUFLEET_CACHE to a writable folder",
        ) from error


def _with_the_rest(pins: Pins, found: Survey, tell: ReportProgress) -> Survey:
    began = time.monotonic()
    with found.cache.held(lambda what: tell(ProgressEvent(Phase.WAITS, what, time.monotonic() - began))) as others:
        again = {row.program: _look(pins, found.cache, row.program) for row in found.rows if row.source is Source.MISSING}
        missing = tuple(program for program, row in again.items() if row.source is Source.MISSING)
        stages = not stages_whole(pins, found.cache)
        if missing or stages:
            build(pins, found.cache, missing, stages, tell, others)
    built = {program: replace(again[program], source=Source.BUILT, path=found.cache.folder / program.name) for program in missing}
    return Survey(tuple(built.get(row.program, again.get(row.program, row)) for row in found.rows), found.cache.stages, found.cache)


def _look(pins: Pins, cache: Cache, program: Program) -> FoundProgram:
    version = pins.version(program)
    passed_over: list[str] = []
    for source, path in _places(cache, program):
        reason = version_mismatch(path, program, version)
        if not reason:
            return FoundProgram(program, version, source, path, tuple(passed_over))
        passed_over.append(f"{path}: {reason}")
    return FoundProgram(program, version, Source.MISSING, cache.folder / program.name, tuple(passed_over))


def _nowhere(cache: Cache) -> str:
    return f"neither on PATH in the pinned version nor in {cache.folder}"


def _places(cache: Cache, program: Program) -> Sequence[tuple[Source, Path]]:
    """Return the candidates for a program: the file that PATH gives, and the one in the cache."""
    on_path = shutil.which(program.name)
    cached = cache.folder / program.name
    places = [(Source.PATH, Path(on_path).absolute())] if on_path and Path(on_path).absolute() != cached else []
    return [*places, *([(Source.CACHE, cached)] if cached.exists() else [])]
