"""Output of `gpufleet check` beside its rows: the number of limits, refused plans, and warnings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from components.plan.limits import check
from stacks.load import REGIONS, load_plan

GPUFLEET = Path(sys.executable).with_name("gpufleet")
DEV = (REGIONS / "dev.yaml").read_text()


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([GPUFLEET, "check", *words], capture_output=True, text=True, check=False)


def test_the_number_of_limits_is_that_of_their_names_whether_some_break_or_none(tmp_path: Path) -> None:
    rows = check(load_plan("dev"))
    counted = f"{len({row.limit for row in rows})} limits in {len(rows)} places"
    assert f"dev: 12 nodes; {counted}, each shown where it is tightest (--all: everywhere); none broken" in run("dev").stdout
    (tmp_path / "dev.yaml").write_text(DEV.replace("count: 3", "count: 4"))
    output = run(str(tmp_path / "dev.yaml")).stdout
    assert f"dev: 12 nodes; {counted}, each shown where it is tightest (--all: everywhere); 4 broken" in output
    assert len([line for line in output.splitlines() if line.startswith("broken: ")]) == 4


def test_a_refused_file_is_told_as_json_on_standard_output_and_in_words_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "dev.yaml"
    path.write_text(DEV.replace("nodes: 10\n", "nodes: ten\n").replace("gateway: VpnGw1AZ", "gateway: VpnGw9AZ"))
    result = run(str(path), "--json")
    assert result.returncode == 2
    document = json.loads(result.stdout)
    assert document["region"] == str(path)
    assert [(fault["path"], fault["line"]) for fault in document["refused"]] == [("hub.gateway", 14), ("clusters[0].pools[0].nodes", 46)]
    assert all(list(fault) == ["file", "path", "line", "column", "value", "reason", "remedy"] for fault in document["refused"])
    assert all(fault["reason"] and fault["remedy"] for fault in document["refused"])
    assert len(result.stderr.splitlines()) == 2
    assert json.loads(run("nowhere", "--json").stdout)["refused"][0]["file"] == "stacks/regions"


def test_a_shipped_region_is_said_to_bear_the_examples_identities_and_passes() -> None:
    result = run("dev")
    assert result.returncode == 0
    (note,) = (line for line in result.stdout.splitlines() if line.startswith("note: "))
    assert note.startswith("note: dev.yaml: access.ssh_public_key, access.tenant, ")
    assert note.endswith("replace them before pulumi up, or the owner of the examples' key administers your machines")
    assert json.loads(run("dev", "--json").stdout)["notes"] == [note.removeprefix("note: ")]
