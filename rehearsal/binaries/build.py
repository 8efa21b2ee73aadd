"""Build of pinned programs from their Go modules: check disk space, build in a temporary folder, run, then install in the cache."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rehearsal.binaries import go_command
from rehearsal.binaries.cache import Cache
from rehearsal.binaries.pins import BUILD, GIGABYTE, BinariesMissingError, Family, Pins, Program
from rehearsal.binaries.progress import Estimate, Phase, ProgramProgress, ReportProgress
from rehearsal.binaries.toolchain import Toolchain, toolchain
from rehearsal.binaries.version_check import version_mismatch

PROGRAM_GIGABYTES = 0.25
"""Disk space of one program while it is linked: the program, and go's copy of it before go moves it."""

NO_STAGES = "kwok's stage files"


@dataclass(frozen=True)
class BuildEnvironment:
    """Inputs that every step of a build needs."""

    pins: Pins
    cache: Cache
    tools: Toolchain
    aside: Path
    tell: ReportProgress

    def go(self, family: Family, words: Sequence[str], what: str, tick: Callable[[], None]) -> str:
        temporary = self.aside / "tmp"
        temporary.mkdir(exist_ok=True)
        environment = self.tools.environment | {"GOTMPDIR": str(temporary)}
        return go_command.run([str(self.tools.go), *words], self.pins.folder / family.name, environment, what, tick)


def build(pins: Pins, cache: Cache, programs: Sequence[Program], stages: bool, tell: ReportProgress, others: Callable[[str], None]) -> None:
    """Build the missing programs one after another. Finished programs stay in the cache if a later one fails.

    The caller holds the lock of the cache. Raises BinariesMissingError.
    """
    with cache.aside() as aside:
        place = BuildEnvironment(pins, cache, toolchain(pins, cache, aside, tell), aside, tell)
        _check_room(place, programs)
        estimate = Estimate(programs)
        for number, program in enumerate(programs, 1):
            others(f"{program.name}, {number} of {len(programs)}")
            watched = ProgramProgress(program.name, number, len(programs), estimate, tell)
            watched.tell(Phase.STARTS)
            _build_one(place, program, watched.tick)
            estimate.finished(program.name, watched.seconds)
            watched.tell(Phase.ENDS)
        if stages:
            _take_stages(place)
    if place.tools.ours:
        cache.remove_go_caches()


def stages_whole(pins: Pins, cache: Cache) -> bool:
    """Return whether every set of stage files exists and none of its files is empty."""
    sets = [list((cache.stages / name).glob("*.yaml")) for name in pins.stages]
    return all(files and all(file.stat().st_size for file in files) for files in sets)


def _build_one(place: BuildEnvironment, program: Program, tick: Callable[[], None]) -> None:
    family = place.pins.family(program.family)
    made = place.aside / program.name
    words = (*BUILD, "-ldflags", place.pins.linker_flags(family), "-o", str(made), program.package)
    place.go(family, words, f"{program.name} {family.version} cannot be built", tick)
    if reason := version_mismatch(made, program, place.pins.version(program)):
        remedy = "if programs may not run in that folder (noexec), set GPUFLEET_CACHE to one where they may"
        raise BinariesMissingError(f"{program.name} {family.version} was built in {place.aside}", reason, remedy)
    place.cache.install(made, program.name)


def _take_stages(place: BuildEnvironment) -> None:
    """Copy kwok's stage files from its Go module to the cache."""
    family = place.pins.family(place.pins.stages_family)
    output = place.go(family, ("mod", "download", "-json", family.module), f"{NO_STAGES} are not available", lambda: None)
    module = Path(json.loads(output)["Dir"])
    made = place.aside / "stages"
    for name, folder in place.pins.stages.items():
        (made / name).mkdir(parents=True)
        for file in sorted((module / folder).glob("*.yaml")):
            if file.name != "kustomization.yaml":
                # Not copied with its mode: files of a module are read-only.
                shutil.copyfile(file, made / name / file.name)
    place.cache.install(made, "stages")


def _check_room(place: BuildEnvironment, programs: Sequence[Program]) -> None:
    families = {program.family for program in programs}
    cold = [family for family in place.pins.families if family.name in families and not _downloaded(place.tools.modules, family)]
    needed = PROGRAM_GIGABYTES * len(programs) + sum(family.cold_gigabytes for family in cold)
    for folder in (place.tools.build, place.cache.folder):
        free = shutil.disk_usage(_existing(folder)).free / GIGABYTE
        if free < needed:
            raise BinariesMissingError(
                "the programs cannot be built",
                f"{free:.1f} GB are free on the disk of {folder}, at least {needed:.1f} GB are needed for {len(programs)} programs"
                " and Go's caches",
                "free some, or put gpufleet's cache (GPUFLEET_CACHE) and Go's (GOCACHE, GOMODCACHE) on a larger disk",
            )


def _downloaded(modules: Path, family: Family) -> bool:
    """Return whether Go's cache contains the family's module; most of its compiled packages are then there too."""
    return (modules / f"{family.module}@{family.version}").is_dir()


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())
