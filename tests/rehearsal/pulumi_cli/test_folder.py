"""The folder of the CLI: created and preserved files, and nothing outside it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml

from rehearsal.azure.directory_lock import DirectoryInUseError
from rehearsal.azure.directory_marker import MARKER, ForeignDirectoryError
from rehearsal.pulumi_cli import workspace
from rehearsal.pulumi_cli.engine_choice import PulumiPrograms
from rehearsal.pulumi_cli.workspace import EngineFolder, WorkspaceError
from stacks.load import ROOT, load_plan

PROGRAMS = PulumiPrograms(Path("/opt/pulumi/pulumi"), "v3.260.0", (Path("/opt/pulumi"), Path("/opt/uv")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> EngineFolder:
    made = EngineFolder(tmp_path_factory.mktemp("engine"))
    made.prepare(load_plan("dev"), "dev")
    return made


def test_the_project_is_the_repositorys_by_paths_that_hold_from_anywhere(folder: EngineFolder) -> None:
    project = yaml.safe_load((folder.project / "Pulumi.yaml").read_text())
    ours = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    assert project["name"] == ours["name"]
    assert project["main"] == str(ROOT / "rehearsal" / "pulumi_cli" / "program")
    assert project["runtime"] == {"name": "python", "options": {"toolchain": "uv", "virtualenv": sys.prefix}}
    assert "stackConfigDir" not in project


@pytest.mark.parametrize("stack", ["dev-base", "dev"])
def test_a_stack_has_the_configuration_of_the_repositorys(folder: EngineFolder, stack: str) -> None:
    settings = yaml.safe_load((folder.project / f"Pulumi.{stack}.yaml").read_text())
    assert settings == {"config": yaml.safe_load((ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text())["config"]}


def test_what_the_cli_has_added_to_a_stacks_settings_stays(tmp_path: Path) -> None:
    folder, plan = EngineFolder(tmp_path), load_plan("dev")
    folder.prepare(plan, "dev")
    path = folder.project / "Pulumi.dev.yaml"
    path.write_text(path.read_text() + "encryptionsalt: v1:abc\n")
    folder.prepare(plan, "dev")
    assert yaml.safe_load(path.read_text())["encryptionsalt"] == "v1:abc"


def test_a_region_file_elsewhere_is_named_in_the_configuration_and_one_under_stacks_is_not(tmp_path: Path) -> None:
    draft = tmp_path / "dev.yaml"
    draft.write_text((ROOT / "stacks" / "regions" / "dev.yaml").read_text())
    folder = EngineFolder(tmp_path / "engine")
    for region, expected in ((str(draft), str(draft)), (str(ROOT / "stacks" / "regions" / "dev.yaml"), None)):
        folder.prepare(load_plan(region), region)
        assert yaml.safe_load((folder.project / "Pulumi.dev.yaml").read_text())["config"].get("gpufleet:region-file") == expected


def test_the_passphrase_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    folder, plan = EngineFolder(tmp_path / "engine"), load_plan("dev")
    assert not folder.exists
    with folder.locked():
        folder.prepare(plan, "dev")
    first = folder.passphrase.read_text()
    assert len(first) > 32
    assert stat.S_IMODE(folder.passphrase.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    folder.prepare(plan, "dev")
    assert folder.passphrase.read_text() == first
    assert folder.exists


def test_each_plugin_stands_where_the_engine_looks_for_the_version_that_the_program_asks_for(folder: EngineFolder) -> None:
    found = sorted(str(path.relative_to(folder.home)) for path in folder.home.rglob("pulumi-resource-*"))
    assert found == [
        "plugins/resource-azure-native-v3.29.0/pulumi-resource-azure-native",
        "plugins/resource-kubernetes-v4.34.2/pulumi-resource-kubernetes",
    ]


@pytest.mark.parametrize("name", sorted(workspace.PROVIDERS))
def test_a_plugin_prints_the_port_that_it_serves_and_ends_when_told_to(folder: EngineFolder, name: str) -> None:
    path = workspace.plugin_executable(folder.home, name, workspace.plugin_versions()[name])
    with subprocess.Popen([path], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert 1024 <= int(process.stdout.readline()) <= 65_535
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) in (0, -signal.SIGTERM)
        finally:
            process.kill()


def test_no_plain_pulumi_up_finds_a_plugin_of_ours_on_path() -> None:
    scripts = Path(sysconfig.get_path("scripts"))
    assert not list(scripts.glob("pulumi-resource-azure*"))
    assert not list(scripts.glob("pulumi-resource-kubernetes*"))


def test_nothing_of_a_persons_own_cloud_or_state_reaches_the_cli(folder: EngineFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PULUMI_ACCESS_TOKEN", "PULUMI_CONFIG_PASSPHRASE", "ARM_CLIENT_SECRET", "AZURE_CONFIG_DIR", "KUBECONFIG"):
        monkeypatch.setenv(name, "theirs")
    environment = folder.environment(PROGRAMS, {"ARM_TENANT_ID": "ours"})
    assert "theirs" not in environment.values()
    assert "ours" in environment.values()
    assert environment["PULUMI_HOME"] == str(folder.home)
    assert environment["PULUMI_BACKEND_URL"] == f"file://{folder.backend}"
    assert environment["PATH"].startswith(f"/opt/pulumi{os.pathsep}/opt/uv{os.pathsep}")
    assert environment["UV_FROZEN"] == environment["UV_OFFLINE"] == "1"


def test_a_second_command_is_refused_while_one_is_at_work(tmp_path: Path) -> None:
    with (
        EngineFolder(tmp_path).locked(),
        pytest.raises(DirectoryInUseError, match=rf"is in use by process {os.getpid()} \("),
        EngineFolder(tmp_path).locked(),
    ):
        pass
    with EngineFolder(tmp_path).locked():
        pass


def test_what_outlives_a_killed_command_goes_on_holding_the_folder(tmp_path: Path) -> None:
    program = (
        "import os, subprocess, sys; from pathlib import Path; from rehearsal.pulumi_cli.workspace import EngineFolder\n"
        "with EngineFolder(Path(sys.argv[1])).locked() as hold:\n"
        "    nowhere = subprocess.DEVNULL\n"
        "    print(subprocess.Popen(['sleep', '60'], pass_fds=(hold,), stdout=nowhere, stderr=nowhere).pid, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False, timeout=60)
    child = int(done.stdout)
    try:
        assert done.returncode == -signal.SIGKILL
        ended = r"is in use by another process; .*process \d+ \(-c .*, has ended, but a program that it started may run on"
        with pytest.raises(DirectoryInUseError, match=ended), EngineFolder(tmp_path).locked():
            pass
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_folder_of_somebody_else_is_refused_and_an_engines_own_gets_the_marker(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with pytest.raises(ForeignDirectoryError, match="contains photos, which gpufleet did not write"), EngineFolder(tmp_path).locked():
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]
    (tmp_path / "photos").rmdir()
    (tmp_path / "passphrase").write_text("x")
    with EngineFolder(tmp_path).locked():
        assert (tmp_path / MARKER).read_text().startswith("Pulumi's engine\n")


def test_a_folder_with_an_azure_that_was_brought_up_in_process_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state-000001.json").write_text("{}")
    with pytest.raises(WorkspaceError, match="contains the Azure of a local up; give another directory"), EngineFolder(tmp_path).locked():
        pass
