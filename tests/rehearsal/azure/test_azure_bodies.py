"""A body that the type cannot have is refused in Azure's words; any other is kept as it was meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from arm_bodies import BODIES, SCALE_SET, scale_set
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.azure.arm_id import parse
from rehearsal.azure.body_validation import SdkBodyReader, validate_body
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.groups import RESOURCE_TYPES
from rehearsal.azure.resource import Request

GROUP = "/subscriptions/11111111-1111-4111-8111-111111111111/resourceGroups/fleet"
MACHINE, VERSION = "Microsoft.Compute/virtualMachines", "Microsoft.Compute/galleries/images/versions"
TEMPLATE = "Microsoft.VirtualMachineImages/imageTemplates"
UNREADABLE = "The request content was invalid and could not be deserialized: "
INTERFACES = "virtualMachineProfile.networkProfile.networkInterfaceConfigurations"

Change = Callable[[dict[str, Any]], object]


def refusal(change: Change, resource_type: str = SCALE_SET) -> dict[str, Any]:
    body = deepcopy(BODIES[resource_type])
    change(body)
    with pytest.raises(AzureError) as refused:
        validate_body(resource_type, body)
    assert refused.value.status == 400
    return refused.value.body()


def stored_body(change: Change, resource_type: str = SCALE_SET) -> dict[str, Any]:
    body = deepcopy(BODIES[resource_type])
    change(body)
    return validate_body(resource_type, body)


def interface(body: dict[str, Any]) -> dict[str, Any]:
    profile = body["properties"]["virtualMachineProfile"]["networkProfile"]
    only: dict[str, Any] = profile["networkInterfaceConfigurations"][0]
    return only


@pytest.mark.parametrize("resource_type", sorted(BODIES))
def test_a_body_that_fits_is_kept_as_it_is(resource_type: str) -> None:
    assert validate_body(resource_type, BODIES[resource_type]) == BODIES[resource_type]


def test_the_kept_body_is_a_new_one() -> None:
    body = scale_set(2)
    validate_body(SCALE_SET, body)["properties"]["virtualMachineProfile"]["networkProfile"].clear()
    assert body == scale_set(2)


def test_an_unknown_property_at_the_top_is_refused_by_the_resource_manager() -> None:
    assert refusal(lambda body: body.update(foo=1)) == {
        "code": "InvalidRequestContent",
        "message": f"{UNREADABLE}'Could not find member 'foo' on object of type 'ResourceDefinition'. Path 'foo'.'.",
    }


def test_an_unknown_property_further_in_is_refused_by_the_provider_with_its_path() -> None:
    message = refusal(lambda body: interface(body)["properties"]["ipConfigurations"][1]["properties"].update(prefixLength=28))
    place = f"properties.{INTERFACES}[0].properties.ipConfigurations[1].properties.prefixLength"
    member = "Could not find member 'prefixLength' on object of type 'VirtualMachineScaleSetIPConfigurationProperties'"
    assert message["message"] == f"{UNREADABLE}'{member}. Path '{place}'.'."


def test_an_unknown_property_is_refused_even_if_it_is_null() -> None:
    assert refusal(lambda body: body["sku"].update(colour=None))["code"] == "InvalidRequestContent"


def test_a_path_with_a_name_that_is_no_word_has_it_in_brackets() -> None:
    message = refusal(lambda body: body["identity"]["userAssignedIdentities"].update({"/a/b": {"colour": "red"}}))
    assert "Path 'identity.userAssignedIdentities['/a/b'].colour'" in message["message"]


@pytest.mark.parametrize(
    ("value", "found"),
    [("9", "a string"), (True, "a boolean"), ([9], "an array"), ({"n": 9}, "an object"), (9.5, "a number"), (float("nan"), "a number")],
)
def test_a_capacity_that_is_no_whole_number_is_refused(value: object, found: str) -> None:
    message = refusal(lambda body: body["sku"].update(capacity=value))
    assert message == {
        "code": "InvalidRequestContent",
        "message": f"{UNREADABLE}'Error converting {found} to type 'System.Int64'. Path 'sku.capacity'.'.",
    }


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**400])
def test_a_number_beyond_64_bits_is_refused(value: int) -> None:
    assert "too large or small for an Int64. Path 'sku.capacity'" in refusal(lambda body: body["sku"].update(capacity=value))["message"]


def test_a_number_that_is_not_finite_is_refused_where_any_value_may_be() -> None:
    extension = {"name": "health", "properties": {"settings": {"share": [1, float("inf")]}}}
    message = refusal(lambda body: body["properties"]["virtualMachineProfile"].update(extensionProfile={"extensions": [extension]}))
    assert "not finite" in message["message"]
    assert "extensions[0].properties.settings.share[1]" in message["message"]


@pytest.mark.parametrize("value", ["half \ud800", "\udc00"])
def test_half_a_surrogate_pair_is_refused(value: str) -> None:
    for change in (
        lambda body: body["sku"].update(name=value),
        lambda body: body["tags"].update({value: "x"}),
        lambda body: body.update({value: "x"}),
        lambda body: body["properties"]["upgradePolicy"].update(mode=value),
    ):
        message = refusal(change)
        assert message["code"] == "InvalidRequestContent"
        assert json.dumps(message).encode()


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert stored_body(lambda body: body["tags"].update(team="🚀"))["tags"]["team"] == "🚀"


def test_a_secret_of_the_wrong_type_is_not_told_on() -> None:
    message = refusal(lambda body: body["properties"].update(value=123456), "Microsoft.KeyVault/vaults/secrets")
    assert "123456" not in message["message"]


def test_a_value_outside_an_enumeration_is_refused_with_what_may_be() -> None:
    assert refusal(lambda body: body["properties"]["upgradePolicy"].update(mode="Manul")) == {
        "code": "InvalidParameter",
        "message": "The value of parameter upgradePolicy.mode is invalid. 'Manul' is none of Automatic, Manual, Rolling.",
        "target": "upgradePolicy.mode",
    }


def test_a_value_of_an_enumeration_is_kept_in_the_published_capitals() -> None:
    assert (
        stored_body(lambda body: body["properties"]["upgradePolicy"].update(mode="mANUAL"))["properties"]["upgradePolicy"]["mode"]
        == "Manual"
    )


def test_a_size_that_is_newer_than_the_client_is_kept() -> None:
    machine = stored_body(lambda body: body["properties"].update(hardwareProfile={"vmSize": "Standard_ND128isr_GB300_v6"}), MACHINE)
    assert machine["properties"]["hardwareProfile"]["vmSize"] == "Standard_ND128isr_GB300_v6"


def test_a_required_property_that_is_missing_or_null_is_named() -> None:
    expected = {
        "code": "InvalidParameter",
        "message": f"Required parameter '{INTERFACES}[0].name' is missing (null).",
        "target": f"{INTERFACES}[0].name",
    }
    assert refusal(lambda body: interface(body).pop("name")) == expected
    assert refusal(lambda body: interface(body).update(name=None)) == expected


def test_a_body_without_a_location_is_refused_as_the_resource_manager_does() -> None:
    assert refusal(lambda body: body.pop("location"))["code"] == "LocationRequired"


def test_null_is_not_given() -> None:
    assert stored_body(lambda body: body.update(zones=None, tags={"team": None})) == {**BODIES[SCALE_SET], "tags": {}}


def test_a_null_among_items_is_refused() -> None:
    assert (
        "Error converting null to type 'System.String'. Path 'zones[1]'" in refusal(lambda body: body.update(zones=["1", None]))["message"]
    )


def test_names_in_other_capitals_are_kept_in_the_published_ones() -> None:
    body = {"LOCATION": "southcentralus", "SKU": {"Capacity": 2}, "Properties": {"SinglePlacementGroup": False}}
    expected = {"location": "southcentralus", "sku": {"capacity": 2}, "properties": {"singlePlacementGroup": False}}
    assert validate_body(SCALE_SET, body) == expected


def test_what_was_read_may_be_sent_back() -> None:
    def answered(body: dict[str, Any]) -> None:
        body.update(id="/subscriptions/x", type=SCALE_SET, etag='"1"', systemData={"createdBy": "somebody"})
        body["properties"].update(provisioningState="Succeeded", uniqueId="0", timeCreated="2026-01-01T00:00:00Z")
        body["identity"].update(principalId="p", tenantId="t")
        body["identity"]["userAssignedIdentities"] = {"/a/b": {"principalId": "p", "clientId": "c"}}

    expected = {**BODIES[SCALE_SET], "identity": {**BODIES[SCALE_SET]["identity"], "userAssignedIdentities": {"/a/b": {}}}}
    assert stored_body(answered) == expected


def test_a_name_is_kept_so_that_it_can_be_compared_with_the_path() -> None:
    assert stored_body(lambda body: body.update(name="other"))["name"] == "other"


@pytest.mark.parametrize("value", ["2026-01-31", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.1234567+01:00"])
def test_a_date_in_iso_8601_is_kept(value: str) -> None:
    version = stored_body(lambda body: body["properties"]["publishingProfile"].update(endOfLifeDate=value), VERSION)
    assert version["properties"]["publishingProfile"]["endOfLifeDate"] == value


def test_a_date_that_is_none_is_refused() -> None:
    message = refusal(lambda body: body["properties"]["publishingProfile"].update(endOfLifeDate="soon"), VERSION)
    assert "Could not convert string to DateTime" in message["message"]


def test_a_secrets_dates_are_seconds() -> None:
    assert stored_body(lambda body: body["properties"].update(attributes={"exp": 1_800_000_000}), "Microsoft.KeyVault/vaults/secrets")
    message = refusal(lambda body: body["properties"].update(attributes={"exp": "2027-01-15"}), "Microsoft.KeyVault/vaults/secrets")
    assert "Path 'properties.attributes.exp'" in message["message"]


def test_an_object_is_read_as_the_kind_that_it_says_it_is() -> None:
    message = refusal(lambda body: body["properties"]["customize"][0].update(sourceUri="https://example.org/x"), TEMPLATE)
    assert "on object of type 'ImageTemplateShellCustomizer'" in message["message"]


@pytest.mark.parametrize("value", ["Perl", 3, None])
def test_an_object_of_an_unknown_kind_is_refused(value: object) -> None:
    message = refusal(lambda body: body["properties"]["customize"][0].update(type=value), TEMPLATE)
    assert (message["code"], message["target"]) == ("InvalidParameter", "customize[0].type")


@pytest.mark.parametrize("body", [[], "text", 3, True, None, float("nan")])
def test_a_body_that_is_no_object_is_refused(body: object) -> None:
    with pytest.raises(AzureError, match="The request content was invalid") as refused:
        validate_body(SCALE_SET, body)
    assert (refused.value.status, refused.value.code) == (400, "InvalidRequestContent")


@given(st.integers(64, 3_000), st.sampled_from(["circle", "any list", "any object"]))
def test_a_body_that_nests_too_deep_is_refused_however_deep(levels: int, how: str) -> None:
    inner: Any = {}
    for _ in range(levels):
        inner = {"circle": {"properties": {"linkedPublicIPAddress": inner}}, "any list": [inner], "any object": {"x": inner}}[how]
    address = ("Microsoft.Network/publicIPAddresses", inner)
    extension = ("Microsoft.Compute/virtualMachineScaleSets/extensions", {"properties": {"settings": inner}})
    with pytest.raises(AzureError, match="MaxDepth of 64 has been exceeded"):
        validate_body(*(address if how == "circle" else extension))


def test_a_type_without_a_model_is_refused_clearly() -> None:
    with pytest.raises(AzureError, match=r"Microsoft\.Batch/batchAccounts has no model") as refused:
        validate_body("Microsoft.Batch/batchAccounts", {})
    assert refused.value.code == "NotModelled"


def test_the_model_refuses_a_group_with_an_unknown_property_and_keeps_one_in_other_capitals() -> None:
    subscription = parse(GROUP).subscription
    cloud = Cloud(RESOURCE_TYPES, subscriptions=[subscription], tenant="t", body_reader=SdkBodyReader())
    with pytest.raises(AzureError, match="Could not find member 'colour'"):
        cloud.handle(Request("PUT", parse(GROUP), body={"location": "swedencentral", "colour": "red"}))
    assert not cloud.resources
    answer = cloud.handle(Request("PUT", parse(GROUP), body={"Location": "swedencentral", "properties": {"provisioningState": "Failed"}}))
    assert answer.body is not None
    assert (answer.body["location"], answer.body["properties"]) == ("swedencentral", {"provisioningState": "Succeeded"})
