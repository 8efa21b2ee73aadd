"""Files of control-plane machines for a benchmark, read from their custom data."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from components.boot.api_server import boot_api_server
from components.boot.control_keys import secrets_of
from components.boot.etcd import boot_etcd
from components.boot.files import fetch_secrets
from components.boot.machine import MachineBoot, custom_data
from components.manifests.objects import cluster_objects
from components.plan.model import ClusterPlan, RegionPlan
from rehearsal.local_cluster.boot_files import BootFile, BootFiles, read_boot
from rehearsal.local_cluster.systemd.unit_file import Unit, read_unit
from stacks.load import load_plan

REGIONS = ("dev", "southcentralus", "swedencentral")
UNITS = "/etc/systemd/system"
API, MANAGER, SCHEDULER, ETCD = "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"
KUBERNETES = "/etc/kubernetes"
WRITABLE_BY_OTHERS, OPEN_TO_OTHERS = 0o022, 0o077


@dataclass(frozen=True)
class Rendered:
    """Boot files of a cluster: an API server and the members of both etcd clusters."""

    region: RegionPlan
    cluster: ClusterPlan

    @cached_property
    def api(self) -> BootFiles:
        return _read("api", boot_api_server(self.region, self.cluster))

    @cached_property
    def members(self) -> tuple[BootFiles, ...]:
        """Machines of all members of both etcd clusters."""
        etcd_clusters = (self.cluster.etcd, self.cluster.events_etcd)
        return tuple(_read(member.name, boot_etcd(self.cluster, ring, member)) for ring in etcd_clusters for member in ring.members)

    def flags(self, program: str) -> Mapping[str, str]:
        """Flags with which an API server's machine starts a program, as systemd reads its unit."""
        return flags_of(self.unit(self.api, program), program)

    def unit(self, machine: BootFiles, program: str) -> Unit:
        return read_unit(f"{program}.service", machine.content(f"{UNITS}/{program}.service"))

    def unit_file(self, machine: BootFiles, program: str) -> BootFile:
        return file_at(machine, f"{UNITS}/{program}.service")

    def configuration(self, path: str) -> Any:
        """A file in YAML of an API server's machine."""
        return yaml.safe_load(self.api.content(path))

    @cached_property
    def objects(self) -> tuple[dict[str, Any], ...]:
        return cluster_objects(self.region, self.cluster)


@cache
def rendered() -> Mapping[str, Rendered]:
    """Every cluster of the three regions, by "region/cluster"."""
    plans = (load_plan(name) for name in REGIONS)
    return {f"{plan.name}/{cluster.name}": Rendered(plan, cluster) for plan in plans for cluster in plan.clusters}


def _read(name: str, boot: MachineBoot) -> BootFiles:
    return read_boot(name, custom_data(boot))


def file_at(machine: BootFiles, path: str) -> BootFile:
    (found,) = [item for item in machine.files if item.path == path]
    return found


def flags_of(unit: Unit, program: str) -> Mapping[str, str]:
    """Flags of a unit's one command."""
    (command,) = unit.start
    assert Path(command.argv[0]).name == program
    pairs = [word.removeprefix("--").partition("=") for word in command.argv[1:]]
    assert len({name for name, _, _ in pairs}) == len(pairs), "a flag is given twice"
    return {name: value for name, _, value in pairs}


Check = Callable[[Rendered], None]


def flag(program: str, **expected: str) -> Check:
    """The program's flags have these values; _ stands for -."""

    def check(one: Rendered) -> None:
        given = one.flags(program)
        assert {name: given.get(name.replace("_", "-")) for name in expected} == expected

    return check


def absent(program: str, *names: str) -> Check:
    """The program is not given these flags."""

    def check(one: Rendered) -> None:
        assert not set(names) & set(one.flags(program))

    return check


def holds(program: str, name: str, *values: str) -> Check:
    """A flag that is a list has these values."""

    def check(one: Rendered) -> None:
        assert set(values) <= set(one.flags(program)[name].split(","))

    return check


def lacks(program: str, name: str, *values: str) -> Check:
    """A flag that is a list, if it is given at all, has none of these values."""

    def check(one: Rendered) -> None:
        assert not set(values) & set(one.flags(program).get(name, "").split(","))

    return check


def at_least(program: str, name: str, bound: int) -> Check:
    def check(one: Rendered) -> None:
        assert int(one.flags(program)[name]) >= bound

    return check


def keys(program: str, *names: str) -> Check:
    """Flags that name key files do so, and each is one that the machine fetches."""

    def check(one: Rendered) -> None:
        fetched = _fetched(one.cluster)
        assert {one.flags(program)[name] for name in names} <= fetched

    return check


def _fetched(cluster: ClusterPlan) -> set[str]:
    secrets = secrets_of(cluster)
    return {secrets.path(name) for name in secrets.stored} | set(secrets.compose)


def members_flag(**expected: str) -> Check:
    """All members of both etcd clusters have these flags."""

    def check(one: Rendered) -> None:
        for machine in one.members:
            given = flags_of(one.unit(machine, ETCD), ETCD)
            assert {name: given.get(name.replace("_", "-")) for name in expected} == expected

    return check


def members_lack(*names: str) -> Check:
    def check(one: Rendered) -> None:
        for machine in one.members:
            given = flags_of(one.unit(machine, ETCD), ETCD)
            environment = one.unit(machine, ETCD).environment
            assert not set(names) & set(given)
            assert not {f"ETCD_{name.upper().replace('-', '_')}" for name in names} & set(environment)

    return check


def members_keys(*names: str) -> Check:
    """All members of both etcd clusters have their own certificate and key."""

    def check(one: Rendered) -> None:
        used = [tuple(flags_of(one.unit(machine, ETCD), ETCD)[name] for name in names) for machine in one.members]
        assert len(set(used)) == len(used)
        assert all(Path(path).parent == Path("/etc/etcd") for paths in used for path in paths)

    return check


def private(path: str) -> Check:
    """Only root can access a file of an API server's machine."""

    def check(one: Rendered) -> None:
        assert not file_at(one.api, path).mode & OPEN_TO_OTHERS

    return check


def roots(path: str) -> Check:
    def check(one: Rendered) -> None:
        assert file_at(one.api, path).owner == "root:root"

    return check


def unit_steady(program: str) -> Check:
    """A unit file that everybody may read, and nobody but root may write, names key files and holds none."""

    def check(one: Rendered) -> None:
        for machine in one.members if program == ETCD else (one.api,):
            found = one.unit_file(machine, program)
            assert found.owner == "root:root"
            assert not found.mode & WRITABLE_BY_OTHERS
            assert "PRIVATE KEY" not in found.content

    return check


@cache
def _fetched_files(name: str) -> tuple[tuple[str, int], ...]:
    """Mode of every file, and of every folder, that the machine's own program writes of a cluster's secrets."""
    secrets = secrets_of(rendered()[name].cluster)
    with tempfile.TemporaryDirectory() as root:
        at = {"directory": f"{root}{secrets.directory}", "keep": secrets.stored}
        manifest = {**at, "compose": {f"{root}{path}": lines for path, lines in secrets.compose.items()}}
        values = dict.fromkeys((*secrets.stored, *secrets.only_composed), "no secret\n")
        asides = [fetch_secrets.write_aside(Path(path), text) for path, text in fetch_secrets.files_of(manifest, values).items()]
        folders = {aside.parent for aside in asides if aside.parent.name == "pki"}
        return tuple((str(path)[len(root) :], path.stat().st_mode & 0o777) for path in (*asides, *folders))


def fetched_private(one: Rendered) -> None:
    """Certificates, keys and the folder with them are root's alone as fetch_secrets writes them."""
    found = _fetched_files(f"{one.region.name}/{one.cluster.name}")
    assert len(found) > 20
    assert not [row for row in found if row[1] & OPEN_TO_OTHERS]


def fetched_by_root(one: Rendered) -> None:
    """The unit that fetches them runs as root, so that what it writes is root's."""
    for machine in (one.api, *one.members):
        unit = one.unit(machine, "gpufleet-secrets")
        assert not unit.last("Service.User")
        assert not unit.last("Service.Group")
