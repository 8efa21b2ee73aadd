"""gpufleet dashboard: print Grafana dashboards."""

from __future__ import annotations

import click


@click.group(short_help="Print a Grafana dashboard.")
def dashboard() -> None:
    """Print a dashboard as the JSON that Grafana imports; one serves every region and cluster."""


@dashboard.command(short_help="Internet traffic by team, namespace, node, pod and NAT gateway.")
def traffic() -> None:
    """Print the dashboard of internet traffic; it draws the recording rules of `gpufleet alerts`.

    \b
    Import it by hand, or write it to Grafana's folder of dashboards:
      gpufleet dashboard traffic > /var/lib/grafana/dashboards/gpufleet-traffic.json
    """
    # Grafana's library takes longer to import than most commands take to run.
    from cni.traffic_dashboard import traffic_dashboard

    click.echo(traffic_dashboard(), nl=False)
