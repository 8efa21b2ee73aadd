"""The table of pins, the go.mod files and the names of cache folders agree."""

from __future__ import annotations

import platform
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from rehearsal.binaries.pins import ALL_PINS, CNI_PINS, PINS, Family, Pins

FAMILIES = [pytest.param(family, id=family.name) for pins in ALL_PINS for family in pins.families]


def lines(family: Family) -> list[str]:
    return [line.strip().removesuffix(" // indirect") for line in PINS.go_mod(family).splitlines()]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_go_mod_requires_the_pinned_version_and_its_go_sum_holds_the_module(family: Family) -> None:
    required = f"{family.module} {family.version}"
    assert required in [line.removeprefix("require ") for line in lines(family)]
    assert any(line.startswith(f"{required} h1:") for line in (PINS.folder / family.name / "go.sum").read_text().splitlines())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_tool_lines_of_a_go_mod_are_the_packages_of_its_programs(family: Family) -> None:
    text = PINS.go_mod(family)
    block = re.search(r"^tool \((.*?)^\)", text, re.MULTILINE | re.DOTALL)
    tools = block[1].split() if block else re.findall(r"^tool (\S+)$", text, re.MULTILINE)
    assert sorted(tools) == sorted(program.package for pins in ALL_PINS for program in pins.programs if program.family == family.name)


def test_etcds_client_programs_are_of_the_servers_version() -> None:
    (etcd,) = (family for family in PINS.families if family.name == "etcd")
    modules = {line.split()[0]: line.split()[1] for line in lines(etcd) if line.startswith("go.etcd.io/etcd/") and " v" in line}
    assert set(modules.values()) == {etcd.version}
    assert {"go.etcd.io/etcd/etcdctl/v3", "go.etcd.io/etcd/etcdutl/v3", "go.etcd.io/etcd/server/v3"} <= set(modules)


def test_the_staging_modules_of_kubernetes_are_those_of_its_version() -> None:
    (kubernetes,) = (family for family in PINS.families if family.name == "kubernetes")
    replaced = [line.split() for line in lines(kubernetes) if "=>" in line]
    assert len(replaced) > 30
    assert all(old == new and version == kubernetes.version.replace("v1.", "v0.") for old, _, new, version in replaced)


def test_the_stamped_version_of_kubernetes_is_the_pinned_one() -> None:
    (kubernetes,) = (family for family in PINS.families if family.name == "kubernetes")
    stamps = {name.rpartition(".")[2]: value for name, value in kubernetes.stamps.items()}
    assert f"v{stamps['gitMajor']}.{stamps['gitMinor']}." in stamps["gitVersion"]
    assert stamps["gitVersion"] == kubernetes.version


def copied(tmp_path: Path) -> Pins:
    folder = tmp_path / "pins"
    for family in PINS.families:
        shutil.copytree(PINS.folder / family.name, folder / family.name)
    return replace(PINS, folder=folder)


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_a_line_more_in_go_mod_or_go_sum_is_another_cache_folder(name: str, tmp_path: Path) -> None:
    pins = copied(tmp_path)
    before = pins.digest()
    assert before == PINS.digest()
    with (pins.folder / "kwok" / name).open("a") as file:
        file.write("// changed\n")
    assert pins.digest() != before


def test_a_version_a_stamp_and_the_machine_change_the_cache_folder_and_an_estimate_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    etcd, *others = PINS.families
    program, *programs = PINS.programs
    assert replace(PINS, families=(replace(etcd, version="v3.6.15"), *others)).digest() != PINS.digest()
    assert replace(PINS, families=(replace(etcd, stamps={"main.x": "y"}), *others)).digest() != PINS.digest()
    assert replace(PINS, programs=(replace(program, cold_seconds=1.0), *programs)).digest() == PINS.digest()
    before = PINS.digest()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64" if before and platform.uname().machine != "aarch64" else "x86_64")
    assert PINS.digest() != before


def test_the_cni_plugins_have_a_cache_folder_that_changes_apart_from_the_control_planes() -> None:
    assert not {family.name for family in PINS.families} & {family.name for family in CNI_PINS.families}
    (cni,) = CNI_PINS.families
    newer = replace(CNI_PINS, families=(replace(cni, version="v1.9.2"),))
    assert len({PINS.digest(), CNI_PINS.digest(), newer.digest()}) == 3
