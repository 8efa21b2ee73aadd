"""Alerting rules are valid for Prometheus, fire for lasting failures, and do not fire for short ones."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from alert_cases import CASES, HEALTHY, Case
from click.testing import CliRunner
from planned_objects import clusters

from components.manifests.control_plane_alerts import JOBS, alerts, rules_file
from gpufleet.cli import group
from stacks.load import ROOT, load_plan

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian package prometheus)")


def _promtool(*arguments: str | Path) -> None:
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _as_test(case: Case) -> dict[str, object]:
    """A case as promtool reads it: which alerts fire at its minute, and no other."""
    series = [{"series": name, "values": values} for name, values in {**HEALTHY, **case.series}.items()]
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(case.fires)]
    query = {"expr": 'group by (alertname) (ALERTS{alertstate="firing"})', "eval_time": f"{case.minute}m", "exp_samples": samples}
    return {"interval": "1m", "name": case.name, "input_series": series, "promql_expr_test": [query]}


@needs_promtool
@pytest.mark.parametrize("name", list(clusters()))
def test_prometheus_takes_the_rules_of_every_cluster(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(rules_file(clusters()[name][1]))
    _promtool("check", "rules", path)


@needs_promtool
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_fires_is_what_should_wake_somebody(case: Case, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(rules_file(load_plan("dev").clusters[0]))
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [_as_test(case)]}
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump(document))
    _promtool("test", "rules", path)


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    fired = {name for case in CASES for name in case.fires}
    defined = {alert.name for alert in alerts(load_plan("dev").clusters[0])}
    twins = {f"Events{name}" for name in defined if name.startswith("Etcd")}
    assert defined - fired <= twins
    assert fired <= defined


def test_an_alert_says_what_to_do_and_where_that_is_written() -> None:
    for region, cluster in clusters().values():
        for alert in alerts(cluster):
            path, _, section = alert.runbook.partition("#")
            headings = re.findall(r"^## (\w+)$", (ROOT / path).read_text(), re.MULTILINE)
            assert section in {heading.lower() for heading in headings}, f"{region.name}/{cluster.name}: {alert.name}"
            assert alert.first.strip()
            assert alert.summary.strip()


def test_every_selector_names_the_cluster_and_known_jobs() -> None:
    for _, cluster in clusters().values():
        for alert in alerts(cluster):
            selectors = re.findall(r"\w+\{([^}]*)\}", alert.expression)
            assert selectors
            assert all(f'cluster="{cluster.name}"' in selector for selector in selectors), alert.name
            assert set(re.findall(r'job="([^"]*)"', alert.expression)) <= set(JOBS), alert.name


@needs_promtool
def test_the_command_writes_two_files_that_prometheus_takes_for_every_cluster(tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["alerts", "southcentralus", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    files = sorted(tmp_path.iterdir())
    assert [str(path) for path in files] == sorted(result.output.split())
    assert len(files) == 2 * len(load_plan("southcentralus").clusters)
    _promtool("check", "rules", *files)
