"""Storage accounts, their containers and their retention behave as on Azure."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from plain_calls import GROUP, LOCATION, OTHER, SUBSCRIPTION, Calls

ACCOUNT = "Microsoft.Storage/storageAccounts/backups1"
SERVICE = f"{ACCOUNT}/blobServices/default"
CONTAINER = f"{SERVICE}/containers/etcd"
POLICY = f"{CONTAINER}/immutabilityPolicies/default"
LIFECYCLE = f"{ACCOUNT}/managementPolicies/default"


def account(sku: str = "Standard_ZRS", kind: str = "StorageV2", **properties: Any) -> dict[str, Any]:
    """Body of a storage account."""
    return {"location": LOCATION, "kind": kind, "sku": {"name": sku}, "properties": properties}


def days(number: int) -> dict[str, Any]:
    """Body of an immutability policy."""
    return {"properties": {"immutabilityPeriodSinceCreationInDays": number}}


@pytest.fixture
def calls() -> Calls:
    made = Calls()
    made.put(ACCOUNT, account())
    made.put(CONTAINER, {})
    return made


def test_an_account_answers_where_it_is_reached(calls: Calls) -> None:
    answered = calls.get(ACCOUNT)
    services = ("dfs", "web", "blob", "queue", "table", "file")
    assert answered["properties"]["primaryEndpoints"] == {one: f"https://backups1.{one}.core.windows.net/" for one in services}
    assert "secondaryEndpoints" not in answered["properties"]
    assert answered["sku"] == {"name": "Standard_ZRS", "tier": "Standard"}
    assert answered["properties"]["accessTier"] == "Hot"
    read_apart = calls.put("Microsoft.Storage/storageAccounts/apart1", account("Standard_RAGRS"))["properties"]
    assert read_apart["secondaryEndpoints"]["blob"] == "https://apart1-secondary.blob.core.windows.net/"
    files = calls.put("Microsoft.Storage/storageAccounts/files1", account("Premium_ZRS", "FileStorage"))["properties"]
    assert files["primaryEndpoints"] == {"file": "https://files1.file.core.windows.net/"}


def test_a_name_is_taken_in_the_whole_world(calls: Calls) -> None:
    refused = calls.refusal("PUT", f"{GROUP[:-1]}h/providers/{ACCOUNT}", account())
    assert (refused.status, refused.code) == (409, "StorageAccountInAnotherResourceGroup")
    refused = calls.refusal("PUT", f"{GROUP.replace(SUBSCRIPTION, OTHER)}/providers/{ACCOUNT}", account())
    assert (refused.status, refused.code) == (409, "StorageAccountAlreadyTaken")
    calls.delete(ACCOUNT)
    calls.put(f"{GROUP[:-1]}h/providers/{ACCOUNT}", account())


@pytest.mark.parametrize("name", ["ab", "with-hyphen", "Upper1", "a" * 25])
def test_a_name_is_of_small_letters_and_digits(calls: Calls, name: str) -> None:
    assert calls.refusal("PUT", f"Microsoft.Storage/storageAccounts/{name}", account()).code == "AccountNameInvalid"


@pytest.mark.parametrize(
    ("sku", "kind"),
    [("Premium_LRS", "BlobStorage"), ("Standard_LRS", "BlockBlobStorage"), ("Premium_ZRS", "StorageV2"), ("Big", "Storage")],
)
def test_a_kind_has_its_own_skus(calls: Calls, sku: str, kind: str) -> None:
    assert calls.refusal("PUT", "Microsoft.Storage/storageAccounts/odd1", account(sku, kind)).status == 400


def test_what_an_account_is_for_good_is_not_changed(calls: Calls) -> None:
    for body in (account("Standard_LRS"), account("Premium_LRS"), account(isHnsEnabled=True), account("Standard_LRS", "BlobStorage")):
        refused = calls.refusal("PUT", ACCOUNT, body)
        assert (refused.status, refused.code) == (400, "AccountPropertyCannotBeUpdated")
    changed = calls.put(ACCOUNT, account("Standard_GZRS", isHnsEnabled=False, minimumTlsVersion="TLS1_2"))
    assert (changed["sku"]["name"], changed["properties"]["minimumTlsVersion"]) == ("Standard_GZRS", "TLS1_2")


def test_a_region_has_room_for_250_accounts_of_a_subscription(calls: Calls) -> None:
    for number in range(249):
        calls.call("PUT", f"Microsoft.Storage/storageAccounts/filler{number}", account())
    refused = calls.refusal("PUT", "Microsoft.Storage/storageAccounts/onemore", account())
    assert refused.code == "MaxStorageAccountsCountPerSubscriptionExceeded"
    assert "250" in refused.message


def test_keys_are_of_64_bytes_and_made_anew_one_by_one(calls: Calls) -> None:
    first = calls.post(ACCOUNT, "listKeys")["keys"]
    assert [one["keyName"] for one in first] == ["key1", "key2"]
    assert {len(base64.b64decode(one["value"])) for one in first} == {64}
    second = calls.post(ACCOUNT, "regenerateKey", {"keyName": "key2"})["keys"]
    assert second[0] == first[0]
    assert second[1]["value"] != first[1]["value"]
    assert calls.rebuilt().post(ACCOUNT, "listKeys")["keys"] == second
    assert calls.refusal("POST", ACCOUNT, {"keyName": "key3"}, "regenerateKey").status == 400


def test_the_blob_service_comes_with_its_account_and_is_set_back_instead_of_deleted(calls: Calls) -> None:
    assert calls.get(SERVICE)["properties"]["deleteRetentionPolicy"]["enabled"] is False
    retention = {"enabled": True, "days": 30}
    assert calls.put(SERVICE, {"properties": {"deleteRetentionPolicy": retention}})["properties"]["deleteRetentionPolicy"] == retention
    assert calls.refusal("PUT", SERVICE, {"properties": {"deleteRetentionPolicy": {"enabled": True, "days": 366}}}).status == 400
    assert calls.refusal("PUT", f"{ACCOUNT}/blobServices/other", {}).code == "InvalidResourceName"
    calls.delete(SERVICE)
    assert calls.get(SERVICE)["properties"]["deleteRetentionPolicy"]["enabled"] is False
    assert calls.exists(CONTAINER)


@pytest.mark.parametrize("name", ["ab", "Upper", "two--hyphens", "-first", "last-"])
def test_a_container_has_a_name_of_its_own_rule(calls: Calls, name: str) -> None:
    assert calls.refusal("PUT", f"{SERVICE}/containers/{name}", {}).code == "InvalidResourceName"


def test_a_container_is_public_only_where_its_account_allows_it(calls: Calls) -> None:
    body = {"properties": {"publicAccess": "Blob"}}
    refused = calls.refusal("PUT", CONTAINER, body)
    assert (refused.status, refused.code) == (409, "PublicAccessNotPermitted")
    calls.put(ACCOUNT, account(allowBlobPublicAccess=True))
    assert calls.put(CONTAINER, body)["properties"]["publicAccess"] == "Blob"


def test_an_unlocked_retention_grows_shrinks_and_goes(calls: Calls) -> None:
    assert calls.get(CONTAINER)["properties"]["hasImmutabilityPolicy"] is False
    for number in (30, 7):
        assert calls.put(POLICY, days(number))["properties"]["immutabilityPeriodSinceCreationInDays"] == number
    assert calls.get(CONTAINER)["properties"]["immutabilityPolicy"]["properties"]["state"] == "Unlocked"
    assert calls.refusal("POST", POLICY, days(10), "extend").code == "OperationNotAllowed"
    calls.delete(POLICY)
    assert calls.get(CONTAINER)["properties"]["hasImmutabilityPolicy"] is False
    calls.put(POLICY, days(7))
    calls.delete(CONTAINER)
    assert not calls.exists(POLICY)


def test_a_locked_retention_only_grows_and_only_five_times(calls: Calls) -> None:
    calls.put(POLICY, days(7))
    assert calls.post(POLICY, "lock")["properties"]["state"] == "Locked"
    for method, body, action in (("PUT", days(8), ""), ("PUT", days(6), ""), ("DELETE", None, ""), ("POST", None, "lock")):
        assert "with current state" in calls.refusal(method, POLICY, body, action).message
    assert "only grows" in calls.refusal("POST", POLICY, days(6), "extend").message
    for number in range(8, 13):
        calls.post(POLICY, "extend", days(number))
    again = calls.rebuilt()
    assert again.get(POLICY)["properties"]["immutabilityPeriodSinceCreationInDays"] == 12
    assert "at most 5 times" in again.refusal("POST", POLICY, days(13), "extend").message


def test_what_a_locked_retention_holds_is_not_deleted(calls: Calls) -> None:
    calls.put(POLICY, days(7))
    calls.post(POLICY, "lock")
    assert calls.refusal("DELETE", CONTAINER).code == "ContainerImmutabilityPolicyLocked"
    refused = calls.refusal("DELETE", ACCOUNT)
    assert refused.code == "AccountProtectedFromDeletion"
    assert "etcd" in refused.message
    answer = calls.call("DELETE", GROUP)
    calls.cloud.run_until_idle()
    assert answer.operation is not None
    assert answer.operation.status == "Failed"
    assert calls.exists(POLICY)


@pytest.mark.parametrize("number", [0, -1, 146_001])
def test_a_retention_is_of_1_to_146000_days(calls: Calls, number: int) -> None:
    assert calls.refusal("PUT", POLICY, days(number)).code == "InvalidValuesForRequestParameters"


def rules(*names: str) -> dict[str, Any]:
    """Body of a management policy."""
    definition = {"actions": {"baseBlob": {"delete": {"daysAfterCreationGreaterThan": 30}}}, "filters": {"blobTypes": ["blockBlob"]}}
    return {
        "properties": {
            "policy": {"rules": [{"name": one, "type": "Lifecycle", "enabled": True, "definition": definition} for one in names]}
        }
    }


def test_lifecycle_rules_have_names_of_their_own_and_something_to_do(calls: Calls) -> None:
    assert calls.put(LIFECYCLE, rules("expire"))["properties"]["lastModifiedTime"]
    idle = rules("expire")
    idle["properties"]["policy"]["rules"][0]["definition"] = {"actions": {}}
    for body in (rules("a", "a"), rules(), rules(*(f"r{number}" for number in range(101))), idle):
        assert calls.refusal("PUT", LIFECYCLE, body).code == "InvalidValuesForRequestParameters"
    calls.delete(LIFECYCLE)
    calls.put("Microsoft.Storage/storageAccounts/files1", account("Premium_LRS", "FileStorage"))
    refused = calls.refusal("PUT", "Microsoft.Storage/storageAccounts/files1/managementPolicies/default", rules("expire"))
    assert refused.code == "FeatureNotSupportedForAccount"


def test_a_rebuilt_cloud_answers_as_before(calls: Calls) -> None:
    calls.put(POLICY, days(30))
    calls.put(LIFECYCLE, rules("expire"))
    again = calls.rebuilt()
    for one in (ACCOUNT, SERVICE, CONTAINER, POLICY, LIFECYCLE):
        assert again.get(one) == calls.get(one)
