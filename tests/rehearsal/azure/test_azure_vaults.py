"""Key vaults, including deleted ones, behave as on Azure."""

from __future__ import annotations

from typing import Any

import pytest
from plain_calls import GROUP, LOCATION, OTHER, SUBSCRIPTION, TENANT, Calls
from vault_bodies import DAY, SECRET, VAULT, calls_with_vault, held, secret, vault

from rehearsal.azure.vaults import data_plane, deleted_vaults, vault_named

DELETED = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.KeyVault/locations/{LOCATION}/deletedVaults/gf-node"


@pytest.fixture
def calls() -> Calls:
    return calls_with_vault()


def test_a_vault_answers_where_it_is_reached_and_what_was_not_said(calls: Calls) -> None:
    properties = calls.get(VAULT)["properties"]
    assert properties["vaultUri"] == "https://gf-node.vault.azure.net/"
    assert (properties["enableSoftDelete"], properties["softDeleteRetentionInDays"]) == (True, 30)
    assert properties["publicNetworkAccess"] == "Enabled"
    assert properties["provisioningState"] == "Succeeded"
    assert vault_named(calls.cloud, "GF-node") is held(calls)


@pytest.mark.parametrize("name", ["ab", "1abc", "ends-", "two--hyphens", "a" * 25])
def test_a_vault_has_a_name_of_azures_rule(calls: Calls, name: str) -> None:
    assert calls.refusal("PUT", f"Microsoft.KeyVault/vaults/{name}", vault()).code in ("VaultNameNotValid", "InvalidResourceName")


def test_a_vault_name_is_taken_in_the_whole_world(calls: Calls) -> None:
    for group in (GROUP[:-1] + "h", GROUP.replace(SUBSCRIPTION, OTHER)):
        error = calls.refusal("PUT", f"{group}/providers/{VAULT}", vault())
        assert (error.status, error.code) == (409, "VaultAlreadyExists")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (vault(softDeleteRetentionInDays=6), "7 to 90"),
        (vault(softDeleteRetentionInDays=91), "7 to 90"),
        (vault(enablePurgeProtection=False), '"enablePurgeProtection" cannot be set to false'),
        (vault(enableSoftDelete=False), "cannot be taken back"),
        (vault(tenantId="11111111-2222-4333-8444-555555555555"), "tenantId"),
        (vault(networkAcls={"defaultAction": "Maybe"}), "defaultAction"),
    ],
)
def test_a_vault_that_could_not_be_meant_is_refused(calls: Calls, body: dict[str, Any], told: str) -> None:
    error = calls.refusal("PUT", "Microsoft.KeyVault/vaults/another", body)
    assert error.status == 400
    assert told in error.message


def test_what_protects_a_vault_is_never_taken_back(calls: Calls) -> None:
    assert "can't be modified" in calls.refusal("PUT", VAULT, vault(softDeleteRetentionInDays=60)).message
    calls.put(VAULT, vault(enablePurgeProtection=True))
    properties = calls.put(VAULT, vault())["properties"]
    assert (properties["enablePurgeProtection"], properties["softDeleteRetentionInDays"]) == (True, 30)
    assert calls.refusal("PUT", VAULT, vault(enablePurgeProtection=False)).status == 400


def test_a_deleted_vault_keeps_its_name_and_comes_back_with_its_secrets_when_it_is_recovered(calls: Calls) -> None:
    calls.put(VAULT, vault(enableRbacAuthorization=True, networkAcls={"defaultAction": "Deny", "bypass": "AzureServices"}))
    before = calls.get(VAULT)
    calls.put(SECRET, secret("one"))
    calls.put(SECRET, secret("two"))
    data_plane.set_secret(calls.cloud, held(calls), "gone", {"value": "x"})
    data_plane.delete_secret(calls.cloud, held(calls), "gone")
    calls.delete(VAULT)
    assert not calls.exists(VAULT)
    assert not calls.exists(SECRET)
    again = calls.rebuilt()
    error = again.refusal("PUT", VAULT, vault())
    assert (error.status, error.code) == (409, "ConflictError")
    assert error.message.startswith("A vault with the same name already exists in deleted state. You need to either recover or purge")
    again.put(
        VAULT, {"location": LOCATION, "properties": {"createMode": "recover", "tenantId": TENANT, "sku": before["properties"]["sku"]}}
    )
    assert {**again.get(VAULT), "systemData": None} == {**before, "systemData": None}
    assert data_plane.get_secret(again.cloud, held(again), "join")["value"] == "two"
    assert len(data_plane.list_versions(again.cloud, held(again), "join").value) == 2
    assert [one["id"] for one in data_plane.list_deleted(held(again)).value] == ["https://gf-node.vault.azure.net/secrets/gone"]
    assert not again.exists(DELETED)


def test_a_deleted_vault_is_told_of_until_it_is_purged(calls: Calls) -> None:
    calls.delete(VAULT)
    body = calls.get(DELETED)["properties"]
    assert body["vaultId"] == f"{GROUP}/providers/{VAULT}"
    assert body["location"] == LOCATION
    assert body["purgeProtectionEnabled"] is False
    assert [one.id.name for one in deleted_vaults(calls.cloud, SUBSCRIPTION)] == ["gf-node"]
    assert not list(deleted_vaults(calls.cloud, OTHER))
    assert calls.refusal("DELETE", DELETED).status == 405
    calls.cloud.body_reader = None  # no client has a model of a body for it
    assert calls.refusal("PUT", DELETED, {}).status == 405
    calls.post(DELETED, "purge")
    assert not calls.exists(DELETED)
    calls.put(VAULT, vault())
    assert not calls.exists(SECRET)


def test_a_protected_vault_is_purged_by_time_alone(calls: Calls) -> None:
    calls.put(VAULT, vault(enablePurgeProtection=True))
    calls.delete(VAULT)
    error = calls.refusal("POST", DELETED, None, "purge")
    assert (error.code, error.message) == ("MethodNotAllowed", "Operation 'DeletedVaultPurge' is not allowed.")
    again = calls.rebuilt()
    again.cloud.advance(again.cloud.now + 29 * DAY)
    assert again.exists(DELETED)
    again.cloud.advance(again.cloud.now + 2 * DAY)
    assert not again.exists(DELETED)
    again.put(VAULT, vault())


def test_a_deleted_vault_is_in_the_way_of_others_and_recovered_only_where_it_was(calls: Calls) -> None:
    calls.delete(VAULT)
    elsewhere = f"{GROUP.replace(SUBSCRIPTION, OTHER)}/providers/{VAULT}"
    assert calls.refusal("PUT", elsewhere, vault()).code == "VaultAlreadyExists"
    for where, body in (
        (elsewhere, vault(createMode="recover")),
        (f"{GROUP[:-1]}h/providers/{VAULT}", vault(createMode="recover")),
        (VAULT, {**vault(createMode="recover"), "location": "southcentralus"}),
        ("Microsoft.KeyVault/vaults/never-was", vault(createMode="recover")),
    ):
        error = calls.refusal("PUT", where, body)
        assert (error.status, error.code) == (404, "SoftDeletedVaultDoesNotExist")


def test_the_vaults_of_a_deleted_group_are_deleted_vaults_too(calls: Calls) -> None:
    calls.put(SECRET, secret("one"))
    calls.delete(GROUP)
    assert calls.exists(DELETED)
    calls.put(GROUP, {"location": LOCATION})
    calls.put(VAULT, vault(createMode="recover"))
    assert data_plane.get_secret(calls.cloud, held(calls), "join")["value"] == "one"


def test_a_vault_deleted_twice_is_purged_at_the_second_time(calls: Calls) -> None:
    calls.delete(VAULT)
    calls.cloud.advance(calls.cloud.now + 20 * DAY)
    calls.put(VAULT, vault(createMode="recover"))
    calls.delete(VAULT)
    calls.cloud.advance(calls.cloud.now + 20 * DAY)
    assert calls.exists(DELETED)
