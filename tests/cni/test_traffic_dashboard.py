"""The dashboard is the one that was reviewed, and all that it asks is PromQL."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from cni.traffic_dashboard import ROWS, queries
from gpufleet.cli import group

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
