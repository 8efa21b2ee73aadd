"""Pulumi has a program for every stack, and settings without values of a region."""

from __future__ import annotations

import json
import runpy
from functools import partial
from pathlib import Path

import pulumi
import pytest
import yaml
from pulumi.runtime.rpc import UNKNOWN

from components.boot import machine
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.graph import Graph
from rehearsal.program.run import ProgramError, run_program
from rehearsal.pulumi_cli.workspace import PROGRAM
from stacks.__main__ import run
from stacks.load import REGIONS, ROOT, load_plan, region_names
from stacks.program import make

STACKS = [stack for region in region_names() for stack in (region, f"{region}-base")]
ENCRYPTION = {"secretsprovider", "encryptedkey", "encryptionsalt"}


def test_a_region_that_does_not_exist_is_refused_in_one_line() -> None:
    with pytest.raises(pulumi.RunError, match=r"did you mean southcentralus\?") as caught:
        run("southcentralu-base")
    assert "\n" not in str(caught.value)


def test_a_plan_that_breaks_limits_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    text = (REGIONS / "dev.yaml").read_text()
    broken = tmp_path / "dev.yaml"
    broken.write_text(text.replace("etcd:\n        count: 3", "etcd:\n        count: 4"))
    assert broken.read_text() != text
    with pytest.raises(pulumi.RunError, match="etcd"):
        run(str(broken))


@pytest.fixture
def uncaptured(tmp_path: Path) -> str:
    """A copy of dev in a location where no image is captured, and in a subscription that no other region shares."""
    draft, document = tmp_path / "dev.yaml", yaml.safe_load((REGIONS / "dev.yaml").read_text())
    draft.write_text(json.dumps({**document, "location": "westeurope", "subscription": "11111111-2222-4333-8444-555555555555"}))
    return str(draft)


@pytest.mark.parametrize("stack", ["dev-base", "dev"])
def test_a_missing_capture_is_refused_in_one_line_before_the_first_resource(uncaptured: str, stack: str) -> None:
    counts: list[int] = []
    with pytest.raises(ProgramError, match=r"nc-a100@2026\.11\.0 have no capture in westeurope, .*docs/node-images\.md\)$") as caught:
        run_program(lambda: run(stack, uncaptured), "gpufleet", stack, backend=AcceptingCloud(), progress=counts.append)
    assert isinstance(caught.value.__cause__, pulumi.RunError)
    assert "\n" not in str(caught.value)
    assert counts == [1], "only the stack itself, which Pulumi registers"


def test_a_preview_warns_of_a_missing_capture_and_makes_no_id_up(uncaptured: str, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", warnings.append)
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: True)
    graph = run_program(lambda: run("dev-base", uncaptured), "gpufleet", "dev-base", backend=AcceptingCloud())
    sources = [one.inputs["storageProfile"]["source"]["id"] for one in graph if one.type.endswith(":GalleryImageVersion")]
    assert len(sources) == 4
    assert set(sources) == {UNKNOWN}
    (line,) = warnings
    assert "have no capture in westeurope" in line


def test_only_the_rehearsals_program_assumes_captures(uncaptured: str) -> None:
    """The same settings reach both programs, and Pulumi.yaml alone chooses one."""

    def ran(folder: Path) -> Graph:
        config = {"gpufleet:region-file": uncaptured}
        program = partial(runpy.run_path, str(folder), run_name="__main__")
        return run_program(lambda: program() and None, "gpufleet", "dev-base", backend=AcceptingCloud(), config=config)

    versions = [str(one.inputs) for one in ran(PROGRAM) if one.type.endswith(":GalleryImageVersion")]
    assert len(versions) == 4
    assert all("/assumed-captures/" in inputs for inputs in versions)
    with pytest.raises(ProgramError, match="have no capture in westeurope"):
        ran(ROOT / yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["main"])


def test_boot_files_that_azure_would_refuse_end_both_kinds_of_run_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, backend = load_plan("dev"), AcceptingCloud()
    base = run_program(lambda: run(plan.base_stack), "gpufleet", plan.base_stack, backend=backend)
    monkeypatch.setattr(machine, "CUSTOM_DATA_BYTES", 1_000)
    causes: list[BaseException | None] = []
    for program in (lambda: run(plan.stack), lambda: make(plan, plan.stack)):
        with pytest.raises(ProgramError, match="Azure takes 1000: move a script") as caught:
            run_program(program, "gpufleet", plan.stack, backend=backend, stack_outputs={plan.base_stack: base.stack_outputs})
        assert "\n" not in str(caught.value)
        causes.append(caught.value.__cause__)
    assert [type(cause) for cause in causes] == [pulumi.RunError, machine.CustomDataTooLargeError]


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_belongs_to_the_region_that_names_it(stack: str) -> None:
    plan = load_plan(stack.removesuffix("-base"))
    assert stack in (plan.stack, plan.base_stack)


@pytest.mark.parametrize("stack", STACKS)
def test_a_stacks_settings_are_its_encryption_and_that_no_provider_is_taken_by_default(stack: str) -> None:
    settings = yaml.safe_load((ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text())
    assert settings.pop("config") == {"pulumi:disable-default-providers": ["azure-native", "kubernetes"]}
    assert set(settings) <= ENCRYPTION


def test_there_are_settings_for_no_other_stack() -> None:
    assert {path.name for path in (ROOT / "stacks").glob("Pulumi.*.yaml")} == {f"Pulumi.{stack}.yaml" for stack in STACKS}


def test_the_project_finds_program_stacks_and_environment() -> None:
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    assert (ROOT / project["main"] / "__main__.py").is_file()
    assert project["stackConfigDir"] == project["main"]
    # The process of the dynamic providers looks for the environment from the program's folder, everything else from the project's.
    environment = project["runtime"]["options"]["virtualenv"]
    assert (ROOT / project["main"] / environment).resolve() == (ROOT / environment).resolve()


def test_the_program_only_wires() -> None:
    assert len((ROOT / "stacks" / "__main__.py").read_text().splitlines()) < 40
