"""Grafana dashboard of internet traffic, for every cluster, built from a table of panels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as models

from cni.traffic_rules import EVERY_SECONDS, JOB, NAT_SHARE
from components.alerting import BY_CLUSTER

UID = "gpufleet-traffic"
CLUSTER = 'region=~"$region",cluster=~"$cluster"'
WIDTH = 24
"""Columns of Grafana's grid."""
TOP = 10


@dataclass(frozen=True)
class Panel:
    """One panel: a query and its legend; width in columns; warn is the value from which it is red."""

    title: str
    expression: str
    legend: str
    unit: str
    description: str = ""
    width: int = 12
    warn: float | None = None
    single: bool = False


def _by(what: str, direction: str) -> str:
    return f'sum by ({what}) ({what}:pod_internet_bytes:rate5m{{{CLUSTER},direction="{direction}"}})'


_SENT_IN_A_DAY = f'sum by (team) (sum_over_time(team:pod_internet_bytes:rate5m{{{CLUSTER},direction="out"}}[1d])) * {EVERY_SECONDS}'
_NODES = f"sum by ({BY_CLUSTER}, node) (node:internet_bytes:rate5m{{{CLUSTER},direction="
_PODS = f'sum by ({BY_CLUSTER}, namespace, pod) (rate(pod_internet_bytes_total{{{CLUSTER},job="{JOB}",namespace!="",direction='
_HEADERS = "TCP is counted a few percent low where the network card segments it: the rules see one header for many packets."
ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "At a glance",
        (
            Panel("Internet out", f'sum(node:internet_bytes:rate5m{{{CLUSTER},direction="out"}})', "out", "Bps", _HEADERS, 6, single=True),
            Panel("Internet in", f'sum(node:internet_bytes:rate5m{{{CLUSTER},direction="in"}})', "in", "Bps", _HEADERS, 6, single=True),
            Panel(
                "Fullest NAT gateway",
                f"max(nat_gateway:internet:share{{{CLUSTER}}})",
                "share",
                "percentunit",
                "Share of the 50 Gbit/s that a gateway carries, in both directions together.",
                6,
                NAT_SHARE,
                single=True,
            ),
            Panel(
                "Nodes without accounting",
                f'count(gpufleet_traffic_accounting_in_place{{{CLUSTER},job="{JOB}"}} == 0) or vector(0)',
                "nodes",
                "short",
                "The traffic of these nodes is not counted on this dashboard.",
                6,
                1,
                single=True,
            ),
        ),
    ),
    (
        "Teams",
        (
            Panel(
                "Out by team",
                _by("team", "out"),
                "{{team}}",
                "Bps",
                "The series without a name is of the namespaces that belong to no team.",
            ),
            Panel(
                "In by team", _by("team", "in"), "{{team}}", "Bps", "The series without a name is of the namespaces that belong to no team."
            ),
            Panel(
                "Share of the day's budget",
                f"{_SENT_IN_A_DAY} / on (team) sum by (team) (team:egress_budget_bytes{{{CLUSTER}}})",
                "{{team}}",
                "percentunit",
                "Bytes sent in the last 24 hours, as a share of egress_gib_per_day in the region file.",
                WIDTH,
                1,
            ),
        ),
    ),
    (
        "Namespaces",
        (
            Panel(
                "Out by namespace",
                _by("namespace", "out"),
                "{{namespace}}",
                "Bps",
                "The series without a name is of addresses whose pod is not known.",
            ),
            Panel(
                "In by namespace",
                _by("namespace", "in"),
                "{{namespace}}",
                "Bps",
                "The series without a name is of addresses whose pod is not known.",
            ),
        ),
    ),
    (
        "Nodes and pods",
        (
            Panel(
                f"Out of the top {TOP} nodes",
                f'topk({TOP}, {_NODES}"out"}}))',
                "{{region}}/{{cluster}} {{node}}",
                "Bps",
                "Traffic of the pods and of the machine itself.",
            ),
            Panel(
                f"Into the top {TOP} nodes",
                f'topk({TOP}, {_NODES}"in"}}))',
                "{{region}}/{{cluster}} {{node}}",
                "Bps",
                "Traffic of the pods and of the machine itself.",
            ),
            Panel(
                f"Out of the top {TOP} pods",
                f'topk({TOP}, {_PODS}"out"}}[5m])))',
                "{{region}}/{{cluster}} {{namespace}}/{{pod}}",
                "Bps",
                "Empty if Prometheus drops the series of single pods.",
            ),
            Panel(
                f"Into the top {TOP} pods",
                f'topk({TOP}, {_PODS}"in"}}[5m])))',
                "{{region}}/{{cluster}} {{namespace}}/{{pod}}",
                "Bps",
                "Empty if Prometheus drops the series of single pods.",
            ),
        ),
    ),
    (
        "NAT gateways",
        (
            Panel(
                "Share of capacity",
                f"sum by ({BY_CLUSTER}, gateway) (nat_gateway:internet:share{{{CLUSTER}}})",
                "{{region}}/{{cluster}} {{gateway}}",
                "percentunit",
                "Share of the 50 Gbit/s of a gateway, in both directions together. SNAT ports: Azure's metric SNATConnectionCount.",
                WIDTH,
                NAT_SHARE,
            ),
        ),
    ),
)


def queries() -> Iterator[tuple[str, str]]:
    """Yield title and query of every panel."""
    for _, panels in ROWS:
        for panel in panels:
            yield panel.title, panel.expression


def traffic_dashboard() -> str:
    """Return the dashboard as JSON that Grafana imports."""
    source = dashboard.DatasourceVariable("source").label("Prometheus").type("prometheus")
    made = dashboard.Dashboard("Internet traffic").uid(UID).tags(["gpufleet"]).readonly().refresh("1m").time("now-6h", "now")
    made = made.with_variable(source).with_variable(_choice("region", "")).with_variable(_choice("cluster", '{region=~"$region"}'))
    for title, panels in ROWS:
        made = made.with_row(dashboard.Row(title))
        for panel in panels:
            made = made.with_panel(_stat(panel) if panel.single else _lines(panel))
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def _choice(label: str, among: str) -> dashboard.QueryVariable:
    """Return a variable with the values of a label, among the series that a selector matches."""
    query = f"label_values(node:internet_bytes:rate5m{among}, {label})"
    made = dashboard.QueryVariable(label).label(label.capitalize()).datasource(_source()).query(query)
    made = made.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(models.VariableSort.ALPHABETICAL_ASC)
    return made.include_all(True).multi(True)


def _source() -> models.DataSourceRef:
    return models.DataSourceRef(type_val="prometheus", uid="$source")


def _query(panel: Panel) -> prometheus.Dataquery:
    query = prometheus.Dataquery().ref_id("A").expr(panel.expression).legend_format(panel.legend)
    return query.instant() if panel.single else query


def _limits(panel: Panel) -> dashboard.ThresholdsConfig:
    steps = [models.Threshold(value=None, color="green")]
    if panel.warn is not None:
        steps.append(models.Threshold(value=panel.warn, color="red"))
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def _stat(panel: Panel) -> stat.Panel:
    made = stat.Panel().title(panel.title).description(panel.description).datasource(_source()).unit(panel.unit).span(panel.width)
    return made.height(4).thresholds(_limits(panel)).with_target(_query(panel))


def _lines(panel: Panel) -> timeseries.Panel:
    made = timeseries.Panel().title(panel.title).description(panel.description).datasource(_source()).unit(panel.unit).span(panel.width)
    if panel.warn is not None:
        made = made.thresholds_style(common.GraphThresholdsStyleConfig().mode(looks.GraphThresholdsStyleMode.LINE))
    return made.height(9).min(0).thresholds(_limits(panel)).with_target(_query(panel))
