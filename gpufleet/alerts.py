"""gpufleet alerts: write the Prometheus rules of a region's control planes and of its internet traffic."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import click

from cni import traffic_rules
from components.manifests import control_plane_alerts
from gpufleet.directories import OUT, Directory
from stacks.load import ROOT, load_plan, short_path

RUNBOOKS = f"{(ROOT / 'docs' / 'runbooks').as_uri()}/{{page}}.md#{{section}}"
"""Pattern of the runbooks' URLs in this checkout."""
EXAMPLE = "https://docs.example/runbooks/{page}.html#{section}"


def check_pattern(context: click.Context, parameter: click.Parameter, pattern: str | None) -> str | None:
    """Return a pattern of runbook URLs; raise BadParameter if it is not one."""
    if pattern is None:
        return None
    rest = pattern.replace("{page}", "").replace("{section}", "")
    if "{page}" not in pattern:
        reason = "does not contain {page}, so that every alert would have the same runbook"
    elif any(brace in rest for brace in "{}"):
        reason = "contains a brace outside of {page} and {section}, which Prometheus would read as a template"
    elif urlsplit(rest).scheme not in {"http", "https", "file"} or any(sign.isspace() for sign in rest):
        reason = "is not a URL that begins with https://, http:// or file://"
    else:
        return pattern
    raise click.BadParameter(f"{pattern!r} {reason}; give for example '{EXAMPLE}'", context, parameter)


@click.command(short_help="Write the Prometheus rules of each cluster's control plane and internet traffic.")
@click.argument("region")
@click.option(
    "--out",
    type=Directory(),
    help="Directory of the files, two per cluster: <region>-<cluster>[-traffic].rules.yaml.  "
    "[default: out/<region>/alerts in the project's folder]",
)
@click.option(
    "--runbook-url",
    metavar="PATTERN",
    envvar="GPUFLEET_RUNBOOK_URL",
    show_envvar=True,
    callback=check_pattern,
    help=f"URL of a runbook in your documentation, with {{page}} and {{section}}: {EXAMPLE}.  [default: docs/runbooks of this checkout]",
)
def alerts(region: str, out: Path | None, runbook_url: str | None) -> None:
    """Write Prometheus rules for REGION's control planes (429 and 5xx, latency, API servers, etcd, leaders, nodes, certificates) and for
    its internet traffic (by team, namespace, node and NAT gateway; budgets, and completeness of the counts).

    \b
    They are for a Prometheus outside the clusters, with this line in its configuration:
      rule_files: [/etc/prometheus/gpufleet/*.rules.yaml]
    They select series by the labels region and cluster, which your scrape configuration must set.
    All labels, and the response to each alert: docs/runbooks/control-plane-alerts.md, docs/traffic.md.
    """
    plan = load_plan(region)
    folder = out or short_path(OUT / plan.name / "alerts")
    folder.mkdir(parents=True, exist_ok=True)
    for cluster in plan.clusters:
        for ending, rules in (("", control_plane_alerts), ("-traffic", traffic_rules)):
            path = folder / f"{plan.name}-{cluster.name}{ending}.rules.yaml"
            path.write_text(rules.rules_file(plan.name, cluster, runbook_url or RUNBOOKS))
            click.echo(str(path))
    if runbook_url is None:
        click.echo(f"runbook_url leads to files on this machine; for other readers, give --runbook-url '{EXAMPLE}'", err=True)
