"""The run in process and Pulumi's own engine agree: same URNs, parents, dependencies, providers and inputs."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path

import pytest
from engine_commands import Engine
from graph_differences import differences, from_plan, from_state

from rehearsal.local_cluster.hub.hub_network import hub_namespace
from rehearsal.local_up.up import bring_up_anew
from rehearsal.program.graph import Graph
from rehearsal.pulumi_cli.engine_choice import PulumiPrograms
from rehearsal.pulumi_cli.stack_operations import ProgressReporter, region_engine
from rehearsal.pulumi_cli.workspace import EngineFolder
from stacks.load import load_plan

pytestmark = [pytest.mark.pulumi_cli, pytest.mark.usefixtures("pulumi_cli"), pytest.mark.xdist_group("pulumi_cli")]
FAST = {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}
"""Nobody kills this one."""


@cache
def in_process(region: str) -> tuple[Graph, ...]:
    """The graphs of both stacks, the base first."""
    return bring_up_anew(load_plan(region)).graphs


def exported(folder: EngineFolder, programs: PulumiPrograms, stack: str) -> dict[str, object]:
    """A stack's state, secrets in plain."""
    result = subprocess.run(
        [programs.cli, "stack", "export", "--show-secrets", "--stack", stack],
        cwd=folder.project,
        env=folder.environment(programs, {}),
        capture_output=True,
        check=True,
    )
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_every_resource_of_dev_is_the_same_when_all_is_up(up_once: Engine, pulumi_cli: PulumiPrograms) -> None:
    plan, folder = load_plan("dev"), EngineFolder(up_once.folder)
    for graph, stack in zip(in_process("dev"), (plan.base_stack, plan.stack), strict=True):
        assert differences(graph, from_state(exported(folder, pulumi_cli, stack)), planned=False) == []


@pytest.mark.parametrize("region", ["southcentralus", "swedencentral"])
def test_every_resource_of_a_large_region_is_the_same(region: str, pulumi_cli: PulumiPrograms, tmp_path: Path) -> None:
    """Its base is up; of the clusters it is the plan of the first update, in which an output of Azure's that is not there yet is any."""
    plan, folder, path = load_plan(region), EngineFolder(tmp_path / "engine"), tmp_path / "plan.json"
    reporter = ProgressReporter(print, lambda _: None)
    base, clusters = in_process(region)
    with (
        folder.locked() as lock,
        hub_namespace(plan, folder.hub_data, factor=3_600.0, say=print) as inside,
        region_engine(plan, region, folder, pulumi_cli, inside, lock, reporter) as at_work,
    ):
        for stack in (plan.base_stack, plan.stack):
            at_work.open_stack(stack)
        up = at_work.operate("up", plan.base_stack, ("--yes", "--skip-preview", "--parallel", "64"), FAST)
        assert up.complete, up.failures
        preview = at_work.operate("preview", plan.stack, ("--save-plan", str(path)))
        assert preview.complete, preview.failures
    assert differences(base, from_state(exported(folder, pulumi_cli, plan.base_stack)), planned=False) == []
    assert differences(clusters, from_plan(json.loads(path.read_bytes())), planned=True) == []
