"""Files of other regions: counted with a region, or left out with a message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpufleet.cli import group
from stacks.file_problems import InvalidFileError
from stacks.load import REGIONS, load_plan, load_siblings, region_names

TEXTS = {name: (REGIONS / f"{name}.yaml").read_text() for name in region_names()}


def draft(folder: Path, name: str, *, of: str = "swedencentral", **changes: str) -> Path:
    """A draft made from a shipped region under another name, with texts replaced."""
    text = TEXTS[of].replace(f"name: {of}\n", f"name: {name}\n", 1)
    for key, value in changes.items():
        line = next(line for line in text.splitlines() if line.startswith(f"{key}: "))
        text = text.replace(line, f"{key}: {value}", 1)
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def near_southcentralus(folder: Path, name: str = "near") -> Path:
    """A draft that names southcentralus' subscription and location, without quotas of its own."""
    path = draft(
        folder, name, address_space="10.64.0.0/12", location="southcentralus", subscription=load_plan("southcentralus").spec.subscription
    )
    path.write_text(path.read_text().replace("quotas:\n  - {family: standardNDSH100v5Family, vcpus: 60000}\n", ""))
    return path


def test_the_siblings_of_a_shipped_region_are_the_other_shipped_regions() -> None:
    siblings = load_siblings("dev")
    assert siblings.plans == tuple(load_plan(name) for name in region_names() if name != "dev")
    assert siblings.left_out == ()


def test_a_draft_stands_for_the_region_of_its_name_for_itself_and_for_others(tmp_path: Path) -> None:
    dev = draft(tmp_path, "dev", of="dev", location="southcentralus")
    near = near_southcentralus(tmp_path)
    assert [plan.name for plan in load_siblings(str(dev)).plans] == sorted({*region_names(), "near"} - {"dev"})
    beside_near = {plan.name: plan.spec.location for plan in load_siblings(str(near)).plans}
    assert beside_near == {name: load_plan(name).spec.location for name in region_names()} | {"dev": "southcentralus"}


def test_files_beside_a_draft_that_are_no_regions_are_nobodys_siblings(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / "broken.yaml").write_text("a: [\n")
    siblings = load_siblings(str(draft(tmp_path, "near", address_space="10.64.0.0/12")))
    assert [plan.name for plan in siblings.plans] == list(region_names())
    assert siblings.left_out == ()


def test_a_sibling_with_problems_is_left_out_and_told_in_one_line(tmp_path: Path) -> None:
    path = near_southcentralus(tmp_path)
    path.write_text(path.read_text().replace("nodes: 600", "nodes: many"))
    torn = tmp_path / "torn.yaml"
    torn.write_text("address_space: [10.0.0.0\n")
    south = tmp_path / "southcentralus.yaml"
    south.write_text(TEXTS["southcentralus"])
    siblings = load_siblings(str(south))
    assert [plan.name for plan in siblings.plans] == [name for name in region_names() if name != "southcentralus"]
    assert siblings.left_out == (
        f"{path} is not counted: it has 2 problems, which gpufleet check {path} lists",
        f"{torn} is not counted, nor is its address space compared: it has 1 problem, which gpufleet check {torn} lists",
    )


def test_a_sibling_that_is_a_loop_of_links_is_nobodys(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    siblings = load_siblings(str(draft(tmp_path, "near", address_space="10.64.0.0/12")))
    assert [plan.name for plan in siblings.plans] == list(region_names())
    assert siblings.left_out == ()


def test_a_region_file_that_is_a_loop_of_links_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    for name in ("loop.yaml", "loop.yaml/dev.yaml"):
        with pytest.raises(InvalidFileError, match="cannot be read: Too many levels of symbolic links") as refused:
            load_plan(str(tmp_path / name))
        assert len(refused.value.problems) == 1


def test_check_counts_what_a_neighbour_draws_on_and_breaks_on_the_sum(tmp_path: Path) -> None:
    near_southcentralus(tmp_path)
    (tmp_path / "southcentralus.yaml").write_text(TEXTS["southcentralus"])
    alone = CliRunner().invoke(group, ["check", "southcentralus", "--json"])
    both = CliRunner().invoke(group, ["check", str(tmp_path / "southcentralus.yaml"), "--json"])
    assert (alone.exit_code, both.exit_code) == (0, 1)
    rows = [row for row in json.loads(both.output)["rows"] if row["broken"]]
    assert {(row["limit"], row["where"]) for row in rows} == {
        ("vCPUs granted", "subscription a3c5e1f0/standardLSv3Family, with near"),
        ("vCPUs granted", "subscription a3c5e1f0/standardNDSH100v5Family, with near"),
    }
    machines = next(row for row in json.loads(both.output)["rows"] if row["limit"] == "machines per subscription and region")
    assert machines["where"] == "subscription a3c5e1f0, with near"


def test_files_that_declare_different_quotas_are_named_with_their_lines_and_values(tmp_path: Path) -> None:
    near = near_southcentralus(tmp_path)
    near.write_text(near.read_text().replace("hub:\n", "quotas:\n  - {family: standardLSv3Family, vcpus: 300}\nhub:\n", 1))
    south = tmp_path / "southcentralus.yaml"
    south.write_text(TEXTS["southcentralus"])
    lines = {
        path: next(number for number, line in enumerate(path.read_text().splitlines(), 1) if "standardLSv3Family" in line)
        for path in (south, near)
    }
    for first, second in ((south, near), (near, south)):
        document = json.loads(CliRunner().invoke(group, ["check", str(first), "--json"]).output)
        (note,) = (note for note in document["notes"] if note.startswith("quotas of "))
        values = {south: 250, near: 300}
        named = ", ".join(f"{path}:{lines[path]} declares {values[path]}" for path in (first, second))
        assert note.startswith("quotas of standardLSv3Family in subscription a3c5e1f0-1b2d-4e6f-8a90-b1c2d3e4f501 differ")
        assert f"and the lowest, 250, counts: {named}; write in all of them what Azure has granted: az vm list-usage" in note
        (row,) = (row for row in document["rows"] if row["broken"] and "standardLSv3Family" in row["where"])
        assert row["reason"] == f"{', and '.join(f'{path.name} declares {values[path]}' for path in (first, second))}; the lowest counts"


def test_check_of_a_sound_region_beside_a_faulty_one_succeeds_and_says_what_it_left_out(tmp_path: Path) -> None:
    path = near_southcentralus(tmp_path)
    path.write_text(path.read_text().replace("slot: 0\n", "slot: zero\n", 1))
    (tmp_path / "southcentralus.yaml").write_text(TEXTS["southcentralus"])
    result = CliRunner().invoke(group, ["check", str(tmp_path / "southcentralus.yaml")])
    assert result.exit_code == 0
    lines = [line for line in result.output.splitlines() if line.startswith("left out: ")]
    assert lines == [f"left out: {path} is not counted: it has 1 problem, which gpufleet check {path} lists"]
    as_json = CliRunner().invoke(group, ["check", str(tmp_path / "southcentralus.yaml"), "--json"])
    assert [f"left out: {line}" for line in json.loads(as_json.output)["left_out"]] == lines


def test_a_file_that_ends_in_yml_is_named_with_its_remedy(tmp_path: Path) -> None:
    path = near_southcentralus(tmp_path)
    other = near_southcentralus(tmp_path, "other").rename(tmp_path / "other.yml")
    reason = "only files that end in .yaml are read"
    assert load_siblings(str(path)).left_out == (f"{other} is not counted: {reason}; rename it to other.yaml",)
    with pytest.raises(InvalidFileError) as refused:
        load_plan(str(other))
    assert str(refused.value) == f"{other}: ends in .yml, and {reason}; rename it to other.yaml"
    path.rename(tmp_path / "other.YML")
    other.rename(tmp_path / "other.yaml")
    with pytest.raises(InvalidFileError, match=r"ends in \.YML, and only files .* are read; other\.yaml is there too, so delete one"):
        load_plan(str(tmp_path / "other.YML"))
