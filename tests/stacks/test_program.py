"""Pulumi has a program for every stack, and settings without values of a region."""

from __future__ import annotations

from pathlib import Path

import pulumi
import pytest
import yaml

from components.boot import machine
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.run import ProgramError, run_program
from stacks.__main__ import run
from stacks.load import REGIONS, ROOT, load_plan, region_names
from stacks.program import make, serves_azure_here

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


def uncaptured(folder: Path) -> tuple[str, str]:
    """Write a draft of dev in a location without captures; return its path and the name of its base stack."""
    draft = folder / "norwayeast.yaml"
    text = (REGIONS / "dev.yaml").read_text().replace("name: dev\n", "name: norwayeast\n", 1)
    space = next(line for line in text.splitlines() if line.startswith("address_space:"))
    draft.write_text(text.replace("location: swedencentral", "location: norwayeast").replace(space, "address_space: 10.160.0.0/13"))
    return str(draft), "norwayeast-base"


def test_missing_captures_end_an_update_before_anything_is_registered_and_not_a_preview_or_rehearsal(tmp_path: Path) -> None:
    draft, stack = uncaptured(tmp_path)
    backend = AcceptingCloud()
    with pytest.raises(
        ProgramError, match=r"etcd@2026\.11\.0, nc-a100@2026\.11\.0 are not captured in norwayeast.*build them there before pulumi up"
    ):
        run_program(lambda: run(stack, draft), "gpufleet", stack, backend=backend)
    rehearsed = run_program(lambda: run(stack, draft, rehearsed=True), "gpufleet", stack, backend=backend)
    assert len(rehearsed.of_type("azure-native:compute:GalleryImageVersion")) == 4


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1:8443", True), ("[::1]:443", True), ("management.azure.com:443", False), ("management.azure.com", False), ("", False)],
)
def test_azure_is_served_here_only_on_the_loopback_interface(host: str, here: bool) -> None:
    assert serves_azure_here({"ARM_METADATA_HOST": host}) is here
