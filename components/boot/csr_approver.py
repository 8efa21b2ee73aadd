"""Which flags the approver of kubelets' serving certificates is started with."""

from __future__ import annotations

from components.boot.control_keys import KUBERNETES
from components.plan import naming
from components.plan.model import ClusterPlan

PROGRAM = "/usr/local/bin/gpufleet-csr-approver"
KUBECONFIG = f"{KUBERNETES}/csr-approver.kubeconfig"


def flags(cluster: ClusterPlan) -> dict[str, str | tuple[str, ...]]:
    """Flags of the approver: where the cluster's scale sets are, and how their names begin.

    No list of them: it would change with every set that a pool gains, and all API servers with it.
    """
    return {
        "kubeconfig": KUBECONFIG,
        "subscription": cluster.subscription,
        "resource-group": cluster.resource_group,
        "scale-set-prefix": naming.of_cluster(cluster.name, ""),
    }
