"""cloud-init and systemd accept the boot files of machines; goldens contain their whole text."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from boot_machines import distinct, machines

from components.boot.machine import MachineBoot, cloud_config

GOLDENS = {
    "dev-etcd": "dev/dev/etcd",
    "dev-api-server": "dev/dev/api",
    "dev-node-gpu": "dev/dev/gpu",
}
DIFFERENCES = {"dev-node-cpu": "dev/dev/cpu", "southcentralus-node-h100": "southcentralus/research-a/h100"}
"""Other nodes, of which a golden has the differences from dev-node-gpu."""
HOST_UNITS = Path("/usr/lib/systemd/system")
IMAGE_UNITS = {"containerd.service": "[Service]\nType=notify\nExecStart=/usr/local/bin/containerd\n"}
"""Units that machines' images bring, which drop-ins of ours add to."""


@pytest.mark.parametrize("name", distinct())
def test_cloud_init_accepts_the_document(name: str, tmp_path: Path) -> None:
    program = shutil.which("cloud-init")
    if program is None:
        pytest.skip("cloud-init is not installed (Debian package cloud-init)")
    path = tmp_path / "document.yaml"
    path.write_text(cloud_config(distinct()[name]))
    done = subprocess.run((program, "schema", "--config-file", str(path)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def verified(tmp_path: Path) -> Callable[[MachineBoot], str]:
    """Return the errors of systemd-analyze in a machine's units; programs are empty files."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed (Debian package systemd)")

    def verify(boot: MachineBoot) -> str:
        shutil.copytree(HOST_UNITS, tmp_path / HOST_UNITS.relative_to("/"), symlinks=True)
        files = {item.path: item.content for item in boot.files}
        files |= {f"/usr/lib/systemd/system/{name}": text for name, text in IMAGE_UNITS.items()}
        for path, content in files.items():
            _write(tmp_path, path, content)
        for program_path in {found for content in files.values() for found in re.findall(r"^Exec\w+=[-+]?(/\S+)", content, re.MULTILINE)}:
            if program_path not in files:
                _write(tmp_path, program_path, "#!/bin/sh\n")
            (tmp_path / program_path.lstrip("/")).chmod(0o755)
        command = (program, "verify", "--man=no", "--generators=no", f"--root={tmp_path}", *boot.enable)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return (done.stdout + done.stderr).strip() or ("" if done.returncode == 0 else f"status {done.returncode}")

    return verify


def _write(root: Path, path: str, content: str) -> None:
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)


@pytest.mark.parametrize("name", distinct())
def test_systemd_finds_no_fault_in_the_units(name: str, verified: Callable[[MachineBoot], str]) -> None:
    assert verified(distinct()[name]) == ""


def test_a_unit_with_a_misspelled_directive_would_be_found(verified: Callable[[MachineBoot], str]) -> None:
    boot = machines()["dev/dev/etcd"]
    files = tuple(
        type(item)(item.path, item.content.replace("LimitNOFILE", "LimitNOFILES")) if item.path.endswith("/etcd.service") else item
        for item in boot.files
    )
    assert "LimitNOFILES" in verified(MachineBoot(boot.role, files, boot.enable))


@pytest.mark.parametrize("name", machines())
def test_every_unit_that_is_enabled_is_written_or_comes_with_the_image_and_the_other_way_round(name: str) -> None:
    boot = machines()[name]
    written = {Path(item.path).name for item in boot.files if re.fullmatch(r"/etc/systemd/system/[a-z-]+\.(service|timer)", item.path)}
    timed = {f"{unit.removesuffix('.timer')}.service" for unit in written if unit.endswith(".timer")}
    assert timed < written
    assert set(boot.enable) == written - timed | (set(IMAGE_UNITS) if boot.role == "node" else set())


@pytest.mark.parametrize(("golden_name", "machine"), GOLDENS.items())
def test_the_whole_document_is_as_reviewed(golden_name: str, machine: str, golden: Callable[[str, str], None]) -> None:
    golden(f"boot/{golden_name}.yaml", cloud_config(machines()[machine]))


@pytest.mark.parametrize(("golden_name", "machine"), DIFFERENCES.items())
def test_the_differences_of_other_nodes_are_as_reviewed(golden_name: str, machine: str, golden: Callable[..., None]) -> None:
    golden(f"boot/{golden_name}.diff", cloud_config(machines()[machine]), cloud_config(machines()[GOLDENS["dev-node-gpu"]]))
