"""One machine of a control plane among others on this one: files, units in their order, and power."""

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
    """One machine: root is the folder for its /, address its address in the model.

    services are the services of its units by name, also of those that do not start at boot. boot_enabled are the units that the boot
    enables, enabled those of them that run here. overrides are the flags that a test changed.
    """

    def __init__(
        self,
        provisioned: ProvisionedMachine,
        mapping: MachineMapping,
        programs: MachinePrograms,
        azure: Mapping[str, str],
        supervisor: Supervisor,
        disks: Mapping[str, Path] | None = None,
    ) -> None:
        """Write the machine's files and read its units without starting them; raise BootFilesError, UnitFileError or UnmappedValueError.

        disks are folders that persist between runs, by path on the machine.
        """
        self.name, self.role = provisioned.name, provisioned.role
        self.resource_id, self.address = provisioned.resource_id, provisioned.address
        self.root = mapping.root
        self._mapping = mapping
        boot = read_boot(provisioned.name, provisioned.custom_data)
        self.units = units_of(boot)
        self.boot_enabled = boot.enabled
        self.enabled = tuple(name for name in boot.enabled if name not in NOT_RUN)
        for name in self.enabled:
            if name not in self.units:
                raise UnitFileError(provisioned.name, name, "this unit is enabled, and it has no unit file")
        _link_disks(disks or {}, mapping)
        _write_files(boot.files, mapping)
        _install_programs(programs, mapping)
        self.services: dict[str, Service] = {}
        overrides: list[Override] = []
        for name, unit in self.units.items():
            if name.endswith(".service") and name not in NOT_RUN:
                definition, unit_overrides = service_definition(unit, mapping, programs, azure, provisioned.address)
                overrides += unit_overrides
                self.services[name] = supervisor.add(definition)
        self.overrides = tuple(overrides)
        self._power = threading.Lock()
        self._off = threading.Event()
        self._off.set()
        self._boot: threading.Thread | None = None

    @property
    def on(self) -> bool:
        """Return True between start and the next stop or power cut."""
        return not self._off.is_set()

    def path(self, machine_path: str) -> Path:
        """Return the local path of a path on the machine; raise UnmappedValueError."""
        return self._mapping.path(machine_path)

    def port(self, port: int) -> int:
        """Return the loopback port of a port of the machine."""
        return self._mapping.listens(port)

    def start(self) -> None:
        """Boot: empty /run and /tmp, and start the enabled units in their order; return at once."""
        with self._power:
            if self.on:
                return
            self._off = threading.Event()
            self._empty(VOLATILE)
            self._boot = threading.Thread(target=self._start_units, args=(self._off,), name=f"boot of {self.name}", daemon=True)
            self._boot.start()

    def stop(self) -> None:
        """Shut down in reverse order; each unit has its stop timeout."""
        with self._power:
            self._end_boot()
            for service in reversed(self.services.values()):
                service.stop()

    def kill(self) -> None:
        """Cut the power: kill everything at once; nothing restarts until the machine starts."""
        with self._power:
            self._end_boot(cut=True)

    def wipe_nvme(self) -> None:
        """Redeploy: cut the power, empty local disks and /run, leave the OS disk, and boot."""
        self.kill()
        self._empty(local_disks(self.units.get(NVME_UNIT)))
        self.start()

    def _end_boot(self, *, cut: bool = False) -> None:
        self._off.set()
        if cut:
            _kill_all(self.services.values())
        if self._boot is not None:
            self._boot.join()
        if cut:
            # The boot may have started more services in between.
            _kill_all(self.services.values())

    def _empty(self, machine_paths: Iterable[str]) -> None:
        for machine_path in machine_paths:
            folder = self.root / machine_path[1:]
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)

    def _start_units(self, off: threading.Event) -> None:
        """Start each enabled unit once the units before it are ready or have failed once, as systemd does."""
        waiting = list(self.enabled)
        while waiting and not off.is_set():
            for name in [name for name in waiting if not self._must_wait(name, waiting)]:
                self._make_directories(self.units[name])
                if not off.is_set():
                    self.services[name].start()
                waiting.remove(name)
            off.wait(LOOK_SECONDS)

    def _must_wait(self, name: str, waiting: Iterable[str]) -> bool:
        """Return True if a unit must still wait for a unit before it."""
        return any(one in waiting or not _settled(self.services[one]) for one in before(name, self.units) if one in self.enabled)

    def _make_directories(self, unit: Unit) -> None:
        for directive, base in (("LogsDirectory", "/var/log"), ("RuntimeDirectory", "/run")):
            for name in unit.named(f"Service.{directive}"):
                mode = int(unit.last(f"Service.{directive}Mode", "0755"), 8)
                folder = self.path(f"{base}/{name}")
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(mode)


def _settled(service: Service) -> bool:
    """Return True if units after a service may start: it is ready, has failed, or has failed once and restarts."""
    return service.state in ("ready", "failed") or service.restarts > 0


def _kill_all(services: Iterable[Service]) -> None:
    """Kill services in parallel and wait until they have ended."""
    threads = [threading.Thread(target=service.stop, args=(signal.SIGKILL,)) for service in services]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def units_of(boot: BootFiles) -> dict[str, Unit]:
    """Return every unit in a machine's files, with its drop-ins, by name; raise UnitFileError, also for an unknown directive."""
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
                "rehearsal/local_cluster/systemd/unit_directives.py does not list this directive",
            )
    return units


def before(name: str, units: Mapping[str, Unit]) -> frozenset[str]:
    """Return the units after which a unit starts, by its own After= or their Before=."""
    return frozenset(units[name].named("Unit.After")) & units.keys() | {
        one.name for one in units.values() if name in one.named("Unit.Before")
    }


def local_disks(nvme: Unit | None) -> tuple[str, ...]:
    """Return the machine's paths on local NVMe devices, from the unit that mounts them."""
    if nvme is None:
        return ()
    flags = [word.partition("=") for command in nvme.start for word in command.argv[1:]]
    return tuple(value for flag, _, value in flags if flag in ("--mount", "--bind"))


def service_definition(
    unit: Unit, mapping: MachineMapping, programs: MachinePrograms, azure: Mapping[str, str], address: str
) -> tuple[ServiceDefinition, tuple[Override, ...]]:
    """Return a unit as a service of the supervisor, and a test's overrides; raise UnmappedValueError or UnitFileError."""
    if len(unit.start) != 1:
        raise UnitFileError(unit.name, f"{len(unit.start)} times ExecStart", "a unit that is run here starts one program")

    def mapped(command: Command) -> tuple[str, ...]:
        return programs.argv(unit, command, mapping, address)[0]

    argv, requested = programs.argv(unit, unit.start[0], mapping, address)
    always = unit.restart != "no"
    if any(not absent for _, absent in unit.environment_files) or any(one.may_fail for one in (*unit.start_pre, *unit.start_post)):
        raise UnitFileError(unit.name, "EnvironmentFile= without -, or a command with -", "neither is supported here")
    definition = ServiceDefinition(
        name=f"{mapping.machine}/{unit.name}",
        argv=argv,
        environment=environment(mapping, azure, unit),
        log=mapping.root / "var/log/journal" / f"{unit.name}.log",
        directory=mapping.root,
        before=tuple(map(mapped, unit.start_pre)),
        after=tuple(map(mapped, unit.start_post)),
        notify=unit.type == "notify",
        oneshot=unit.type == "oneshot",
        again=unit.type == "oneshot" and unit.last("Service.RemainAfterExit") != "yes",
        restart_seconds=unit.restart_seconds if always else None,
        environment_files=tuple(mapping.path(path) for path, _ in unit.environment_files),
        stop_seconds=unit.stop_seconds,
    )
    return definition, requested


def _link_disks(disks: Mapping[str, Path], mapping: MachineMapping) -> None:
    """Link paths of the machine to folders that persist between runs."""
    for machine_path, folder in disks.items():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = mapping.path(machine_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(folder)


def _install_programs(programs: MachinePrograms, mapping: MachineMapping) -> None:
    """Install the programs of the machine's image: links, and scripts that start modules of this package."""
    folder = mapping.path(PROGRAMS)
    folder.mkdir(parents=True)
    for name, program in programs.binaries.items():
        (folder / name).symlink_to(program)
    for name, module in OWN.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n')
        (folder / name).chmod(0o755)


def _write_files(files: Iterable[BootFile], mapping: MachineMapping) -> None:
    """Write a machine's files below its folder, with mapped contents and their modes."""
    for file in files:
        path = mapping.path(file.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(mapping.content(file.path, file.content))
        path.chmod(file.mode)
