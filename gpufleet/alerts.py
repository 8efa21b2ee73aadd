"""gpufleet alerts: write the Prometheus rules of a region's control planes and of its internet traffic."""

from __future__ import annotations

from pathlib import Path

import click

from cni import traffic_rules
from components.manifests import control_plane_alerts
from stacks.load import load_plan


@click.command(short_help="Write the Prometheus rules of each cluster's control plane and internet traffic.")
@click.argument("region")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the files, two per cluster: <region>-<cluster>[-traffic].rules.yaml.  [default: out/<region>/alerts]",
)
def alerts(region: str, out: Path | None) -> None:
    """Write Prometheus rules for REGION's control planes (429 and 5xx, latency, API servers, etcd, leaders, nodes, certificates) and for
    its internet traffic (by team, namespace, node and NAT gateway; budgets, and completeness of the counts).

    \b
    They are for a Prometheus outside the clusters, with this line in its configuration:
      rule_files: [/etc/prometheus/gpufleet/*.rules.yaml]
    The labels that they expect, and the response to each alert: docs/runbooks/control-plane-alerts.md, docs/traffic.md.
    """
    plan = load_plan(region)
    folder = out or Path("out") / plan.name / "alerts"
    folder.mkdir(parents=True, exist_ok=True)
    for cluster in plan.clusters:
        files = {"": control_plane_alerts.rules_file(cluster), "-traffic": traffic_rules.rules_file(cluster)}
        for ending, text in files.items():
            path = folder / f"{plan.name}-{cluster.name}{ending}.rules.yaml"
            path.write_text(text)
            click.echo(str(path))
