"""Every operation of every modelled type ends as the official client of it expects: statuses, pollers, lists and missing resources."""

from __future__ import annotations

import json
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import AzureError, ResourceNotFoundError
from in_process_clients import OfficialClients, by_key, matching
from one_of_each import (
    ACCOUNT,
    BODIES,
    CONTAINER,
    EPHEMERAL,
    GROUP,
    IMAGE,
    LOCATION,
    MACHINE,
    SCALE_SET,
    SUBSCRIPTION,
    TEMPLATE,
    VAULT,
    ZONE,
)

from rehearsal.azure.api_versions import api_versions
from rehearsal.azure.arm_id import parse
from rehearsal.azure.client_operations import WITHOUT_CLIENT, operation_key, operations, request_key
from rehearsal.azure.registry import RESOURCE_TYPES
from tests.support.client_sources import source_operations

POLICY, JOIN = f"{CONTAINER}/immutabilityPolicies/default", f"{VAULT}/secrets/join"
DELETED = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.KeyVault/locations/{LOCATION}/deletedVaults/gf-node"
INSTANCE = f"{SCALE_SET}/virtualMachines/0"
INTERFACE = f"{INSTANCE}/networkInterfaces/nic"
CONFIGURATION = f"{INTERFACE}/ipConfigurations/one"
PUBLIC = f"{CONFIGURATION}/publicIPAddresses/public"
PATCHES: dict[str, Any] = {
    CONTAINER: {"properties": {"metadata": {"team": "a"}}},
    **{text: {"properties": {"ttl": 60}} for text in BODIES if text.startswith(f"{ZONE}/") and "virtualNetworkLinks" not in text},
}
POWER = ("start", "restart", "powerOff", "deallocate", "start", "redeploy", "reimage")
ACTIONS: tuple[tuple[str, str, Any], ...] = (
    *((SCALE_SET, action, {"instanceIds": ["1"]}) for action in (*POWER, "reimageAll", "manualUpgrade", "reapply")),
    (SCALE_SET, "convertToSinglePlacementGroup", {}),
    (SCALE_SET, "setOrchestrationServiceState", {"serviceName": "AutomaticRepairs", "action": "Suspend"}),
    *((INSTANCE, action, {}) for action in (*POWER, "reimageAll")),
    *((MACHINE, action, {}) for action in (*POWER, "reapply", "powerOff", "generalize") if action != "reimage"),
    (EPHEMERAL, "reimage", {}),
    (ACCOUNT, "listKeys", None),
    (ACCOUNT, "regenerateKey", {"keyName": "key1"}),
    (TEMPLATE, "run", None),
)
READS = (
    *(f"{text}/instanceView" for text in (SCALE_SET, INSTANCE, MACHINE)),
    *(f"{SCALE_SET}/{what}" for what in ("skus", "virtualMachines", "networkInterfaces", "publicIPAddresses")),
    *(
        text
        for one in (INSTANCE, INTERFACE, CONFIGURATION, PUBLIC, f"{TEMPLATE}/runOutputs/out", f"{ZONE}/SOA/@")
        for text in (one, one.rpartition("/")[0])
    ),
)
ROLLING = {
    "properties": {
        "upgradePolicy": {"mode": "Rolling", "rollingUpgradePolicy": {"maxBatchInstancePercent": 50}},
        "virtualMachineProfile": {"osProfile": {"customData": "Ym9vdCE="}},
    }
}


class Driver:
    """Calls of the official clients, whose failures it collects."""

    def __init__(self) -> None:
        self.clients = OfficialClients()
        self.sources = by_key(source_operations())
        self.failures: list[str] = []

    def do(self, method: str, text: str, body: Any = None) -> None:
        """Make every call of the clients that sends a method to a path; without a client, send the request itself."""
        key = operation_key(method, text)
        found = matching(self.sources, method, text)
        if key in WITHOUT_CLIENT or (not found and method != "HEAD"):
            version = api_versions(parse(text).type)[-1]
            status, content, _ = self.clients.adapter.ask(method, f"{text}?api-version={version}", json.dumps(body or {}).encode())
            if status >= 300:
                self.failures.append(f"{key}: {status} {content!r}")
        for operation in found:
            etag = {"etag": self.etag(text), "match_condition": MatchConditions.IfNotModified} if needs_etag(operation.name) else {}
            try:
                self.clients.call(operation, text, body, **etag)
            except (AzureError, TypeError, ValueError) as error:
                self.failures.append(f"{operation.group}.{operation.name}: {error!r:.300}")

    def missing(self) -> None:
        """Delete what is missing, where a client raises the error for what is not found instead of accepting it."""
        for text in reversed(BODIES):
            known = operations().get(request_key("DELETE", parse(text).type))
            if text != GROUP and known is not None and 204 not in known.statuses:
                for operation in matching(self.sources, "DELETE", text):
                    etag = {"etag": "*", "match_condition": MatchConditions.IfPresent} if needs_etag(operation.name) else {}
                    with pytest.raises(ResourceNotFoundError):
                        self.clients.call(operation, text, **etag)

    def begin(self, method: str, text: str, body: Any = None) -> None:
        """Send a request without waiting for its end."""
        version = api_versions(parse("/".join(text.split("/")[:9])).type)[-1]
        assert self.clients.adapter.ask(method, f"{text}?api-version={version}", json.dumps(body or {}).encode())[0] < 300

    def etag(self, text: str) -> str:
        policy = text.removesuffix("/lock").removesuffix("/extend")
        version = api_versions("Microsoft.Storage")[-1]
        return str(self.clients.adapter.ask("GET", f"{policy}?api-version={version}")[2]["ETag"])


def needs_etag(name: str) -> bool:
    return name in ("lock_immutability_policy", "extend_immutability_policy", "delete_immutability_policy")


def lists(text: str) -> list[str]:
    """Paths at which a type is listed: below its parent or its group, and below its subscription."""
    arm_id = parse(text)
    below = [text.rpartition("/")[0]]
    return below if len(arm_id.names) > 1 else [*below, f"/subscriptions/{SUBSCRIPTION}/providers/{arm_id.type}"]


def create(driver: Driver) -> None:
    """Create, update and read a resource of every type, and list it."""
    for _ in ("create", "update"):
        for text, body in BODIES.items():
            driver.do("PUT", text, body)
    for text in BODIES:
        if request_key("PATCH", parse(text).type) in operations() or text in PATCHES:
            driver.do("PATCH", text, PATCHES.get(text, {"tags": {"team": "a"}}))
        driver.do("GET", text)
        for path in lists(text):
            if matching(driver.sources, "GET", path):
                driver.do("GET", path)
    driver.do("HEAD", GROUP)


def act(driver: Driver) -> None:
    """Call every action, and read what only actions change."""
    driver.do("PUT", INSTANCE, {"location": LOCATION, "properties": {"protectionPolicy": {"protectFromScaleIn": True}}})
    for text, action, body in ACTIONS:
        driver.do("POST", f"{text}/{action}", body)
    for text in READS:
        driver.do("GET", text)
    driver.begin("POST", f"{TEMPLATE}/run")
    driver.do("POST", f"{TEMPLATE}/cancel")
    driver.begin("PATCH", SCALE_SET, ROLLING)
    driver.clients.adapter.live.clock.move(10.0)
    driver.do("GET", f"{SCALE_SET}/rollingUpgrades/latest")
    driver.do("POST", f"{SCALE_SET}/rollingUpgrades/cancel")
    for action in ("osRollingUpgrade", "extensionRollingUpgrade"):
        driver.do("POST", f"{SCALE_SET}/{action}")
    driver.do("DELETE", INSTANCE)
    driver.do("POST", f"{SCALE_SET}/delete", {"instanceIds": ["1"]})


def delete(driver: Driver) -> None:
    """Delete everything twice."""
    for version in driver.clients.adapter.live.cloud.list(IMAGE, "Microsoft.Compute/galleries/images/versions"):
        if version.id.text not in BODIES:
            driver.do("DELETE", version.id.text)
    for text in reversed(BODIES):
        known = operations().get(request_key("DELETE", parse(text).type))
        for _ in range(2 if known is not None and 204 in known.statuses else 1):
            driver.do("DELETE", text)
    driver.do("GET", DELETED)
    driver.do("GET", f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.KeyVault/deletedVaults")
    driver.do("POST", f"{DELETED}/purge")


@pytest.fixture(scope="module")
def driver() -> Driver:
    """A driver after every operation, in an order in which all can succeed."""
    driver = Driver()
    create(driver)
    act(driver)
    delete(driver)
    for text in (GROUP, ACCOUNT, CONTAINER, POLICY):
        driver.do("PUT", text, BODIES[text])
    driver.do("POST", f"{POLICY}/lock")
    driver.do("POST", f"{POLICY}/extend", {"properties": {"immutabilityPeriodSinceCreationInDays": 9}})
    return driver


def test_every_call_of_an_official_client_succeeds(driver: Driver) -> None:
    assert "\n".join(driver.failures) == ""


def test_what_is_missing_is_not_found_where_the_client_accepts_no_204() -> None:
    made = Driver()
    for text in (GROUP, ACCOUNT, CONTAINER):
        made.do("PUT", text, BODIES[text])
    made.missing()
    assert made.failures == []


def test_every_status_is_one_that_the_client_accepts_and_polled_operations_have_their_headers(driver: Driver) -> None:
    answered = driver.clients.adapter.answered
    known = operations()
    assert [one for one in answered if one[0] in known and one[1] not in known[one[0]].statuses] == []
    begun = [one for one in answered if "Azure-AsyncOperation" in one[2]]
    assert {one[1] for one in begun} == {200, 201, 202}
    assert [
        one
        for one in begun
        if not known[one[0]].polled or "Location" not in one[2] or not {"Retry-After", "retry-after-ms"} & one[2].keys()
    ] == []


def test_no_operation_of_a_modelled_type_is_left_out(driver: Driver) -> None:
    called = {key for key, _, _ in driver.clients.adapter.answered}
    wanted = {
        request_key(method, kind.type, action)
        for kind in RESOURCE_TYPES
        for method, actions in (("GET", ("", *kind.gets)), ("POST", kind.actions), *((one, ("",)) for one in ("PUT", "PATCH", "DELETE")))
        for action in actions
    }
    assert "\n".join(sorted(wanted & operations().keys() - called)) == ""
