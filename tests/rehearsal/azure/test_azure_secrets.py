"""Secrets behave as on Azure, whether Azure Resource Manager or the vault itself writes them."""

from __future__ import annotations

import pytest
from plain_calls import Calls
from vault_bodies import DAY, SECRET, VAULT, calls_with_vault, held, refused, secret, vault

from rehearsal.azure.vaults import data_plane


@pytest.fixture
def calls() -> Calls:
    return calls_with_vault()


def test_a_secret_written_through_arm_is_answered_without_its_value(calls: Calls) -> None:
    answered = calls.put(SECRET, secret("one", contentType="text/plain", attributes={"enabled": True, "exp": 1893456000}))
    assert "value" not in answered["properties"]
    assert answered["properties"]["secretUri"] == "https://gf-node.vault.azure.net/secrets/join"
    assert answered["properties"]["attributes"]["exp"] == 1893456000
    first = answered["properties"]["secretUriWithVersion"]
    assert calls.put(SECRET, secret("one", contentType="text/csv"))["properties"]["secretUriWithVersion"] == first
    assert calls.put(SECRET, secret("two"))["properties"]["secretUriWithVersion"] != first
    bundle = data_plane.get_secret(calls.cloud, held(calls), "join", first.rpartition("/")[2])
    assert (bundle["value"], bundle["contentType"], bundle["id"]) == ("one", "text/csv", first)
    assert data_plane.get_secret(calls.cloud, held(calls), "join")["value"] == "two"


def test_a_patched_secret_keeps_its_value_and_its_version(calls: Calls) -> None:
    first = calls.put(SECRET, secret("one"))["properties"]["secretUriWithVersion"]
    calls.settled(calls.call("PATCH", SECRET, {"tags": {"why": "rotation"}}))
    patched = calls.get(SECRET)
    assert (patched["tags"], patched["properties"]["secretUriWithVersion"]) == ({"why": "rotation"}, first)


@pytest.mark.parametrize("name", ["under_score", "a" * 128])
def test_a_secret_has_a_name_of_letters_digits_and_hyphens(calls: Calls, name: str) -> None:
    assert calls.refusal("PUT", f"{VAULT}/secrets/{name}", secret("x")).status == 400


def test_a_secret_needs_a_vault_and_a_value_that_fits(calls: Calls) -> None:
    assert calls.refusal("PUT", "Microsoft.KeyVault/vaults/nowhere/secrets/join", secret("x")).code == "ParentResourceNotFound"
    assert calls.refusal("PUT", SECRET, {"properties": {}}).status == 400
    assert calls.refusal("PUT", SECRET, secret("ü" * 12_501)).code == "BadParameter"
    calls.put(SECRET, secret("x" * 25_000))


def test_both_faces_see_the_same_secret(calls: Calls) -> None:
    bundle = data_plane.set_secret(calls.cloud, held(calls), "join", {"value": "one", "tags": {"a": "b"}, "attributes": {"nbf": 1}})
    assert bundle["attributes"]["recoveryLevel"] == "CustomizedRecoverable+Purgeable"
    assert bundle["attributes"]["recoverableDays"] == 30
    answered = calls.get(SECRET)
    assert (answered["properties"]["secretUriWithVersion"], answered["tags"]) == (bundle["id"], {"a": "b"})
    again = data_plane.set_secret(calls.cloud, held(calls), "JOIN", {"value": "one"})
    assert again["id"] != bundle["id"]
    assert calls.get(SECRET)["properties"]["secretUriWithVersion"] == again["id"]
    assert "tags" not in calls.get(SECRET)


def test_a_secret_that_is_not_there_is_not_found(calls: Calls) -> None:
    for call, args in (
        (data_plane.get_secret, ("none",)),
        (data_plane.list_versions, ("none",)),
        (data_plane.delete_secret, ("none",)),
        (data_plane.update_secret, ("none", "", {})),
        (data_plane.recover_secret, ("none",)),
    ):
        error = refused(call, calls.cloud, held(calls), *args)
        assert (error.status, error.code) == (404, "SecretNotFound")
    data_plane.set_secret(calls.cloud, held(calls), "join", {"value": "one"})
    assert refused(data_plane.get_secret, calls.cloud, held(calls), "join", "0" * 32).code == "SecretNotFound"
    assert refused(data_plane.purge_secret, held(calls), "join").code == "SecretNotFound"
    assert refused(data_plane.get_deleted, held(calls), "join").code == "SecretNotFound"


def test_a_secret_without_a_value_is_refused_by_the_vault(calls: Calls) -> None:
    assert refused(data_plane.set_secret, calls.cloud, held(calls), "join", {}).code == "BadParameter"
    assert refused(data_plane.set_secret, calls.cloud, held(calls), "join", {"value": 1}).code == "BadParameter"
    tags = {str(number): "" for number in range(16)}
    assert refused(data_plane.set_secret, calls.cloud, held(calls), "join", {"value": "x", "tags": tags}).code == "BadParameter"


def test_a_disabled_secret_is_not_read_until_it_is_enabled(calls: Calls) -> None:
    data_plane.set_secret(calls.cloud, held(calls), "join", {"value": "one"})
    data_plane.update_secret(calls.cloud, held(calls), "join", "", {"attributes": {"enabled": False}, "contentType": "text/plain"})
    error = refused(data_plane.get_secret, calls.cloud, held(calls), "join")
    assert (error.status, error.code) == (403, "Forbidden")
    assert error.body()["innererror"] == {"code": "SecretDisabled"}
    assert calls.get(SECRET)["properties"]["attributes"]["enabled"] is False
    data_plane.update_secret(calls.cloud, held(calls), "join", "", {"attributes": {"enabled": True}})
    assert data_plane.get_secret(calls.cloud, held(calls), "join")["contentType"] == "text/plain"


def test_a_deleted_secret_keeps_its_name_until_it_is_recovered_or_purged(calls: Calls) -> None:
    data_plane.set_secret(calls.cloud, held(calls), "join", {"value": "one"})
    result = data_plane.delete_secret(calls.cloud, held(calls), "join")
    assert result["scheduledPurgeDate"] - result["deletedDate"] == 30 * DAY
    assert result["recoveryId"] == "https://gf-node.vault.azure.net/deletedsecrets/join"
    assert data_plane.get_deleted(held(calls), "join") == result
    assert not calls.exists(SECRET)
    error = calls.refusal("PUT", SECRET, secret("two"))
    assert (error.status, error.code, error.body()["innererror"]["code"]) == (409, "Conflict", "ObjectIsDeletedButRecoverable")
    assert refused(data_plane.set_secret, calls.cloud, held(calls), "Join", {"value": "two"}).code == "Conflict"
    data_plane.recover_secret(calls.cloud, held(calls), "join")
    assert data_plane.get_secret(calls.cloud, held(calls), "join")["value"] == "one"
    calls.delete(SECRET)
    data_plane.purge_secret(held(calls), "join")
    calls.put(SECRET, secret("two"))


def test_a_protected_vault_lets_time_alone_purge_a_secret(calls: Calls) -> None:
    calls.put(VAULT, vault(enablePurgeProtection=True))
    calls.put(SECRET, secret("one"))
    calls.delete(SECRET)
    error = refused(data_plane.purge_secret, held(calls), "join")
    assert (error.status, error.code) == (403, "Forbidden")
    assert "purge protection is enabled for this vault" in error.message
    again = calls.rebuilt()
    again.cloud.advance(again.cloud.now + 31 * DAY)
    again.put(SECRET, secret("two"))


def test_a_secret_recovered_in_time_is_not_purged_for_its_first_deletion(calls: Calls) -> None:
    calls.put(SECRET, secret("one"))
    calls.delete(SECRET)
    calls.cloud.advance(calls.cloud.now + 20 * DAY)
    data_plane.recover_secret(calls.cloud, held(calls), "join")
    calls.delete(SECRET)
    calls.cloud.advance(calls.cloud.now + 20 * DAY)
    assert data_plane.get_deleted(held(calls), "join")["deletedDate"] > 0
    calls.cloud.advance(calls.cloud.now + 11 * DAY)
    assert refused(data_plane.get_deleted, held(calls), "join").code == "SecretNotFound"


def test_lists_come_in_pages_of_at_most_25(calls: Calls) -> None:
    for number in range(30):
        data_plane.set_secret(calls.cloud, held(calls), f"s{number:02d}", {"value": "x"})
        data_plane.set_secret(calls.cloud, held(calls), "many", {"value": str(number)})
    first = data_plane.list_secrets(calls.cloud, held(calls))
    assert (len(first.value), first.next) == (25, 25)
    assert first.value[0]["id"] == "https://gf-node.vault.azure.net/secrets/many"
    second = data_plane.list_secrets(calls.cloud, held(calls), 25)
    assert (len(second.value), second.next) == (6, None)
    assert not any("value" in one for one in (*first.value, *second.value))
    assert data_plane.list_versions(calls.cloud, held(calls), "many", 0, 100).next == 25
    assert len(data_plane.list_versions(calls.cloud, held(calls), "many", 25, 3).value) == 3
    for number in range(30):
        data_plane.delete_secret(calls.cloud, held(calls), f"s{number:02d}")
    assert data_plane.list_deleted(held(calls), 0, 10).next == 10


def test_a_rebuilt_cloud_has_the_same_secrets(calls: Calls) -> None:
    for value in ("one", "two"):
        calls.put(SECRET, secret(value))
    calls.put(f"{VAULT}/secrets/other", secret("x"))
    calls.delete(f"{VAULT}/secrets/other")
    again = calls.rebuilt()
    for call in (data_plane.get_secret, data_plane.list_versions):
        assert call(again.cloud, held(again), "join") == call(calls.cloud, held(calls), "join")
    assert data_plane.list_deleted(held(again)) == data_plane.list_deleted(held(calls))
    assert again.get(SECRET) == calls.get(SECRET)
