"""Namespaces and rights of operators, API servers and teams.

There is no NetworkPolicy: pods have addresses of the virtual network, and its security groups restrict traffic.
There is no ResourceQuota: allocations limit teams by nodes.
"""

from __future__ import annotations

from components.manifests import rbac
from components.manifests.owned import FLEET_NAMESPACE, Object, owned
from components.plan.access import KUBELET_CLIENT_USER, TEAM_LABEL, entra_group
from components.plan.model import ClusterPlan, RegionPlan
from components.spec.tenancy import Team

CONCERN = "tenancy"


def _enforce(level: str) -> dict[str, str]:
    """Return the labels for a pod security level of a namespace: https://kubernetes.io/docs/concepts/security/pod-security-standards/"""
    return {"pod-security.kubernetes.io/enforce": level}


def fleet_namespace() -> Object:
    """Return the namespace of gpufleet, with the privileged level, since its pods use devices of the host."""
    return owned("v1", "Namespace", FLEET_NAMESPACE, CONCERN, labels=_enforce("privileged"))


def team_objects(team: Team) -> list[Object]:
    """Return a team's namespace, and the right to edit in it for the team's group.

    The level baseline denies host access: a pod that is root on a node could act as the node and read other teams' jobs.
    """
    namespace = owned("v1", "Namespace", team.name, CONCERN, labels={TEAM_LABEL: team.name} | _enforce("baseline"))
    return [namespace, rbac.binding("team-edit", CONCERN, team.name, "ClusterRole", "edit", rbac.group(entra_group(team.group)))]


def tenancy_objects(region: RegionPlan, cluster: ClusterPlan) -> list[Object]:
    """Return all objects of this concern: cluster-wide bindings, gpufleet's namespace, and two objects per team."""
    operators = rbac.group(entra_group(region.spec.access.operators_group))
    return [
        fleet_namespace(),
        rbac.cluster_binding("gpufleet-operators", CONCERN, "cluster-admin", operators),
        # Logs, exec and metrics: without it, the kubelet's authorization refuses calls of API servers.
        rbac.cluster_binding("gpufleet-api-servers-to-kubelets", CONCERN, "system:kubelet-api-admin", rbac.user(KUBELET_CLIENT_USER)),
        *(item for team in cluster.spec.tenancy.teams for item in team_objects(team)),
    ]
