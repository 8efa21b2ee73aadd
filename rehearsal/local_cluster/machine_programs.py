"""Decides which program of this machine stands for one of a rehearsed machine, and what it is started with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePosixPath

from rehearsal.local_cluster import overrides
from rehearsal.local_cluster.machine_mapping import LOOPBACK, MANIFEST, SNAPSHOT_MANIFEST, MachineMapping, UnmappedValueError
from rehearsal.local_cluster.overrides import CONTROLLER_MANAGER_PORT, SCHEDULER_PORT, Override
from rehearsal.local_cluster.path_fields import FLAGS
from rehearsal.local_cluster.systemd.unit_file import Command, Unit, UnitFileError, expanded, variables

INSTALLED = "/usr/local/bin/"
"""Where a machine's image has the programs that are ours to start; what lies elsewhere was laid by its custom data."""
OWN = {"gpufleet-csr-approver": "services.csr_approver.cli", "gpufleet-etcd-snapshot": "services.etcd_snapshot.snapshot"}
"""Modules of the programs that an image has from this package."""
SHELLS = {"#!/bin/sh": "/bin/sh", "#!/usr/bin/env python3": sys.executable}
OWN_PORTS = {"kube-controller-manager": CONTROLLER_MANAGER_PORT, "kube-scheduler": SCHEDULER_PORT}
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class MachinePrograms:
    """Real programs by name, and what a test changes: program -> flag -> value."""

    engines: Mapping[str, Path]
    altered: Mapping[str, Mapping[str, str]]

    def argv(self, unit: Unit, command: Command, placement: MachineMapping, address: str) -> tuple[tuple[str, ...], tuple[Override, ...]]:
        """A command line of a unit as it runs here, and the alterations that a test asked for; Unplaced, UnitRefused."""
        words = expanded(command, _known(unit, command))
        program = PurePosixPath(words[0]).name
        if program not in FLAGS:
            raise UnitFileError(unit.name, words[0], "this program is not known here")
        if not words[0].startswith(INSTALLED):
            return (*_script(placement, words[0]), *placement.arguments(program, words[1:]), *_manifest(program, placement)), ()
        placed = placement.arguments(program, words[1:])
        verbs = tuple(takewhile(lambda word: not word.startswith("-"), placed)) if program in OWN else ()
        flags = dict(_flag(unit, word) for word in placed[len(verbs) :])
        flags, asked = overrides.local_flags(program, flags, address, _ports(program, flags, placement), self.altered.get(program, {}))
        return (*self._program(program), *verbs, *(f"--{name}={value}" for name, value in flags.items())), asked

    def _program(self, name: str) -> tuple[str, ...]:
        return (sys.executable, "-m", OWN[name]) if name in OWN else (str(self.engines[name]),)


def environment(placement: MachineMapping, azure: Mapping[str, str], unit: Unit) -> dict[str, str]:
    """Whole environment of a unit's programs: the unit's own, placed, and what alterations.ENVIRONMENT lists."""
    guard = {
        "GPUFLEET_ETCD_DATA": "/var/lib/etcd/data",
        "GPUFLEET_ETCD_MARKER": "/var/lib/gpufleet/etcd-member",
        "GPUFLEET_ETCD_JOIN": "/run/gpufleet/etcd-join.env",
        "GPUFLEET_SNAPSHOT_MANIFEST": SNAPSHOT_MANIFEST,
        "GPUFLEET_ETCD_RING": "/usr/local/sbin/gpufleet-etcd-ring",
    }
    added = {
        "PATH": f"{Path(sys.executable).parent}:{DEFAULT_PATH}",
        "LANG": "C.UTF-8",
        "GPUFLEET_ETCD_PAUSE": "1",
        **{name: str(placement.path(path)) for name, path in guard.items()},
        **azure,
    }
    return {**added, **placement.environment(unit.environment)}


def _known(unit: Unit, command: Command) -> Mapping[str, str]:
    """Variables of a command line; one that only a file sets at each start is refused: argv is decided before."""
    unset = variables(command) - set(unit.environment)
    if unset and unit.environment_files:
        raise UnitFileError(
            unit.name, " ".join(command.argv), f"{', '.join(sorted(unset))} may come from a file, which is read at each start"
        )
    return unit.environment


def _flag(unit: Unit, word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not word.startswith("--") or not equals:
        raise UnitFileError(unit.name, word, "a flag of these programs is written --name=value")
    return name[2:], value


def _ports(program: str, flags: Mapping[str, str], placement: MachineMapping) -> dict[str, int]:
    """Port on which a program serves here."""
    if program in OWN_PORTS:
        return {program: placement.listens(OWN_PORTS[program], LOOPBACK)}
    return {program: placement.listens(int(flags["secure-port"]))} if program == "kube-apiserver" else {}


def _script(placement: MachineMapping, machine_path: str) -> tuple[str, ...]:
    """A program that was laid, run by the interpreter that its first line names."""
    path = placement.path(machine_path)
    if not path.is_file():
        raise UnmappedValueError(placement.machine, machine_path, "nothing was laid there")
    with path.open() as file:
        line = file.readline().strip()
    if line not in SHELLS:
        raise UnmappedValueError(placement.machine, machine_path, f"its first line {line[:60]!r} names no interpreter that is known here")
    return SHELLS[line], str(path)


def _manifest(program: str, placement: MachineMapping) -> tuple[str, ...]:
    return (str(placement.path(MANIFEST)),) if program == "gpufleet-fetch-secrets" else ()
