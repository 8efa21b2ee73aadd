"""The rules of internet traffic are Prometheus', subtract what is none of the internet's, and fire for what somebody should be told of."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from cni.traffic_rules import HOOKS, JOB, alerts, gateways, records, rules_file
from components.plan.model import ClusterPlan
from gpufleet.alerts import RUNBOOKS
from stacks.load import ROOT, load_plan

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian package prometheus)")
REGIONS = ("dev", "southcentralus", "swedencentral")
CLUSTERS = {f"{region}/{cluster.name}": cluster for region in REGIONS for cluster in load_plan(region).clusters}
NODE = "dev-cpu-000-00000a"
OWN = f'region="dev",cluster="dev",job="{JOB}",node="{NODE}"'
MINUTES = 200
Series = Mapping[str, str]


def always(value: float) -> str:
    return f"{value:g}+0x{MINUTES}"


def rising(per_second: float) -> str:
    return f"0+{per_second * 60:g}x{MINUTES}"


def rule(chain: str, name: str) -> str:
    return f'iptables_bytes_total{{{OWN},chain="{chain}",rule="{name}"}}'


def published(direction: str, whose: str) -> str:
    return rule(HOOKS[direction, whose][0], f"openai traffic=internet-{direction}")


def pod(namespace: str, name: str, team: str, direction: str = "out") -> str:
    return f'pod_internet_bytes_total{{{OWN},namespace="{namespace}",pod="{name}",team="{team}",direction="{direction}"}}'


def health(metric: str) -> str:
    return f"{metric}{{{OWN}}}"


HEALTHY: Series = {
    **{published(*hook): rising(1000) for hook in HOOKS},
    rule("gpufleet-output-out", "gpufleet traffic=not-internet-out range=loopback"): rising(900),
    pod("platform", "a", "platform"): rising(800),
    pod("kube-system", "b", ""): rising(200),
    pod("", "", ""): always(0),
    health("up"): always(1),
    health("gpufleet_traffic_accounting_in_place"): always(1),
    health("gpufleet_traffic_resets_total"): always(0),
}


@dataclass(frozen=True)
class Case:
    """Series beside those of a healthy node, or instead of them, one value a minute; fires is all that fires at the minute."""

    name: str
    minute: int
    series: Series = field(default_factory=dict)
    fires: frozenset[str] = frozenset()


FULL = {published("out", "pods"): rising(3e9), published("in", "pods"): rising(3e9)}
CASES = (
    Case("all is well", 60),
    Case(
        "a team sends a gigabyte a second for three hours",
        195,
        {pod("platform", "a", "platform"): rising(1e9)},
        frozenset({"TeamEgressOverBudget"}),
    ),
    Case("a team receives as much", 195, {pod("platform", "a", "platform", "in"): rising(1e9)}),
    Case("what is no team's has no budget", 195, {pod("kube-system", "b", ""): rising(1e9)}),
    Case("a gateway carries 48 of 50 Gbit/s both ways together", 30, FULL, frozenset({"NatGatewayFull"})),
    Case(
        "half of it is none of the internet's",
        30,
        {**FULL, rule("gpufleet-forward-in", "gpufleet traffic=not-internet-in range=shared"): rising(3e9)},
    ),
    Case("a gateway is full for five minutes", 14, FULL),
    Case("rules are missing", 20, {health("gpufleet_traffic_accounting_in_place"): always(0)}, frozenset({"AccountingMissing"})),
    Case("rules are missing for a moment", 20, {health("gpufleet_traffic_accounting_in_place"): "1+0x9 0 1+0x100"}),
    Case("an exporter does not answer", 20, {health("up"): always(0)}, frozenset({"AccountingMissing"})),
    Case("somebody flushed", 20, {health("gpufleet_traffic_resets_total"): "0+0x12 4+0x100"}, frozenset({"CountersRanBackwards"})),
    Case("somebody flushed an hour ago", 80, {health("gpufleet_traffic_resets_total"): "0+0x12 4+0x100"}),
    Case("a tenth of all is nobody's", 60, {pod("", "", ""): rising(120)}, frozenset({"TrafficOfNobody"})),
)


def _promtool(*arguments: str | Path) -> None:
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _tested(folder: Path, series: Series, query: list[dict[str, object]], *more: str) -> None:
    (folder / "rules.yaml").write_text(rules_file("dev", CLUSTERS["dev/dev"], RUNBOOKS))
    rows = [{"series": name, "values": values} for name, values in {**HEALTHY, **series}.items()]
    case = {"interval": "1m", "input_series": rows, "promql_expr_test": query}
    document = {"rule_files": ["rules.yaml", *more], "evaluation_interval": "1m", "tests": [case]}
    (folder / "test.yaml").write_text(yaml.safe_dump(document))
    _promtool("test", "rules", folder / "test.yaml")


@needs_promtool
@pytest.mark.parametrize("name", list(CLUSTERS))
def test_prometheus_takes_the_rules_of_every_cluster(name: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(rules_file(name.partition("/")[0], CLUSTERS[name], RUNBOOKS))
    _promtool("check", "rules", tmp_path / "rules.yaml")


@needs_promtool
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_fires_is_what_somebody_should_be_told_of(case: Case, tmp_path: Path) -> None:
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(case.fires)]
    query = {"expr": 'group by (alertname) (ALERTS{alertstate="firing"})', "eval_time": f"{case.minute}m", "exp_samples": samples}
    _tested(tmp_path, case.series, [query])


@needs_promtool
def test_traffic_of_two_regions_with_the_same_cluster_and_node_names_is_not_added_up(tmp_path: Path) -> None:
    half = {published(direction, "pods"): rising(1.5e9) for direction in ("out", "in")}
    busy = {**HEALTHY, **half, pod("platform", "a", "platform"): rising(6e8)}
    other = {name.replace('region="dev"', 'region="other"'): values for name, values in busy.items()}
    (tmp_path / "other.yaml").write_text(rules_file("other", CLUSTERS["dev/dev"], RUNBOOKS))
    samples = [{"labels": '{alertname="AccountingMissing",region="dev",cluster="dev"}', "value": 1}]
    query = {"expr": 'group by (alertname, region, cluster) (ALERTS{alertstate="firing"})', "eval_time": "195m", "exp_samples": samples}
    _tested(tmp_path, {**busy, **other, health("gpufleet_traffic_accounting_in_place"): always(0)}, [query], "other.yaml")


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    assert {name for case in CASES for name in case.fires} == {alert.name for alert in alerts("dev", CLUSTERS["dev/dev"])}


@needs_promtool
def test_rates_are_of_the_published_rules_less_what_is_none_of_the_internets(tmp_path: Path) -> None:
    def kept(name: str, value: float, times: float = 1, **labels: str) -> dict[str, object]:
        matchers = ",".join(f'{key}="{text}"' for key, text in {"region": "dev", "cluster": "dev", **labels}.items())
        shown = ",".join(f'{key}="{text}"' for key, text in {"region": "dev", "cluster": "dev", **labels}.items() if text)
        samples = [{"labels": f"{{{shown}}}", "value": value}]
        return {"expr": f"round({name}{{{matchers}}} * {times:g})", "eval_time": "30m", "exp_samples": samples}

    node, namespace, team = "node:internet_bytes:rate5m", "namespace:pod_internet_bytes:rate5m", "team:pod_internet_bytes:rate5m"
    query = [
        kept(node, 1000, node=NODE, direction="out", of="pods"),
        kept(node, 100, node=NODE, direction="out", of="machine"),
        kept(node, 1000, node=NODE, direction="in", of="machine"),
        kept(namespace, 200, namespace="kube-system", team="", direction="out"),
        kept(team, 800, team="platform", direction="out"),
        kept("team:egress_budget_bytes", 10_000 * 2**30, team="platform"),
        kept("nat_gateway:internet:share", 496, 1e9, gateway="dev-nat-nodes-00"),
    ]
    _tested(tmp_path, {}, query)


@pytest.mark.parametrize("name", list(CLUSTERS))
def test_every_machine_with_a_gateway_is_behind_exactly_one(name: str) -> None:
    cluster: ClusterPlan = CLUSTERS[name]
    behind = gateways(cluster)
    for pool in cluster.pools:
        for scale_set in pool.scale_sets:
            machine = f"{scale_set.computer_name_prefix}00000a"
            matching = [gateway for gateway, names in behind.items() if re.fullmatch(names, machine)]
            assert matching == [cluster.network.subnet(scale_set.subnet_role).nat_gateway], machine
    assert set(behind) <= {gateway.name for gateway in cluster.network.nat_gateways}


def test_an_alert_says_what_to_do_and_where_that_is_written() -> None:
    for name, cluster in CLUSTERS.items():
        for alert in alerts(name.partition("/")[0], cluster):
            path, _, section = alert.runbook_url("docs/runbooks/{page}.md#{section}").partition("#")
            assert f"## {alert.name}\n" in (ROOT / path).read_text()
            assert section == alert.name.lower()
            assert alert.first.strip()
            assert alert.summary.strip()


def test_every_selector_names_the_region_and_the_cluster() -> None:
    for name, cluster in CLUSTERS.items():
        region = name.partition("/")[0]
        for expression in (one.expression for one in (*alerts(region, cluster), *records(region, cluster))):
            selectors = re.findall(r"\w+\{([^}]*(?:\{6\}[^}]*)?)\}", expression)
            assert all(f'region="{region}",cluster="{cluster.name}"' in selector for selector in selectors), expression
            assert selectors or "vector(" in expression or "on (region, cluster" in expression
