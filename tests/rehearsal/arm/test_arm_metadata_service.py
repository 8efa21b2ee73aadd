"""Each machine's metadata service: who it is, what will happen to it, and tokens of its identities."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import jwt
import pytest
from arm_server import LOCATION, ArmServer, arm_server
from azure.identity import CredentialUnavailableError, ManagedIdentityCredential
from azure.mgmt.resource.resources import ResourceManagementClient
from fleet_made import make_by_hand, make_network, scale_set
from scale_sets_made import HEALTH

METADATA = {"Metadata": "true"}
IDENTITIES, COMPUTE = "api-version=2024-11-30", "api-version=2026-04-01"
NOTIFIED = {"scheduledEventsProfile": {"terminateNotificationProfile": {"enable": True, "notBeforeTimeout": "PT15M"}}}


@pytest.fixture(scope="module")
def group(server: ArmServer) -> str:
    return f"/subscriptions/{server.subscription}/resourceGroups/metadata"


@pytest.fixture(scope="module")
def identity(server: ArmServer, group: str) -> dict[str, Any]:
    """A user-assigned identity, as Azure Resource Manager answers it."""
    server.resources().resource_groups.create_or_update("metadata", {"location": LOCATION})
    path = f"{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nodes?{IDENTITIES}"
    server.ask("PUT", path, {"location": LOCATION}, token=server.token())
    server.ask("POST", "/admin/clock", {"settle": True}, token=server.token())
    body: dict[str, Any] = server.ask("GET", path, token=server.token())[1]
    return body


@pytest.fixture(scope="module")
def machine(server: ArmServer, group: str, identity: dict[str, Any]) -> str:
    """Resource id of the second instance of a set."""
    subnet = make_network(server, "metadata")
    body = scale_set(subnet, 3, addresses=4)
    body |= {"identity": {"type": "UserAssigned", "userAssignedIdentities": {identity["id"]: {}}}, "tags": {"pool": "cpu"}}
    server.compute().virtual_machine_scale_sets.begin_create_or_update("metadata", "pool", body).result()
    return f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/pool/virtualMachines/1"


def test_the_document_says_who_the_machine_is_and_which_addresses_it_has(server: ArmServer, machine: str) -> None:
    url = f"{server.metadata}{machine}/metadata/instance?api-version=2021-12-13"
    status, body, _ = server.ask("GET", url, headers=METADATA)
    assert status == 200
    compute = body["compute"]
    assert (compute["name"], compute["vmScaleSetName"], compute["resourceGroupName"]) == ("pool_1", "pool", "metadata")
    assert (compute["resourceId"], compute["subscriptionId"]) == (machine, server.subscription)
    assert (compute["vmSize"], compute["location"], compute["tags"]) == ("Standard_D2s_v5", LOCATION, "pool:cpu")
    assert compute["osProfile"]["computerName"] == "node-000001"
    (card,) = body["network"]["interface"]
    addresses = [ipaddress.ip_address(one["privateIpAddress"]) for one in card["ipv4"]["ipAddress"]]
    subnet = ipaddress.ip_network("{address}/{prefix}".format(**card["ipv4"]["subnet"][0]))
    assert len(set(addresses)) == 4
    assert all(one in subnet for one in addresses)
    assert server.ask("GET", f"{server.base}/imds{machine}/metadata/instance?api-version=2021-12-13", headers=METADATA)[1] == body


def test_a_part_of_the_document_is_answered_as_text_where_it_is_a_value(server: ArmServer, machine: str) -> None:
    base = f"{server.metadata}{machine}/metadata/instance"
    query = "?api-version=2021-02-01&format=text"
    assert server.ask("GET", f"{base}/compute/vmScaleSetName{query}", headers=METADATA)[1] == "pool"
    first = server.ask("GET", f"{base}/network/interface/0/ipv4/ipAddress/0/privateIpAddress{query}", headers=METADATA)[1]
    assert ipaddress.ip_address(first)
    assert server.ask("GET", f"{base}/network{query}", headers=METADATA)[1] == "interface/"
    assert server.ask("GET", f"{base}/compute/nothing{query}", headers=METADATA)[0] == 404


@pytest.mark.parametrize(
    ("tail", "headers", "status", "told"),
    [
        ("instance?api-version=2021-02-01", {}, 400, "Required metadata header"),
        ("instance?api-version=2021-02-01", {**METADATA, "X-Forwarded-For": "1.2.3.4"}, 400, "X-Forwarded-For"),
        ("instance", METADATA, 400, "api-version was not specified"),
        ("instance?api-version=1999-01-01", METADATA, 400, "not known"),
        ("nothing?api-version=2021-02-01", METADATA, 404, "Not found"),
        ("identity/oauth2/token?api-version=2018-02-01", METADATA, 400, "invalid_request"),
    ],
)
def test_what_the_service_is_not_asked_rightly_it_refuses(
    server: ArmServer, machine: str, tail: str, headers: dict[str, str], status: int, told: str
) -> None:
    answer = server.ask("GET", f"{server.metadata}{machine}/metadata/{tail}", headers=headers)
    assert answer[0] == status
    assert told in answer[1]["error"]


def test_a_machine_that_is_not_there_has_no_service(server: ArmServer, machine: str, group: str) -> None:
    query = "metadata/instance?api-version=2021-02-01"
    for text in (f"{machine}7", group, "/nonsense", ""):
        assert server.ask("GET", f"{server.metadata}{text}/{query}", headers=METADATA)[0] == 404


def test_without_tls_there_is_the_metadata_service_alone(server: ArmServer) -> None:
    base = server.metadata.removesuffix("/imds")
    assert server.ask("GET", f"{base}/subscriptions?api-version=2024-11-01", token=server.token())[0] == 404
    assert server.ask("GET", f"{base}/healthz")[0] == 404


def test_a_managed_identity_signs_in_from_the_machine_and_lists_groups(
    server: ArmServer, machine: str, identity: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", f"{server.metadata}{machine}")
    for chosen in ({}, {"client_id": identity["properties"]["clientId"]}, {"identity_config": {"msi_res_id": identity["id"]}}):
        credential = ManagedIdentityCredential(**chosen)
        claims = jwt.decode(credential.get_token("https://management.azure.com/.default").token, options={"verify_signature": False})
        assert claims["appid"] == identity["properties"]["clientId"]
        assert claims["oid"] == identity["properties"]["principalId"]
    scopes = [f"{server.base}/.default"]
    client = ResourceManagementClient(
        credential, server.subscription, base_url=server.base, credential_scopes=scopes, connection_verify=server.authority
    )
    assert "metadata" in [one.name for one in client.resource_groups.list()]


def test_an_identity_that_the_machine_does_not_have_gives_no_token(
    server: ArmServer, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", f"{server.metadata}{machine}")
    with pytest.raises(CredentialUnavailableError, match="Identity not found"):
        ManagedIdentityCredential(client_id="11111111-1111-1111-1111-111111111111").get_token("https://vault.azure.net/.default")


def test_a_machine_approves_its_own_termination_and_is_gone(tmp_path: Path) -> None:
    with arm_server(tmp_path / "state", clock="manual", keep=False) as server:
        token = server.token()
        pool = make_by_hand(server, "still", 3, NOTIFIED)
        assert server.ask("POST", f"{pool}/delete?{COMPUTE}", {"instanceIds": ["2"]}, token=token)[0] == 202
        _approve(server, f"{server.metadata}{pool}/virtualMachines/1/metadata/scheduledevents?api-version=2020-07-01")
        server.ask("POST", "/admin/clock", {"settle": True}, token=token)
        _, body, _ = server.ask("GET", f"{pool}/virtualMachines?{COMPUTE}", token=token)
        assert [one["instanceId"] for one in body["value"]] == ["0", "1"]


def _approve(server: ArmServer, url: str) -> None:
    """Find the termination that is announced, send approvals that cannot be meant, and then a good one."""
    _, body, _ = server.ask("GET", url, headers=METADATA)
    (event,) = body["Events"]
    assert (event["EventType"], event["EventStatus"], event["Resources"]) == ("Terminate", "Scheduled", ["pool_2"])
    for wrong in ({}, {"StartRequests": []}, {"StartRequests": [{"EventId": "x"}]}, {"StartRequests": [{"EventId": event["EventId"]}, {}]}):
        assert server.ask("POST", url, wrong, headers=METADATA)[0] == 400
    assert server.ask("GET", url, headers=METADATA)[1] == body
    assert server.ask("POST", url, {"StartRequests": [{"EventId": event["EventId"]}]}, headers=METADATA)[0] == 200


def test_the_admin_reports_a_machines_health_and_refuses_what_it_cannot_report(server: ArmServer, machine: str) -> None:
    token = server.token()
    status, result, _ = server.ask("POST", "/admin/health", {"id": machine, "health": "Unhealthy"}, token=token)
    assert (status, result["error"]["target"]) == (400, "health")
    subnet = make_network(server, "metadata")
    body = scale_set(subnet, 2)
    body["properties"]["virtualMachineProfile"]["extensionProfile"] = {"extensions": [HEALTH]}
    client = server.compute()
    client.virtual_machine_scale_sets.begin_create_or_update("metadata", "sick", body).result()
    one = machine.replace("/pool/", "/sick/")
    assert server.ask("POST", "/admin/health", {"id": one, "health": "Unhealthy"}, token=token)[0] == 200
    view = client.virtual_machine_scale_set_vms.get_instance_view("metadata", "sick", "1")
    assert view.vm_health.status.code == "HealthState/unhealthy"
    for wrong in ({}, {"id": 1, "health": "x"}, {"id": "/nonsense", "health": "Healthy"}, {"id": one, "health": "Purple"}):
        assert server.ask("POST", "/admin/health", wrong, token=token)[0] == 400
