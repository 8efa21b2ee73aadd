"""gpufleet alerts: the alerting rules of a region's control planes, as files for its Prometheus."""

from __future__ import annotations

from pathlib import Path

import click

from components.manifests.control_plane_alerts import rules_file
from stacks.load import load_plan


@click.command(short_help="Write the alerting rules of each cluster's control plane.")
@click.argument("region")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the files, one per cluster: <region>-<cluster>.rules.yaml.  [default: out/<region>/alerts]",
)
def alerts(region: str, out: Path | None) -> None:
    """Write Prometheus rules for REGION's control planes: 429 and 5xx, latency, API servers, etcd, leaders, nodes, certificates.

    \b
    They are for a Prometheus outside the clusters, which says in its configuration:
      rule_files: [/etc/prometheus/gpufleet/*.rules.yaml]
    Which labels they expect, and what to do for each alert: docs/runbooks/control-plane-alerts.md.
    """
    plan = load_plan(region)
    folder = out or Path("out") / plan.name / "alerts"
    folder.mkdir(parents=True, exist_ok=True)
    for cluster in plan.clusters:
        path = folder / f"{plan.name}-{cluster.name}.rules.yaml"
        path.write_text(rules_file(cluster))
        click.echo(str(path))
