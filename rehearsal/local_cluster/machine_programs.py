"""Local counterparts of a machine's programs: executable, arguments and environment."""

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
"""Folder of the image's programs that are started here; programs elsewhere were written by custom data."""
OWN = {"gpufleet-csr-approver": "services.csr_approver.cli", "gpufleet-etcd-snapshot": "services.etcd_snapshot.snapshot"}
"""Modules of the image's programs that come from this package."""
SHELLS = {"#!/bin/sh": "/bin/sh", "#!/usr/bin/env python3": sys.executable}
OWN_PORTS = {"kube-controller-manager": CONTROLLER_MANAGER_PORT, "kube-scheduler": SCHEDULER_PORT}
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class MachinePrograms:
    """Real programs by name, and a test's overrides: program -> flag -> value."""

    binaries: Mapping[str, Path]
    overrides: Mapping[str, Mapping[str, str]]

    def argv(self, unit: Unit, command: Command, mapping: MachineMapping, address: str) -> tuple[tuple[str, ...], tuple[Override, ...]]:
        """Return a unit's command line as it runs here, and a test's overrides; raise UnmappedValueError or UnitFileError."""
        words = expanded(command, _known(unit, command))
        program = PurePosixPath(words[0]).name
        if program not in FLAGS:
            raise UnitFileError(unit.name, words[0], "this program is unknown; path_fields.FLAGS does not list it")
        if not words[0].startswith(INSTALLED):
            return (*_script(mapping, words[0]), *mapping.arguments(program, words[1:]), *_manifest(program, mapping)), ()
        mapped = mapping.arguments(program, words[1:])
        verbs = tuple(takewhile(lambda word: not word.startswith("-"), mapped)) if program in OWN else ()
        flags = dict(_flag(unit, word) for word in mapped[len(verbs) :])
        flags, requested = overrides.local_flags(program, flags, address, _ports(program, flags, mapping), self.overrides.get(program, {}))
        return (*self._program(program), *verbs, *(f"--{name}={value}" for name, value in flags.items())), requested

    def _program(self, name: str) -> tuple[str, ...]:
        return (sys.executable, "-m", OWN[name]) if name in OWN else (str(self.binaries[name]),)


def environment(mapping: MachineMapping, azure: Mapping[str, str], unit: Unit) -> dict[str, str]:
    """Return the whole environment of a unit's programs: the unit's own, mapped, and the variables in overrides.ENVIRONMENT."""
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
        **{name: str(mapping.path(path)) for name, path in guard.items()},
        **azure,
    }
    return {**added, **mapping.environment(unit.environment)}


def _known(unit: Unit, command: Command) -> Mapping[str, str]:
    """Return the variables of a command line; refuse a variable that only a file sets at each start, because argv is fixed before."""
    unset = variables(command) - set(unit.environment)
    if unset and unit.environment_files:
        raise UnitFileError(
            unit.name, " ".join(command.argv), f"{', '.join(sorted(unset))} may come from a file that is read at each start"
        )
    return unit.environment


def _flag(unit: Unit, word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not word.startswith("--") or not equals:
        raise UnitFileError(unit.name, word, "a flag of these programs is written --name=value")
    return name[2:], value


def _ports(program: str, flags: Mapping[str, str], mapping: MachineMapping) -> dict[str, int]:
    """Return the local port of a program."""
    if program in OWN_PORTS:
        return {program: mapping.listens(OWN_PORTS[program], LOOPBACK)}
    return {program: mapping.listens(int(flags["secure-port"]))} if program == "kube-apiserver" else {}


def _script(mapping: MachineMapping, machine_path: str) -> tuple[str, ...]:
    """Return the command of a script of the custom data: the interpreter in its first line, and its path."""
    path = mapping.path(machine_path)
    if not path.is_file():
        raise UnmappedValueError(mapping.machine, machine_path, "custom data contains no such file")
    with path.open() as file:
        line = file.readline().strip()
    if line not in SHELLS:
        raise UnmappedValueError(mapping.machine, machine_path, f"its first line {line[:60]!r} names no known interpreter")
    return SHELLS[line], str(path)


def _manifest(program: str, mapping: MachineMapping) -> tuple[str, ...]:
    return (str(mapping.path(MANIFEST)),) if program == "gpufleet-fetch-secrets" else ()
