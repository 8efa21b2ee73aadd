import pytest
from region_graphs import REGIONS, azure_ids, base_graph, bodies, ground_graph, lay_ground, planned

from components.plan import naming

SECRETS_USER = "4633458b-17de-408a-b874-0445c86b69e6"
BLOB_CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
SECRETS_OFFICER = "b86a8fe4-44ce-4948-aee5-eccb2c155cd7"
READER = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"


@pytest.mark.parametrize("region", REGIONS)
def test_each_identity_is_made_once(region: str) -> None:
    expected = [
        naming.resource_id(
            cluster.subscription, cluster.resource_group, "Microsoft.ManagedIdentity", "userAssignedIdentities", identity.name
        )
        for cluster in planned(region).clusters
        for identity in cluster.identities
    ]
    assert [item for item in azure_ids(ground_graph(region)) if "userAssignedIdentities" in item] == sorted(expected)


@pytest.mark.parametrize("region", REGIONS)
def test_a_role_reads_its_own_vault_and_does_nothing_else_beyond_its_task(region: str) -> None:
    plan, graph = planned(region), ground_graph(region)
    account = naming.resource_id(
        plan.spec.subscription, plan.base_resource_group, "Microsoft.Storage", "storageAccounts", plan.backup.account
    )
    expected = []
    for cluster in plan.clusters:
        expected += [(f"{cluster.name}-id-{vault.role}", SECRETS_USER, vault.id) for vault in cluster.vaults]
        container = f"{account}/blobServices/default/containers/{cluster.backup_container}"
        group = f"/subscriptions/{cluster.subscription}/resourceGroups/{cluster.resource_group}"
        expected += [(f"{cluster.name}-id-etcd", BLOB_CONTRIBUTOR, container), (f"{cluster.name}-id-control", READER, group)]
        token = f"{cluster.vault('node').id}/secrets/bootstrap-token"
        expected += [(f"{cluster.name}-id-control", SECRETS_OFFICER, token)]
    principals = {
        item.outputs["principalId"]: item.outputs["name"] for item in graph.of_type("azure-native:managedidentity:UserAssignedIdentity")
    }
    found = [
        (principals[body["principalId"]], body["roleDefinitionId"].rpartition("/")[2], body["scope"])
        for body in bodies(graph.of_type(ASSIGNMENT))
    ]
    assert sorted(found) == sorted(expected)


def test_an_assignment_names_a_service_principal() -> None:
    assert {body["principalType"] for body in bodies(ground_graph("southcentralus").of_type(ASSIGNMENT))} == {"ServicePrincipal"}


def test_assignments_keep_their_names_from_run_to_run_and_share_none() -> None:
    names = [body["roleAssignmentName"] for body in bodies(ground_graph("dev").of_type(ASSIGNMENT))]
    assert len(set(names)) == len(names)
    again = lay_ground(planned("dev"), base_graph("dev"))
    assert [body["roleAssignmentName"] for body in bodies(again.of_type(ASSIGNMENT))] == names
