"""Runs one machine of a control plane among others on this one: its files, its units in their order, and what happens to machines."""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from rehearsal.local_cluster.boot_files import BootFile, BootFiles, read_boot
from rehearsal.local_cluster.machine_mapping import PROGRAMS, MachineMapping
from rehearsal.local_cluster.machine_programs import OWN, MachinePrograms, environment
from rehearsal.local_cluster.overrides import NOT_RUN, Override
from rehearsal.local_cluster.provisioned_machines import ProvisionedMachine
from rehearsal.local_cluster.systemd.supervisor import Service, ServiceDefinition, Supervisor
from rehearsal.local_cluster.systemd.unit_file import Command, Unit, UnitFileError, read_unit

UNITS = "/etc/systemd/system/"
NVME_UNIT = "gpufleet-nvme.service"
VOLATILE = ("/run", "/tmp")  # noqa: S108 (of the machine)
LOOK_SECONDS = 0.05


class Machine:
    """One machine: root is the folder that stands for its /, services holds its units' by name, address is its own in the model.

    services are those of every unit that was laid and is run here, started with the machine or not. boot_enabled names what the boot
    enables, enabled what of that is run here. altered tells what a test changed.
    """

    def __init__(
        self,
        given: ProvisionedMachine,
        placement: MachineMapping,
        programs: MachinePrograms,
        azure: Mapping[str, str],
        supervisor: Supervisor,
        disks: Mapping[str, Path] | None = None,
    ) -> None:
        """Lay the machine's files and take up its units, without starting any; BootRefused, UnitRefused, Unplaced.

        disks are folders that hold what lies below paths of the machine, from earlier runs of it and for later ones.
        """
        self.name, self.resource_id, self.address, self.role = given.name, given.resource_id, given.address, given.role
        self.root = placement.root
        self._placement = placement
        boot = read_boot(given.name, given.custom_data)
        self.units = units_of(boot)
        self.boot_enabled = boot.enabled
        self.enabled = tuple(name for name in boot.enabled if name not in NOT_RUN)
        for name in self.enabled:
            if name not in self.units:
                raise UnitFileError(given.name, name, "this unit is enabled, and no file of it was laid")
        _mount(disks or {}, placement)
        _lay(boot.files, placement)
        _install(programs, placement)
        self.services: dict[str, Service] = {}
        altered: list[Override] = []
        for name, unit in self.units.items():
            if name.endswith(".service") and name not in NOT_RUN:
                program, asked = program_of(unit, placement, programs, azure, given.address)
                altered += asked
                self.services[name] = supervisor.add(program)
        self.altered = tuple(altered)
        self._power = threading.Lock()
        self._off = threading.Event()
        self._off.set()
        self._boot: threading.Thread | None = None

    @property
    def on(self) -> bool:
        """Whether it has been started, and neither stopped nor cut off since."""
        return not self._off.is_set()

    def path(self, machine_path: str) -> Path:
        """Where a path of the machine lies; Unplaced."""
        return self._placement.path(machine_path)

    def port(self, port: int) -> int:
        """Port of loopback that stands for one of the machine's."""
        return self._placement.listens(port)

    def start(self) -> None:
        """Boot: /run and /tmp are empty, and the enabled units start in their order, while this returns at once."""
        with self._power:
            if self.on:
                return
            self._off = threading.Event()
            self._empty(VOLATILE)
            self._boot = threading.Thread(target=self._start_units, args=(self._off,), name=f"boot of {self.name}", daemon=True)
            self._boot.start()

    def stop(self) -> None:
        """Shut down in order, the last started first, each unit with the time that it is given."""
        with self._power:
            self._end_boot()
            for service in reversed(self.services.values()):
                service.stop()

    def kill(self) -> None:
        """Cut the power: everything ends at once, unasked, and nothing starts again until the machine does."""
        with self._power:
            self._end_boot(cut=True)

    def wipe_nvme(self) -> None:
        """What a redeploy does: power cut, local disks and /run empty, OS disk as it was, boot."""
        self.kill()
        self._empty(local_disks(self.units.get(NVME_UNIT)))
        self.start()

    def _end_boot(self, *, cut: bool = False) -> None:
        self._off.set()
        if cut:
            _cut(self.services.values())
        if self._boot is not None:
            self._boot.join()
        if cut:
            # What the boot was just about to start when the power went.
            _cut(self.services.values())

    def _empty(self, machine_paths: Iterable[str]) -> None:
        for machine_path in machine_paths:
            folder = self.root / machine_path[1:]
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)

    def _start_units(self, off: threading.Event) -> None:
        """Start each enabled unit once those that it comes after are ready, or have failed once, as systemd does."""
        waiting = list(self.enabled)
        while waiting and not off.is_set():
            for name in [name for name in waiting if not self._held_back(name, waiting)]:
                self._make_directories(self.units[name])
                if not off.is_set():
                    self.services[name].start()
                waiting.remove(name)
            off.wait(LOOK_SECONDS)

    def _held_back(self, name: str, waiting: Iterable[str]) -> bool:
        """Whether a unit still waits for another that it comes after."""
        return any(one in waiting or not _settled(self.services[one]) for one in before(name, self.units) if one in self.enabled)

    def _make_directories(self, unit: Unit) -> None:
        for directive, base in (("LogsDirectory", "/var/log"), ("RuntimeDirectory", "/run")):
            for name in unit.named(f"Service.{directive}"):
                mode = int(unit.last(f"Service.{directive}Mode", "0755"), 8)
                folder = self.path(f"{base}/{name}")
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(mode)


def _settled(service: Service) -> bool:
    """Whether what comes after a service may start: it is ready, has failed, or has failed once and tries again."""
    return service.state in ("ready", "failed") or service.restarts > 0


def _cut(services: Iterable[Service]) -> None:
    """Kill services all at once, and wait until they are gone."""
    threads = [threading.Thread(target=service.stop, args=(signal.SIGKILL,)) for service in services]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def units_of(boot: BootFiles) -> dict[str, Unit]:
    """Every unit that a machine's files hold, with its drop-ins, by name; UnitRefused also for a directive that nothing is known of."""
    texts = {one.path.removeprefix(UNITS): one.content for one in boot.files if one.path.startswith(UNITS)}
    units = {}
    for name, text in texts.items():
        if "/" in name:
            continue
        drop_ins = [(path, text) for path, text in texts.items() if path.startswith(f"{name}.d/")]
        units[name] = read_unit(name, text, drop_ins)
        if units[name].unknown:
            raise UnitFileError(
                name,
                ", ".join(units[name].unknown),
                "no table of rehearsal/local_cluster/systemd/unit_directives.py says what this means here",
            )
    return units


def before(name: str, units: Mapping[str, Unit]) -> frozenset[str]:
    """Units of the machine after which a unit starts: told by itself, or by them."""
    told = units[name].named("Unit.After")
    return frozenset(told) & units.keys() | {one.name for one in units.values() if name in one.named("Unit.Before")}


def local_disks(nvme: Unit | None) -> tuple[str, ...]:
    """Paths of the machine that lie on local NVMe devices, as the unit that mounts them says."""
    if nvme is None:
        return ()
    flags = [word.partition("=") for command in nvme.start for word in command.argv[1:]]
    return tuple(value for flag, _, value in flags if flag in ("--mount", "--bind"))


def program_of(
    unit: Unit, placement: MachineMapping, programs: MachinePrograms, azure: Mapping[str, str], address: str
) -> tuple[ServiceDefinition, tuple[Override, ...]]:
    """A unit as a program that the supervisor runs, and what a test altered; Unplaced, UnitRefused."""
    if len(unit.start) != 1:
        raise UnitFileError(unit.name, f"{len(unit.start)} times ExecStart", "a unit that is run here starts one program")

    def placed(command: Command) -> tuple[str, ...]:
        return programs.argv(unit, command, placement, address)[0]

    argv, asked = programs.argv(unit, unit.start[0], placement, address)
    always = unit.restart != "no"
    if any(not absent for _, absent in unit.environment_files) or any(one.may_fail for one in (*unit.start_pre, *unit.start_post)):
        raise UnitFileError(unit.name, "EnvironmentFile= without -, or a command with -", "neither is honoured here")
    program = ServiceDefinition(
        name=f"{placement.machine}/{unit.name}",
        argv=argv,
        environment=environment(placement, azure, unit),
        log=placement.root / "var/log/journal" / f"{unit.name}.log",
        directory=placement.root,
        before=tuple(map(placed, unit.start_pre)),
        after=tuple(map(placed, unit.start_post)),
        notify=unit.type == "notify",
        oneshot=unit.type == "oneshot",
        again=unit.type == "oneshot" and unit.last("Service.RemainAfterExit") != "yes",
        restart_seconds=unit.restart_seconds if always else None,
        environment_files=tuple(placement.path(path) for path, _ in unit.environment_files),
        stop_seconds=unit.stop_seconds,
    )
    return program, asked


def _mount(disks: Mapping[str, Path], placement: MachineMapping) -> None:
    """Have what lies below paths of the machine in these folders."""
    for machine_path, folder in disks.items():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = placement.path(machine_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(folder)


def _install(programs: MachinePrograms, placement: MachineMapping) -> None:
    """Put the programs that the machine's image would have: links, and for this package's own what starts their modules."""
    folder = placement.path(PROGRAMS)
    folder.mkdir(parents=True)
    for name, program in programs.engines.items():
        (folder / name).symlink_to(program)
    for name, module in OWN.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n')
        (folder / name).chmod(0o755)


def _lay(files: Iterable[BootFile], placement: MachineMapping) -> None:
    """Write a machine's files where they belong, placed, with their modes."""
    for file in files:
        path = placement.path(file.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(placement.content(file.path, file.content))
        path.chmod(file.mode)
