"""Check that each identity has exactly the role assignments that its machines need."""

from __future__ import annotations

from collections.abc import Iterator

from components.identity import BLOB_CONTRIBUTOR, READER, SECRETS_OFFICER, SECRETS_USER
from components.plan.access import BOOTSTRAP_TOKEN
from components.plan.model import ClusterPlan, RegionPlan
from rehearsal.checks.expected_resources import STORAGE, ResourceGroupIds
from rehearsal.checks.finding import Finding
from rehearsal.checks.inventory import ROLE_ASSIGNMENT, short_id
from rehearsal.checks.network_model import key
from rehearsal.program.graph import Graph, reveal

GRANTS = "every identity may read its own vault and has the rights of its role, and no other rights"
IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"

Grant = tuple[str, str, str]
"""Key of an identity, id of a role definition, key of the scope."""


def check_role_assignments(plan: RegionPlan, base: Graph, clusters: Graph) -> tuple[Finding, ...]:
    """Compare the role assignments of a region's two stacks with the needs of its machines."""
    principals = {
        str(reveal(resource.outputs.get("principalId"))): key(resource.id)
        for graph in (base, clusters)
        for resource in graph.of_type(IDENTITY)
    }
    found: list[Grant] = []
    for resource in (*base.of_type(ROLE_ASSIGNMENT), *clusters.of_type(ROLE_ASSIGNMENT)):
        inputs = resource.inputs
        identity = principals.get(str(inputs.get("principalId")), f"principal {inputs.get('principalId')}")
        found.append((identity, key(inputs.get("roleDefinitionId")).rpartition("/")[2], key(inputs.get("scope"))))
    needed = {grant for cluster in plan.clusters for grant in _needed(plan, cluster)}
    return (*_missing(needed, found), *_surplus(needed, found))


def _needed(plan: RegionPlan, cluster: ClusterPlan) -> Iterator[Grant]:
    group, base = (
        ResourceGroupIds(cluster.subscription, cluster.resource_group),
        ResourceGroupIds(plan.spec.subscription, plan.base_resource_group),
    )
    account = base.of(STORAGE, "storageAccounts", plan.backup.account)
    for identity in cluster.identities:
        own = key(identity.id)
        yield own, SECRETS_USER, key(cluster.vault(identity.role).id)
        if identity.role == "etcd":
            yield own, BLOB_CONTRIBUTOR, key(f"{account}/blobServices/default/containers/{cluster.backup_container}")
        if identity.role == "control":
            yield own, READER, key(group.id)
            yield own, SECRETS_OFFICER, key(f"{cluster.vault('node').id}/secrets/{BOOTSTRAP_TOKEN}")


def _missing(needed: set[Grant], found: list[Grant]) -> Iterator[Finding]:
    for grant in sorted(needed):
        if found.count(grant) != 1:
            yield Finding(
                GRANTS, _name(grant[0]), f"one grant of {grant[1]} on {_name(grant[2])}", f"{found.count(grant)}", "grant it once"
            )


def _surplus(needed: set[Grant], found: list[Grant]) -> Iterator[Finding]:
    for grant in found:
        if grant not in needed:
            yield Finding(GRANTS, _name(grant[0]), "no other grant", f"{grant[1]} on {_name(grant[2])}", "take the grant away")


def _name(lower_id: str) -> str:
    """Return a lower-case id in its readable form."""
    return short_id(lower_id.replace("/resourcegroups/", "/resourceGroups/").replace("/providers/microsoft.", "/providers/Microsoft."))
