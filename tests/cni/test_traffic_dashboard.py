"""The dashboard is the one that was reviewed, and all that it asks is PromQL."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from cni.exporter import collector
from cni.traffic_dashboard import ROWS, queries
from cni.traffic_rules import records
from gpufleet.cli import group
from stacks.load import load_plan

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian package prometheus)")


def printed() -> str:
    result = CliRunner().invoke(group, ["dashboard", "traffic"])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_dashboard_is_the_one_that_was_reviewed(golden: Callable[[str, str], None]) -> None:
    golden("cni/traffic-dashboard.json", printed())


def test_every_panel_is_drawn_once_and_asks_its_query() -> None:
    drawn = [panel for panel in json.loads(printed())["panels"] if panel["type"] != "row"]
    assert [(panel["title"], panel["targets"][0]["expr"]) for panel in drawn] == list(queries())
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in drawn]
    assert len(places) == len(set(places)) == sum(len(panels) for _, panels in ROWS)


def test_every_series_in_a_query_is_recorded_by_the_rules_or_exported_by_the_nodes() -> None:
    (cluster,) = load_plan("dev").clusters
    recorded = {one.name for one in records("dev", cluster)}
    words = {node.value for node in ast.walk(ast.parse(Path(str(collector.__file__)).read_text())) if isinstance(node, ast.Constant)}
    used = {name for _, query in queries() for name in re.findall(r"([a-z_:0-9]+)\{", query)}
    exported = {name for name in used if name in words or name.removesuffix("_total") in words}
    assert used - recorded == exported == {"gpufleet_traffic_accounting_in_place", "pod_internet_bytes_total"}


@needs_promtool
def test_every_query_is_promql(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": query.replace("$region", "dev").replace("$cluster", "dev")}
        for number, (_, query) in enumerate(queries())
    ]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
