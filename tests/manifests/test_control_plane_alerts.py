"""Alerting rules are valid for Prometheus, fire for lasting failures, and do not fire for short ones."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest
import yaml
from alert_cases import CASES, HEALTHY, Case, always, leads, requests, rising, up
from click.testing import CliRunner
from planned_objects import clusters

from components.manifests.control_plane_alerts import JOBS, alerts, rules_file
from gpufleet.alerts import EXAMPLE, RUNBOOKS, check_pattern
from gpufleet.alerts import alerts as alerts_command
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
    path.write_text(rules_file(clusters()[name][0].name, clusters()[name][1], RUNBOOKS))
    _promtool("check", "rules", path)


@needs_promtool
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_fires_is_what_should_wake_somebody(case: Case, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(rules_file("dev", load_plan("dev").clusters[0], RUNBOOKS))
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [_as_test(case)]}
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump(document))
    _promtool("test", "rules", path)


@needs_promtool
def test_a_cluster_that_fails_is_not_confused_with_one_of_the_same_name_in_another_region(tmp_path: Path) -> None:
    failing = {up("kube-apiserver", one): always(0) for one in range(2)} | {up("etcd", 1): always(0)}
    failing |= {leads("kube-scheduler"): always(0), requests("GET", 500): rising(3.3)}
    healthy = {name.replace('region="dev"', 'region="other"'): values for name, values in HEALTHY.items()}
    series = [{"series": name, "values": values} for name, values in {**HEALTHY, **failing, **healthy}.items()]
    fires = ("ApiServerDown", "ApiServerFails", "EtcdMemberDown", "EtcdQuorumAtRisk", "SchedulerLeaderless")
    samples = [{"labels": f'{{alertname="{name}",region="dev",cluster="dev"}}', "value": 1} for name in fires]
    query = {"expr": 'group by (alertname, region, cluster) (ALERTS{alertstate="firing"})', "eval_time": "40m", "exp_samples": samples}
    for region in ("dev", "other"):
        (tmp_path / f"{region}.rules.yaml").write_text(rules_file(region, load_plan("dev").clusters[0], RUNBOOKS))
    tested = {"interval": "1m", "input_series": series, "promql_expr_test": [query]}
    document = {"rule_files": ["*.rules.yaml"], "evaluation_interval": "1m", "tests": [tested]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(document))
    _promtool("test", "rules", tmp_path / "test.yaml")


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    fired = {name for case in CASES for name in case.fires}
    defined = {alert.name for alert in alerts("dev", load_plan("dev").clusters[0])}
    twins = {f"Events{name}" for name in defined if name.startswith("Etcd")}
    assert defined - fired <= twins
    assert fired <= defined


def test_an_alert_says_what_to_do_and_where_that_is_written() -> None:
    for region, cluster in clusters().values():
        for alert in alerts(region.name, cluster):
            path, _, section = alert.runbook_url("docs/runbooks/{page}.md#{section}").partition("#")
            headings = re.findall(r"^## (\w+)$", (ROOT / path).read_text(), re.MULTILINE)
            assert section in {heading.lower() for heading in headings}, f"{region.name}/{cluster.name}: {alert.name}"
            assert alert.first.strip()
            assert alert.summary.strip()


def test_every_selector_names_the_region_the_cluster_and_known_jobs() -> None:
    for region, cluster in clusters().values():
        for alert in alerts(region.name, cluster):
            selectors = re.findall(r"\w+\{([^}]*)\}", alert.expression)
            assert selectors
            assert all(f'region="{region.name}",cluster="{cluster.name}"' in selector for selector in selectors), alert.name
            assert set(re.findall(r'job="([^"]*)"', alert.expression)) <= set(JOBS), alert.name


@needs_promtool
def test_the_command_writes_two_files_that_prometheus_takes_for_every_cluster(tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["alerts", "southcentralus", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    files = sorted(tmp_path.iterdir())
    assert [str(path) for path in files] == sorted(result.stdout.split())
    assert len(files) == 2 * len(load_plan("southcentralus").clusters)
    _promtool("check", "rules", *files)


@pytest.mark.parametrize("where", ["option", "variable"])
def test_runbook_urls_follow_the_pattern_that_is_given(where: str, tmp_path: Path) -> None:
    pattern = "https://docs.example/runbooks/{page}.html#{section}"
    given = ["--runbook-url", pattern] if where == "option" else []
    runner = CliRunner(env={"GPUFLEET_RUNBOOK_URL": None if given else pattern})
    result = runner.invoke(group, ["alerts", "dev", "--out", str(tmp_path), *given])
    assert result.exit_code == 0, result.output
    urls = {
        rule["alert"]: rule["annotations"]["runbook_url"]
        for path in tmp_path.iterdir()
        for one in yaml.safe_load(path.read_text())["groups"]
        for rule in one["rules"]
        if "alert" in rule
    }
    assert urls["EventsEtcdNoLeader"] == "https://docs.example/runbooks/control-plane-alerts.html#etcdnoleader"
    assert urls["NatGatewayFull"] == "https://docs.example/runbooks/egress-high.html#natgatewayfull"


def test_runbook_urls_lead_to_this_checkout_by_default(tmp_path: Path) -> None:
    result = CliRunner(env={"GPUFLEET_RUNBOOK_URL": None}).invoke(group, ["alerts", "dev", "--out", str(tmp_path)])
    assert "give --runbook-url 'https://" in result.stderr
    (path,) = tmp_path.glob("dev-dev.rules.yaml")
    for rule in yaml.safe_load(path.read_text())["groups"][0]["rules"]:
        assert Path(urlsplit(rule["annotations"]["runbook_url"]).path) == ROOT / "docs/runbooks/control-plane-alerts.md"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("https://docs.example/runbooks", "does not contain {page}"),
        ("https://docs.example/{page}#{{ $labels.alertname }}", "contains a brace outside"),
        ("docs/{page}.md", "is not a URL"),
        ("https://docs.example/{page} #{section}", "is not a URL"),
    ],
)
def test_another_runbook_url_is_refused_with_an_example_that_works(pattern: str, reason: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["alerts", "dev", "--out", str(tmp_path), "--runbook-url", pattern])
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []
    assert check_pattern(click.Context(alerts_command), click.Option(["--runbook-url"]), EXAMPLE) == EXAMPLE
