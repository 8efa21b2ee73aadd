"""Managed identities, roles and locks behave as on Azure."""

from __future__ import annotations

from typing import Any

import pytest
from plain_calls import GROUP, LOCATION, OTHER, SUBSCRIPTION, TENANT, Calls

from rehearsal.program.accepting_cloud import AcceptingCloud

IDENTITY = "Microsoft.ManagedIdentity/userAssignedIdentities/node"
ACCOUNT = "Microsoft.Storage/storageAccounts/backups1"
CONTAINER = f"{ACCOUNT}/blobServices/default/containers/etcd"
ROLE = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions"
READER = f"{ROLE}/acdd72a7-3385-48ef-bd42-f606fba81ae7"
CUSTOM = f"{ROLE}/0b0b0b0b-0000-4000-8000-000000000001"
PERSON = "99999999-9999-4999-8999-999999999999"
ASSIGNMENT = "providers/Microsoft.Authorization/roleAssignments/00000000-0000-4000-8000-{:012d}"
LOCK = "providers/Microsoft.Authorization/locks"


@pytest.fixture
def calls() -> Calls:
    made = Calls()
    made.put(IDENTITY, {"location": LOCATION})
    made.put(ACCOUNT, {"location": LOCATION, "kind": "StorageV2", "sku": {"name": "Standard_LRS"}})
    made.put(CONTAINER, {})
    return made


def assignment(principal: str, role: str = READER, **more: Any) -> dict[str, Any]:
    """Body of a role assignment."""
    return {"properties": {"roleDefinitionId": role, "principalId": principal, **more}}


def on(scope: str, number: int = 1) -> str:
    """Id of a role assignment on a scope."""
    return f"{scope}/{ASSIGNMENT.format(number)}"


def principal(calls: Calls) -> str:
    return str(calls.get(IDENTITY)["properties"]["principalId"])


def test_an_identity_is_the_same_principal_as_where_nothing_is_modelled(calls: Calls) -> None:
    backend = AcceptingCloud(subscription=SUBSCRIPTION, tenant=TENANT)
    inputs = {"resourceGroupName": "g", "resourceName": "node", "location": LOCATION}
    created = backend.create("azure-native:managedidentity:UserAssignedIdentity", "node", inputs, {})
    properties = calls.get(IDENTITY)["properties"]
    assert {name: properties[name] for name in ("principalId", "clientId", "tenantId")} == {
        name: created.outputs[name] for name in ("principalId", "clientId", "tenantId")
    }
    assert calls.put(IDENTITY.upper().replace("MICROSOFT.MANAGEDIDENTITY", "Microsoft.ManagedIdentity"), {"location": LOCATION}) == {
        **calls.get(IDENTITY)
    }


@pytest.mark.parametrize("name", ["ab", "-abc", "a" * 129])
def test_an_identity_has_a_name_of_3_to_128_characters(calls: Calls, name: str) -> None:
    refused = calls.refusal("PUT", f"Microsoft.ManagedIdentity/userAssignedIdentities/{name}", {"location": LOCATION})
    assert refused.code == "InvalidResourceName"


def test_an_identity_holds_twenty_credentials_no_two_alike(calls: Calls) -> None:
    def body(subject: str, audiences: tuple[str, ...] = ("api://AzureADTokenExchange",)) -> dict[str, Any]:
        return {"properties": {"issuer": "https://issuer.test", "subject": subject, "audiences": list(audiences)}}

    credentials = f"{IDENTITY}/federatedIdentityCredentials"
    for number in range(19):
        calls.put(f"{credentials}/cred{number}", body(f"s{number}"))
    assert calls.refusal("PUT", f"{credentials}/again", body("s3")).code == "InvalidFederatedIdentityCredentialValue"
    assert calls.refusal("PUT", f"{credentials}/many", body("s19", ("a", "b"))).status == 400
    calls.put(f"{credentials}/cred19", body("s19"))
    assert "at most 20" in calls.refusal("PUT", f"{credentials}/cred20", body("s20")).message
    calls.put(f"{credentials}/cred3", body("changed"))
    calls.delete(IDENTITY)
    assert not calls.exists(f"{credentials}/cred0")


def test_an_assignment_is_on_the_scope_that_its_id_begins_with(calls: Calls) -> None:
    for number, scope in enumerate((f"/subscriptions/{SUBSCRIPTION}", GROUP, f"{GROUP}/providers/{CONTAINER}")):
        answered = calls.put(on(scope, number), assignment(principal(calls), principalType="ServicePrincipal"))
        assert answered["properties"]["scope"] == scope
        assert answered["properties"]["createdOn"] == answered["properties"]["updatedOn"]
    assert calls.put(on(GROUP, 9), assignment(PERSON))["properties"]["principalType"] == "User"


def test_the_same_role_for_the_same_principal_on_the_same_scope_exists_already(calls: Calls) -> None:
    calls.put(on(GROUP), assignment(principal(calls)))
    refused = calls.refusal("PUT", on(GROUP.upper().replace("/SUBSCRIPTIONS", "/subscriptions"), 2), assignment(principal(calls).upper()))
    assert (refused.status, refused.code) == (409, "RoleAssignmentExists")
    calls.put(on(f"{GROUP}/providers/{ACCOUNT}", 2), assignment(principal(calls)))
    calls.put(on(GROUP, 3), assignment(PERSON))


def test_an_assignment_is_put_again_and_never_changed(calls: Calls) -> None:
    made = calls.put(on(GROUP), assignment(principal(calls)))
    assert (
        calls.put(on(GROUP), assignment(principal(calls), description="why"))["properties"]["createdOn"] == made["properties"]["createdOn"]
    )
    for body in (assignment(PERSON), assignment(principal(calls), f"{ROLE}/4633458b-17de-408a-b874-0445c86b69e6")):
        assert calls.refusal("PUT", on(GROUP), body).code == "RoleAssignmentUpdateNotPermitted"


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("not-a-guid", assignment(PERSON), "InvalidRoleAssignmentId"),
        ("00000000-0000-4000-8000-000000000001", assignment("somebody"), "InvalidPrincipalId"),
        ("00000000-0000-4000-8000-000000000001", {"properties": {"principalId": PERSON}}, "InvalidParameter"),
    ],
)
def test_an_assignment_that_names_nobody_or_nothing_is_refused(calls: Calls, name: str, body: dict[str, Any], code: str) -> None:
    assert calls.refusal("PUT", f"{GROUP}/providers/Microsoft.Authorization/roleAssignments/{name}", body).code == code


def test_the_principal_of_a_deleted_identity_is_not_found_until_it_is_made_again(calls: Calls) -> None:
    who = principal(calls)
    calls.put(on(GROUP), assignment(who))
    calls.delete(IDENTITY)
    assert calls.exists(on(GROUP))
    again = calls.rebuilt()
    refused = again.refusal("PUT", on(GROUP, 2), assignment(who, f"{ROLE}/4633458b-17de-408a-b874-0445c86b69e6"))
    assert (refused.status, refused.code) == (400, "PrincipalNotFound")
    assert TENANT in refused.message
    again.put(IDENTITY, {"location": LOCATION})
    again.put(on(GROUP, 2), assignment(who, f"{ROLE}/4633458b-17de-408a-b874-0445c86b69e6"))


def test_an_assignment_goes_with_its_scope(calls: Calls) -> None:
    for number, scope in enumerate((f"{GROUP}/providers/{CONTAINER}", f"{GROUP}/providers/{ACCOUNT}", GROUP)):
        calls.put(on(scope, number), assignment(PERSON))
    calls.delete(CONTAINER)
    assert not calls.exists(on(f"{GROUP}/providers/{CONTAINER}", 0))
    calls.delete(ACCOUNT)
    assert not calls.exists(on(f"{GROUP}/providers/{ACCOUNT}", 1))
    calls.delete(GROUP)
    assert not calls.exists(on(GROUP, 2))


def test_an_assignment_needs_its_scope(calls: Calls) -> None:
    refused = calls.refusal("PUT", on(f"{GROUP}/providers/Microsoft.Storage/storageAccounts/nowhere1"), assignment(PERSON))
    assert refused.code == "ParentResourceNotFound"


def role(name: str = "Rotator") -> dict[str, Any]:
    """Body of a custom role."""
    permissions = [{"actions": ["Microsoft.Compute/virtualMachineScaleSets/*"], "notActions": []}]
    return {"properties": {"roleName": name, "assignableScopes": [f"/subscriptions/{SUBSCRIPTION}"], "permissions": permissions}}


def test_a_custom_role_is_given_like_a_built_in_one_and_stays_while_it_is(calls: Calls) -> None:
    assert calls.put(CUSTOM, role())["properties"]["type"] == "CustomRole"
    calls.put(on(GROUP), assignment(PERSON, CUSTOM))
    refused = calls.refusal("DELETE", CUSTOM)
    assert (refused.status, refused.code) == (409, "RoleDefinitionHasAssignments")
    calls.delete(on(GROUP))
    calls.delete(CUSTOM)
    refused = calls.rebuilt().refusal("PUT", on(GROUP), assignment(PERSON, CUSTOM))
    assert (refused.status, refused.code) == (404, "RoleDefinitionDoesNotExist")


def test_no_two_custom_roles_have_one_name(calls: Calls) -> None:
    calls.put(CUSTOM, role())
    assert calls.refusal("PUT", f"{CUSTOM[:-1]}2", role("rotator")).code == "RoleDefinitionWithSameNameExists"
    assert calls.refusal("PUT", f"{CUSTOM[:-1]}2", {"properties": {"roleName": "x", "assignableScopes": []}}).status == 400


@pytest.mark.parametrize("scope", [f"/subscriptions/{SUBSCRIPTION}", GROUP, f"{GROUP}/providers/{ACCOUNT}"])
def test_a_lock_against_deletion_holds_for_all_below_it_and_what_would_take_it_along(calls: Calls, scope: str) -> None:
    calls.put(f"{scope}/{LOCK}/keep", {"properties": {"level": "CanNotDelete"}})
    for victim in (CONTAINER, ACCOUNT, GROUP):
        refused = calls.refusal("DELETE", victim)
        assert (refused.status, refused.code) == (409, "ScopeLocked")
        assert f"following scope(s) are locked: '{scope}'. Please remove the lock" in refused.message
    calls.put(CONTAINER, {"properties": {"metadata": {"still": "written"}}})
    calls.delete(f"{scope}/{LOCK}/keep")
    calls.delete(ACCOUNT)
    assert not calls.exists(ACCOUNT)


def test_a_read_only_lock_forbids_writes_and_actions_and_no_reads(calls: Calls) -> None:
    calls.put(f"{GROUP}/{LOCK}/still", {"properties": {"level": "ReadOnly"}})
    assert "perform write operation" in calls.refusal("PUT", CONTAINER, {"properties": {"metadata": {}}}).message
    assert "perform write operation" in calls.refusal("PATCH", ACCOUNT, {"tags": {}}).message
    assert "perform action operation" in calls.refusal("POST", ACCOUNT, None, "listKeys").message
    assert "perform write operation" in calls.refusal("PUT", on(GROUP), assignment(PERSON)).message
    assert calls.get(ACCOUNT)["kind"] == "StorageV2"
    calls.put(f"{GROUP.replace(SUBSCRIPTION, OTHER)}/providers/{IDENTITY}", {"location": LOCATION})
    calls.put(f"{GROUP}/{LOCK}/still", {"properties": {"level": "CanNotDelete"}})
    calls.put(on(GROUP), assignment(PERSON))


def test_a_lock_has_one_of_two_levels(calls: Calls) -> None:
    assert calls.refusal("PUT", f"{GROUP}/{LOCK}/odd", {"properties": {"level": "Maybe"}}).status == 400


def test_a_lock_holds_in_a_cloud_that_was_saved(calls: Calls) -> None:
    calls.put(f"{GROUP}/{LOCK}/keep", {"properties": {"level": "CanNotDelete"}})
    assert calls.rebuilt().refusal("DELETE", ACCOUNT).code == "ScopeLocked"


def test_a_resource_has_five_diagnostic_settings_that_go_somewhere(calls: Calls) -> None:
    def setting(number: int) -> str:
        return f"{GROUP}/providers/{ACCOUNT}/providers/Microsoft.Insights/diagnosticSettings/d{number}"

    logs = [{"categoryGroup": "allLogs", "enabled": True}]
    to = {"storageAccountId": f"{GROUP}/providers/{ACCOUNT}"}
    calls.cloud.body_reader = None  # the official SDKs that are here have no model of diagnostic settings
    for number in range(5):
        assert calls.put(setting(number), {"properties": {**to, "logs": logs}})["properties"]["logs"] == logs
    assert "at most 5" in calls.refusal("PUT", setting(5), {"properties": {**to, "logs": logs}}).message
    assert calls.refusal("PUT", setting(0), {"properties": {"logs": logs}}).status == 400
    assert calls.refusal("PUT", setting(0), {"properties": to}).status == 400
    calls.delete(ACCOUNT)
    assert not calls.exists(setting(0))
