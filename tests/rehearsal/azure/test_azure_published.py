"""The check of answered bodies finds what Azure would not answer, and takes what it would."""

from __future__ import annotations

from typing import Any

import pytest
from arm_bodies import BODIES, SCALE_SET
from azure_types import UnknownResourceTypeError
from published import answer_faults, needs_published_types, sent_faults

pytestmark = needs_published_types
VAULT_SECRETS = "Microsoft.KeyVault/vaults/secrets"


def answered(**more: Any) -> dict[str, Any]:
    """A scale set as a GET answers it."""
    body = BODIES[SCALE_SET]
    properties = {**body["properties"], "provisioningState": "Succeeded", "uniqueId": "u", "timeCreated": "2026-01-01T00:00:00Z"}
    profile = properties["virtualMachineProfile"]
    shown = {key: item for key, item in profile["osProfile"].items() if key != "customData"}
    properties["virtualMachineProfile"] = {**profile, "osProfile": shown}
    known = {"id": "/subscriptions/s", "name": "set", "type": SCALE_SET}
    return {**body, **known, "properties": properties, **more}


@pytest.mark.parametrize("version", ["", "2024-11-01", "2026-04-01"])
def test_a_scale_set_as_azure_answers_it_fits(version: str) -> None:
    assert answer_faults(SCALE_SET, version, answered()) == []


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"colour": "red"}, f"{SCALE_SET}.colour: unknown to {SCALE_SET}"),
        ({"sku": {"capacity": "2"}}, f"{SCALE_SET}.sku.capacity: str where integer is wanted"),
        ({"type": "Microsoft.Compute/other"}, f"{SCALE_SET}.type: 'Microsoft.Compute/other' must be '{SCALE_SET}'"),
    ],
)
def test_an_answer_that_does_not_fit_is_told(more: dict[str, Any], fault: str) -> None:
    assert answer_faults(SCALE_SET, "", answered(**more)) == [fault]


def test_an_answer_without_what_is_required_is_told() -> None:
    body = answered()
    del body["location"]
    assert answer_faults(SCALE_SET, "", body) == [f"{SCALE_SET}.location: missing, but required"]


def test_what_only_azure_sets_may_be_answered_and_not_sent() -> None:
    body = {"name": "s", "properties": {"secretUri": "https://kv.vault.azure.net/secrets/s"}}
    assert answer_faults(VAULT_SECRETS, "", body) == []
    assert sent_faults(VAULT_SECRETS, "", body) == [f"{VAULT_SECRETS}.properties.secretUri: set, but read-only"]


def test_a_version_without_a_file_is_told() -> None:
    with pytest.raises(UnknownResourceTypeError, match="2019-01-01"):
        answer_faults(SCALE_SET, "2019-01-01", answered())
