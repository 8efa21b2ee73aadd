"""Settings that the benchmark changes in both clusters: heartbeats and fsync in faithful, a longer list in fast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from components.boot import kube_scheduler
from components.boot.shared_settings import GRACE_SECONDS, LEASE_SECONDS, REPORT_SECONDS
from rehearsal.local_cluster.joining.kwok import FAST as FAST_KEEPING
from rehearsal.local_cluster.joining.kwok import STAGES, KwokMode

NO_AUDIT = """\
apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: None}]
"""
"""Audit policy of gpufleet's cluster in fast; the bare cluster has none."""
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
REPLICA_SETS_AT_ONCE = 5
"""Kubernetes' default. Rendered are 20, with a limit of requests a second that fast lifts. Without it each ReplicaSet has hundreds of pods
created at the same time (slowStartBatch in https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controller/replicaset/replica_set.go),
on so many connections that handshakes of TLS took 1.0 of 6.1 CPU seconds in a profile of the controller manager with 3,000 pods."""
FILTERS = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit")
SCORED_PERCENT = 2
PODS_PER_DEPLOYMENT = 500
FAITHFUL_LEASE_SECONDS = 200
"""Of both clusters in faithful. One process renews all leases from the same two cores, which at 7,500 nodes would be 375 a second with the
rendered 80 s; where it is late, the controller manager taints nodes, and that costs more than all else."""
FAITHFUL_GRACE_SECONDS = FAITHFUL_LEASE_SECONDS * GRACE_SECONDS // LEASE_SECONDS

NO_FSYNC: Flags = {"etcd": {"unsafe-no-fsync": "true"}}
"""Flags of both clusters in both settings: the benchmark measures the processor, not the disk."""


@dataclass(frozen=True)
class Setting:
    """Settings of both clusters: flags by program, the scheduler's profile, and environment variables of all programs.

    keeping is how kwok keeps the nodes, and whether they are posted as Ready; pods_per_deployment None puts all into one.
    """

    name: str
    keeping: KwokMode
    flags: Flags = field(default_factory=dict)
    filters_only: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    pods_per_deployment: int | None = None

    def changes(self) -> tuple[str, ...]:
        """Return one line for each change."""
        flags = (f"{program} --{flag}={value}" for program, by_flag in self.flags.items() for flag, value in by_flag.items())
        variables = (f"{name}={value} in the environment of every program" for name, value in self.environment.items())
        profile = (f"kube-scheduler: plugins {', '.join(FILTERS)} alone, no scores, {SCORED_PERCENT} % of nodes looked at",)
        silent = ("gpufleet's kube-apiserver: an audit policy that logs nothing",) if self.filters_only else ()
        split = (f"Deployments of {self.pods_per_deployment} pods",) if self.pods_per_deployment else ()
        return (
            *flags,
            *silent,
            *(profile if self.filters_only else ()),
            *variables,
            _said(self.keeping),
            *split,
            *(("nodes posted Ready",) if self.keeping.registered_ready else ()),
        )


def _said(keeping: KwokMode) -> str:
    every = (
        f"leases of {keeping.lease_seconds} s, by one kwok for nodes and one for pods" if keeping.lease_seconds else "no leases, no reports"
    )
    unread = "; no stage of nodes looks at more than their labels" if keeping.registered_ready else ""
    return f"kwok: stages {', '.join(keeping.stages)}; {every}{unread}"


FAITHFUL = Setting(
    "faithful",
    KwokMode(STAGES, FAITHFUL_LEASE_SECONDS, REPORT_SECONDS),
    flags={**NO_FSYNC, "kube-controller-manager": {"node-monitor-grace-period": f"{FAITHFUL_GRACE_SECONDS}s"}},
)
FAST = Setting(
    "fast",
    FAST_KEEPING,
    flags={
        **NO_FSYNC,
        "kube-apiserver": {"disable-admission-plugins": "TaintNodesByCondition"},
        "kube-controller-manager": {
            "controllers": CONTROLLERS,
            "kube-api-qps": str(REQUESTS_PER_SECOND),
            "kube-api-burst": str(2 * REQUESTS_PER_SECOND),
            "concurrent-replicaset-syncs": str(REPLICA_SETS_AT_ONCE),
            "node-monitor-grace-period": "24h",
        },
    },
    filters_only=True,
    environment={"GOGC": "400"},
    pods_per_deployment=PODS_PER_DEPLOYMENT,
)


SETTINGS = {one.name: one for one in (FAITHFUL, FAST)}


def scheduler_configuration(kubeconfig: str, filters_only: bool, rendered: bool) -> str:
    """Return the scheduler's configuration as YAML: the rendered one or Kubernetes' defaults; filters_only replaces the profile."""
    document: Json = yaml.safe_load(kube_scheduler.configuration())
    document["clientConnection"]["kubeconfig"] = kubeconfig
    if not rendered:
        document = {key: document[key] for key in ("apiVersion", "kind", "clientConnection", "leaderElection")}
    if filters_only:
        document["clientConnection"] |= {"qps": REQUESTS_PER_SECOND, "burst": 2 * REQUESTS_PER_SECOND}
        document["profiles"] = [_filters_profile()]
    return yaml.safe_dump(document, sort_keys=False)


def _filters_profile() -> Json:
    """Return a profile that selects the first node that fits."""
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
