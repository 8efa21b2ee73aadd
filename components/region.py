"""Stack of a region: its clusters, which do not depend on each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_azure_native as azure

from components.base_outputs import BaseOutputs
from components.cluster import Cluster, ClusterArgs
from components.inside_hub import InsideHub, InsideHubArgs
from components.live_instances import InstanceReader, deployer_instances
from components.plan.model import RegionPlan
from components.shrink_guard import shrink_guard


@dataclass(frozen=True)
class RegionClustersArgs:
    """Clusters of a region; read_instances replaces the reader of live instances in Azure."""

    plan: RegionPlan
    base: BaseOutputs
    read_instances: InstanceReader | None = None


class RegionClusters(pulumi.ComponentResource):
    """A region's clusters; exports are the stack outputs: API servers' URLs, and kubeconfigs of administrators and people, by cluster."""

    exports: dict[str, Any]

    def __init__(self, name: str, args: RegionClustersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:region:RegionClusters", name, {}, opts)
        plan = args.plan
        inside = InsideHub(f"{name}-inside-hub", InsideHubArgs(plan.hub), pulumi.ResourceOptions(parent=self))
        base_provider = azure.Provider(
            f"{name}-azure",
            subscription_id=plan.spec.subscription,
            tenant_id=plan.spec.access.tenant,
            # Outside the hub's network the update could not complete, so it stops before the first request to Azure.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[inside]),
        )
        guard = shrink_guard(f"{name}-shrink-guard", args.read_instances or deployer_instances(base_provider))
        clusters = {
            cluster.name: Cluster(
                f"{name}-{cluster.name}", ClusterArgs(plan, cluster, args.base, base_provider, guard), pulumi.ResourceOptions(parent=self)
            )
            for cluster in plan.clusters
        }
        self.exports = {
            "api_servers": {cluster: made.api_server for cluster, made in clusters.items()},
            "kubeconfigs": {cluster: made.kubeconfig for cluster, made in clusters.items()},
            "people_kubeconfigs": {cluster: made.people_kubeconfig for cluster, made in clusters.items()},
        }
        self.register_outputs(self.exports)
