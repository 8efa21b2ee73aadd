"""A region on Pulumi's own engine: the real CLI, the embedded Azure over HTTPS, and real API servers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from copy import deepcopy
from pathlib import Path
from typing import IO, cast

import pytest
from engine_commands import Engine, draft

from rehearsal.azure.persistence import open_cloud, save
from rehearsal.azure.resource import Request
from rehearsal.azure.state_directory import StateDirectory
from rehearsal.pulumi_cli import workspace

pytestmark = [pytest.mark.pulumi_cli, pytest.mark.usefixtures("pulumi_cli"), pytest.mark.xdist_group("pulumi_cli")]
OTHER_IMAGE = ("image: cpu@2026.11.0", "image: cpu@2026.10.0")


def change_by_hand(engine: Engine) -> None:
    """Tag a public address prefix, and delete a DNS record, as a person would in the portal."""
    with StateDirectory(engine.folder / "inside" / "azure") as directory:
        cloud = open_cloud(directory, lambda: pytest.fail("there is no Azure"))
        for resource in list(cloud.resources.values()):
            if resource.key.endswith("publicipprefixes/dev-nat-control-ips"):
                body = {**deepcopy(resource.sent), "tags": {**resource.sent.get("tags", {}), "by-hand": "yes"}}
                cloud.handle(Request("PUT", resource.id, body=body, principal="a person"))
            if resource.key.endswith("/a/events-2"):
                cloud.handle(Request("DELETE", resource.id, principal="a person"))
        save(directory, cloud)


def two_clusters(path: Path, teams: tuple[str, ...]) -> None:
    """Write dev's region file with a second cluster like the first, and these teams in both."""
    text = draft(path.parent, ("10.48.0.0/13", "10.48.0.0/12"), ("azure_calls_per_minute: 300", "azure_calls_per_minute: 200")).read_text()
    (team,) = (line for line in text.splitlines() if "name: platform" in line)
    text = text.replace(
        team, "\n".join(team.replace("platform", name).replace("4a04", f"4a0{4 + slot}") for slot, name in enumerate(teams))
    )
    cluster = text[text.index("  - name: dev\n    slot: 0") :]
    path.write_text(text + cluster.replace("  - name: dev\n    slot: 0", "  - name: dev2\n    slot: 1"))


def at_a_scale_set(engine: Engine, name: str, action: str, *instances: str) -> None:
    """Do something to instances of a scale set by hand, without ids to all, and wait for an hour of Azure's time."""
    with StateDirectory(engine.folder / "inside" / "azure") as directory:
        cloud = open_cloud(directory, lambda: pytest.fail("there is no Azure"))
        (found,) = (one for one in list(cloud.resources.values()) if one.key.endswith(f"virtualmachinescalesets/{name}"))
        body = {"instanceIds": list(instances)} if instances else None
        cloud.handle(Request("POST", found.id, action, body=body, principal="a person"))
        while (due := cloud.events.next_at()) is not None and due < cloud.now + 3_600:
            cloud.step(due)
        save(directory, cloud)


def stopped_at(process: subprocess.Popen[str], line: str, number: signal.Signals) -> str:
    """Send a signal when a line has been printed, and give everything that was."""
    output = []
    for read in cast("IO[str]", process.stdout):
        output.append(read)
        if re.match(line, read):
            process.send_signal(number)
            break
    else:
        pytest.fail(f"never printed {line}: {''.join(output)}")
    rest, _ = process.communicate(timeout=300)
    return "".join([*output, rest])


def test_a_second_up_changes_nothing(brought_up: Engine) -> None:
    result = brought_up.run("up")
    assert result.returncode == 0, result.stdout
    assert re.search(r"^dev-base: 44 unchanged ", result.stdout, re.MULTILINE)
    assert re.search(r"^dev: 224 unchanged ", result.stdout, re.MULTILINE)


def test_nothing_is_written_outside_the_folder(up_once: Engine) -> None:
    result = subprocess.run(
        ["git", "status", "--porcelain", "uv.lock", "stacks", "Pulumi.yaml"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    assert "Pulumi." not in result.stdout
    assert "uv.lock" not in result.stdout
    assert (up_once.folder / "state" / ".pulumi" / "stacks" / "gpufleet" / "dev.json").exists()


def test_no_secret_is_plain_in_the_state(up_once: Engine) -> None:
    state = (up_once.folder / "state" / ".pulumi" / "stacks" / "gpufleet" / "dev.json").read_text()
    assert "PRIVATE KEY" not in state
    assert '"ciphertext"' in state


def test_another_image_on_one_pool_is_one_update(brought_up: Engine, tmp_path: Path) -> None:
    region = draft(tmp_path / "drafts", OTHER_IMAGE)
    result = brought_up.run("preview", region, "--diff")
    assert result.returncode == 0, result.stdout
    assert "virtualMachineProfile.storageProfile.imageReference.id: …/2026.11.0 => …/2026.10.0" in result.stdout
    assert re.search(r"^dev: ~ 1 to update, 223 unchanged ", result.stdout, re.MULTILINE)
    result = brought_up.run("up", region)
    assert result.returncode == 0, result.stdout
    assert re.search(r"^dev: ~ 1 updated, 223 unchanged ", result.stdout, re.MULTILINE)


def test_changes_by_hand_are_shown_by_refresh_and_mended_by_up(brought_up: Engine) -> None:
    change_by_hand(brought_up)
    shown = brought_up.run("refresh", "dev", "--only-show", "--diff")
    assert shown.returncode == 0, shown.stdout
    assert " -         PrivateRecordSet events-2 (missing in Azure; up creates it again)" in shown.stdout
    assert 'tags["by-hand"]: (absent) => yes' in shown.stdout
    assert re.search(r"^dev: ~ 1 changed by hand, - 1 gone, 223 unchanged ", shown.stdout, re.MULTILINE)
    again = brought_up.run("refresh")
    assert re.search(r"^dev: ~ 1 changed by hand, - 1 gone, 223 unchanged ", again.stdout, re.MULTILINE), "the first only showed it"
    mended = brought_up.run("up")
    assert mended.returncode == 0, mended.stdout
    assert re.search(r"^dev: \+ 1 created, ~ 1 updated, 222 unchanged ", mended.stdout, re.MULTILINE)


def test_a_pool_shrinks_only_after_its_machines_were_deleted_by_instance(brought_up: Engine, tmp_path: Path) -> None:
    smaller = draft(tmp_path / "smaller", ("nodes: 10\n", "nodes: 7\n"))
    reason = "scale set dev-cpu-000: has 10 machines, but capacity 7 is wanted, which would delete 3 machines that were not drained; "
    for verb in ("preview", "up"):
        result = brought_up.run(verb, smaller)
        assert result.returncode == 1
        assert reason in result.stdout
    at_a_scale_set(brought_up, "dev-cpu-000", "delete", "0", "1", "2")
    result = brought_up.run("up", smaller)
    assert result.returncode == 0, result.stdout
    assert re.search(r"^dev: ~ 1 updated, 223 unchanged ", result.stdout, re.MULTILINE)
    result = brought_up.run("up", draft(tmp_path / "larger", ("nodes: 10\n", "nodes: 11\n")))
    assert result.returncode == 0, result.stdout
    assert "(instances: 7 -> 11)" in result.stdout


def test_a_pool_that_is_dropped_is_refused_by_name(brought_up: Engine, tmp_path: Path) -> None:
    text = draft(tmp_path / "drafts").read_text()
    begin, end = text.index("      - name: gpu\n"), text.index("    tenancy:")
    (tmp_path / "drafts" / "dev.yaml").write_text(text[:begin] + text[end:])
    result = brought_up.run("up", tmp_path / "drafts" / "dev.yaml")
    assert result.returncode == 1
    assert (
        "refused; nothing was changed\nVirtualMachineScaleSet dev-gpu-000, with 2 machines: protected, and no longer declared"
        in result.stdout
    )
    assert "2 machines would be lost (2 of dev-gpu-000)" in result.stdout


def test_destroy_refuses_what_is_protected_by_name_and_then_deletes_all(brought_up: Engine) -> None:
    result = brought_up.run("destroy")
    assert result.returncode == 1
    assert "refused; nothing was changed" in result.stdout
    assert "VirtualMachineScaleSet dev-cpu-000, 10 machines" in result.stdout
    assert "--unprotect all for all 14" in result.stdout
    unknown = brought_up.run("destroy", "dev", "--unprotect", "al")
    assert (unknown.returncode, unknown.stderr.splitlines()[-1].split(";")[0]) == (2, "no protected resource is called al")
    result = brought_up.run("destroy", "dev", "--unprotect", "all", "--purge")
    assert result.returncode == 0, result.stdout
    assert re.search(r"^dev: - 22\d deleted, 0 unchanged ", result.stdout, re.MULTILINE)
    assert re.search(r"^dev-base: - 44 deleted, 0 unchanged ", result.stdout, re.MULTILINE)
    assert "3 deleted vaults purged, so that their names are free" in result.stdout


def test_a_failed_creation_is_told_with_what_to_do_and_the_next_up_finishes(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "engine")
    result = engine.run("up", "dev", "--scenario", "quota-one-short")
    assert result.returncode == 1
    assert "dev: failed: VirtualMachineScaleSet dev-dev-pool-gpu-000: " in result.stderr
    assert "What to do: Azure grants too few vCPUs" in result.stdout
    done = engine.run("up", "dev", "--scenario", "calm")
    assert done.returncode == 0, done.stdout
    assert re.search(r"^dev: .*unchanged ", done.stdout, re.MULTILINE)


def test_an_up_that_is_interrupted_or_killed_is_gone_on_with(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "engine")
    output = stopped_at(engine.start("up"), r"up dev-base: \d+ created", signal.SIGINT)
    assert "Stack dev was not tried, because it was interrupted." in output
    assert "Interrupted" in output
    killed = engine.start("up")
    stopped_at(killed, r"up dev: \d+ created", signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    again = engine.run("up")
    assert again.returncode == 0, again.stdout
    assert "dev: removed the lock of a dead command" in again.stderr
    assert engine.run("up").returncode == 0


def test_what_was_being_made_when_a_command_died_is_taken_into_the_state(brought_up: Engine) -> None:
    path = brought_up.folder / "state" / ".pulumi" / "stacks" / "gpufleet" / "dev.json"
    state = json.loads(path.read_text())
    latest = state["checkpoint"]["latest"]
    cut_off = [one for one in latest["resources"] if one["urn"].endswith("::dev-dev-pool-cpu-000")]
    latest["resources"] = [one for one in latest["resources"] if one not in cut_off]
    latest["pending_operations"] = [
        {"type": "creating", "resource": {key: value for key, value in one.items() if key not in ("id", "outputs")}} for one in cut_off
    ]
    path.write_text(json.dumps(state))
    result = brought_up.run("up")
    assert result.returncode == 0, result.stdout
    assert (
        "dev: 1 operation was under way when the last command died: VirtualMachineScaleSet dev-dev-pool-cpu-000 (creating); "
        "reading their results from Azure and the clusters"
    ) in result.stderr
    assert re.search(r"^dev: (~ 1 updated, )?22[34] unchanged ", result.stdout, re.MULTILINE)


def test_one_clusters_dead_api_servers_stop_no_other_and_the_next_up_finishes(tmp_path: Path) -> None:
    engine, region = Engine(tmp_path / "engine"), tmp_path / "drafts" / "dev.yaml"
    two_clusters(region, teams=("platform",))
    assert engine.run("up", region).returncode == 0
    at_a_scale_set(engine, "dev2-api", "powerOff")
    two_clusters(region, teams=("platform", "second"))
    result = engine.run("up", region)
    assert result.returncode == 1
    assert "dev: failed: Namespace dev-dev2-objects-Namespace/second: the cluster cannot be reached" in result.stderr
    assert "What to do: repair that cluster's control plane" in result.stdout
    assert re.search(r"^ \+ +Namespace Namespace/second$", result.stdout, re.MULTILINE), "the other cluster has it"
    at_a_scale_set(engine, "dev2-api", "start")
    done = engine.run("up", region)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^ \+ +Namespace Namespace/second$", done.stdout, re.MULTILINE)


def test_another_version_of_the_provider_updates_itself_and_nothing_else(brought_up: Engine) -> None:
    older, version = "3.28.0", workspace.plugin_versions()["azure-native"]
    home = brought_up.folder / "home"
    old = workspace.plugin_executable(home, "azure-native", older)
    old.parent.mkdir()
    shutil.copy2(workspace.plugin_executable(home, "azure-native", version), old)
    for stack in ("dev-base", "dev"):
        path = brought_up.folder / "state" / ".pulumi" / "stacks" / "gpufleet" / f"{stack}.json"
        state = json.loads(path.read_text())
        for resource in state["checkpoint"]["latest"]["resources"]:
            if resource["type"] == "pulumi:providers:azure-native":
                resource["inputs"]["version"] = resource["outputs"]["version"] = older
        path.write_text(json.dumps(state))
    result = brought_up.run("up")
    assert result.returncode == 0, result.stdout
    assert re.search(r"^dev-base: ~ 1 updated, 43 unchanged ", result.stdout, re.MULTILINE)
    assert re.search(r"^dev: ~ 2 updated, 222 unchanged ", result.stdout, re.MULTILINE)
    assert result.stdout.count("[diff: ~version]") == 3


def test_two_commands_at_once_are_refused(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "engine")
    first = engine.start("up")
    try:
        for line in cast("IO[str]", first.stdout):
            if line.startswith("up dev-base: "):
                break
        second = engine.run("preview")
        assert second.returncode == 2
        assert f"is in use by process {first.pid} (gpufleet up dev " in second.stderr
    finally:
        os.kill(first.pid, signal.SIGKILL)
        first.communicate()
