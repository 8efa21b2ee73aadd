"""Decides what is changed for speed, in ours and in the bare cluster alike: nothing in faithful, a written list in fast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from components.boot import kube_scheduler
from rehearsal.cluster.joining.kwok import FAST as FAST_KEEPING
from rehearsal.cluster.joining.kwok import Keeping

NO_AUDIT = """\
apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: None}]
"""
"""Audit policy of ours in fast; the bare cluster has none."""
Flags = Mapping[str, Mapping[str, str]]
Json = dict[str, Any]
CONTROLLERS = ",".join(
    f"{name}-controller"
    for name in (
        "daemonset",
        "deployment",
        "disruption",
        "garbage-collector",
        "job",
        "namespace",
        "node-lifecycle",
        "replicaset",
        "root-ca-certificate-publisher",
        "serviceaccount",
        "statefulset",
    )
)
REQUESTS_PER_SECOND = 5_000
FILTERS = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit")
SCORED_PERCENT = 2
PODS_PER_DEPLOYMENT = 500
BARE_LEASE_SECONDS, BARE_REPORT_SECONDS = 200, 300
"""What the bare cluster's nodes do in the faithful setting: leases of 200 s, and Kubernetes' default between two reports of a status."""


@dataclass(frozen=True)
class Setting:
    """What both clusters are changed in: flags by program, the scheduler's profile, and variables of all programs' environment.

    keeping is how kwok keeps our nodes, None as their boot files say, and bare_keeping how the bare cluster's; pods_per_deployment None
    puts all into one; ready says that nodes are posted Ready, which spares kwok a report of each.
    """

    name: str
    keeping: Keeping | None
    bare_keeping: Keeping
    flags: Flags = field(default_factory=dict)
    filters_only: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    pods_per_deployment: int | None = None
    ready: bool = False

    def told(self) -> tuple[str, ...]:
        """Each change in words."""
        flags = (f"{program} --{flag}={value}" for program, by_flag in self.flags.items() for flag, value in by_flag.items())
        variables = (f"{name}={value} in the environment of every program" for name, value in self.environment.items())
        profile = (f"kube-scheduler: plugins {', '.join(FILTERS)} alone, no scores, {SCORED_PERCENT} % of nodes looked at",)
        kept = () if self.keeping is None else (_said(self.keeping),)
        silent = ("kube-apiserver of ours: an audit policy that writes nothing down",) if self.filters_only else ()
        split = (f"Deployments of {self.pods_per_deployment} pods",) if self.pods_per_deployment else ()
        return (
            *flags,
            *silent,
            *(profile if self.filters_only else ()),
            *variables,
            *kept,
            *split,
            *(("nodes posted Ready",) if self.ready else ()),
        )


def _said(keeping: Keeping) -> str:
    every = f"leases of {keeping.lease_seconds} s" if keeping.lease_seconds else "no leases, no reports"
    return f"kwok: stages {', '.join(keeping.stages)}; {every}"


FAITHFUL = Setting(
    "faithful", None, Keeping(("node-fast", "node-heartbeat-with-lease", "pod-general"), BARE_LEASE_SECONDS, BARE_REPORT_SECONDS)
)
FAST = Setting(
    "fast",
    FAST_KEEPING,
    FAST_KEEPING,
    flags={
        "kube-apiserver": {"disable-admission-plugins": "TaintNodesByCondition"},
        "kube-controller-manager": {
            "controllers": CONTROLLERS,
            "kube-api-qps": str(REQUESTS_PER_SECOND),
            "kube-api-burst": str(2 * REQUESTS_PER_SECOND),
            "node-monitor-grace-period": "24h",
        },
    },
    filters_only=True,
    environment={"GOGC": "400"},
    pods_per_deployment=PODS_PER_DEPLOYMENT,
    ready=True,
)


def with_leases(setting: Setting, seconds: int) -> Setting:
    """The faithful setting with leases of so many seconds in both clusters."""
    keeping = replace(setting.bare_keeping, lease_seconds=seconds)
    return replace(setting, keeping=keeping, bare_keeping=keeping)


SETTINGS = {one.name: one for one in (FAITHFUL, FAST)}


def scheduler_configuration(kubeconfig: str, filters_only: bool, rendered: bool) -> str:
    """The scheduler's configuration, YAML: ours as rendered, or Kubernetes' defaults; filters_only replaces its profile in both."""
    document: Json = yaml.safe_load(kube_scheduler.configuration())
    document["clientConnection"]["kubeconfig"] = kubeconfig
    if not rendered:
        document = {key: document[key] for key in ("apiVersion", "kind", "clientConnection", "leaderElection")}
    if filters_only:
        document["clientConnection"] |= {"qps": REQUESTS_PER_SECOND, "burst": 2 * REQUESTS_PER_SECOND}
        document["profiles"] = [_filters_profile()]
    return yaml.safe_dump(document, sort_keys=False)


def _filters_profile() -> Json:
    """A profile that takes the first node that fits."""
    alone = {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in FILTERS]}
    plugins = {
        # One entry for each point that the defaults would fill by way of multiPoint.
        "multiPoint": {
            "disabled": [{"name": "*"}],
            "enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}],
        },
        "preFilter": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeAffinity"}, {"name": "NodeResourcesFit"}]},
        "filter": alone,
    }
    return {"schedulerName": "default-scheduler", "percentageOfNodesToScore": SCORED_PERCENT, "plugins": plugins}
