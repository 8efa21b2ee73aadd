"""Clients find out where to sign in, sign in, and are refused as Azure refuses them."""

from __future__ import annotations

import json
import socket
import ssl

import jwt
import pytest
from arm_server import LOCATION, ArmServer
from azure.core.exceptions import ClientAuthenticationError

VERSION = "api-version=2024-11-01"


def test_a_client_signs_in_with_what_was_printed_and_its_token_is_signed_with_the_published_key(server: ArmServer) -> None:
    token = server.token()
    _, keys, _ = server.ask("GET", f"/{server.tenant}/discovery/v2.0/keys")
    key = jwt.PyJWK(keys["keys"][0]).key
    claims = jwt.decode(token, key, ["RS256"], audience="https://management.azure.com")
    assert claims["iss"] == f"{server.base}/{server.tenant}/v2.0"
    assert claims["tid"] == server.tenant
    assert claims["appid"] == server.environment["AZURE_CLIENT_ID"]


@pytest.mark.parametrize(
    ("options", "code"),
    [({"secret": "wrong"}, "AADSTS7000215"), ({"client_id": "00000000-0000-0000-0000-000000000000"}, "AADSTS700016")],
)
def test_a_wrong_secret_or_client_is_refused_in_the_platforms_words(server: ArmServer, options: dict[str, str], code: str) -> None:
    with pytest.raises(ClientAuthenticationError, match=code):
        server.credential(**options).get_token("https://management.azure.com/.default")


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ("grant_type=password&client_id=x", 400, "unsupported_grant_type"),
        ("grant_type=client_credentials&client_id={client}&client_secret={secret}", 400, "invalid_request"),
        ("grant_type=client_credentials&client_id={client}&client_secret={secret}&scope=https://vault.azure.net", 400, "invalid_scope"),
        ("\xff\x00", 400, "unsupported_grant_type"),
    ],
)
def test_a_request_for_a_token_that_cannot_be_meant_is_refused(server: ArmServer, form: str, status: int, error: str) -> None:
    body = form.format(client=server.environment["AZURE_CLIENT_ID"], secret=server.environment["AZURE_CLIENT_SECRET"])
    answer = server.ask("POST", f"/{server.tenant}/oauth2/v2.0/token", body.encode("latin-1"))
    assert (answer[0], answer[1]["error"]) == (status, error)


def test_the_first_version_of_the_protocol_writes_numbers_as_text(server: ArmServer) -> None:
    form = f"grant_type=client_credentials&client_id={server.environment['AZURE_CLIENT_ID']}&resource=https://vault.azure.net"
    form += f"&client_secret={server.environment['AZURE_CLIENT_SECRET']}"
    status, body, _ = server.ask("POST", f"/{server.tenant}/oauth2/token", form.encode())
    assert status == 200
    assert int(body["expires_on"]) > int(body["not_before"])
    assert body["resource"] == "https://vault.azure.net"


def test_another_tenant_is_not_found(server: ArmServer) -> None:
    status, body, _ = server.ask("GET", "/11111111-2222-3333-4444-555555555555/v2.0/.well-known/openid-configuration")
    assert status == 400
    assert "AADSTS90002" in body["error_description"]


def test_discovery_leads_only_to_this_server(server: ArmServer) -> None:
    _, body, _ = server.ask("GET", f"/common/discovery/instance?api-version=1.1&authorization_endpoint={server.base}/common")
    _, configuration, _ = server.ask("GET", body["tenant_discovery_endpoint"])
    assert configuration["token_endpoint"].startswith(f"{server.base}/{server.tenant}/")
    assert configuration["jwks_uri"].startswith(server.base)


def test_a_metadata_host_tells_what_pulumi_reads_of_it_without_a_token(server: ArmServer) -> None:
    status, body, _ = server.ask("GET", "/metadata/endpoints?api-version=2022-09-01")
    assert status == 200
    assert body["resourceManager"] == body["authentication"]["loginEndpoint"] == body["authentication"]["audiences"][0] == server.base
    assert (body["name"], body["authentication"]["identityProvider"]) == ("AzureCloud", "AAD")
    assert body["suffixes"]["keyVaultDns"]
    _, old, _ = server.ask("GET", "/metadata/endpoints?api-version=2019-05-01")
    assert old == [body]


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer abc.def.ghi", "Basic YTpi", "bearer \u00e9"])
def test_without_a_good_token_the_answer_is_a_challenge(server: ArmServer, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header.encode("latin-1").decode("latin-1")}
    status, body, answered = server.ask("GET", f"/subscriptions?{VERSION}", headers=headers)
    assert status == 401
    assert body["error"]["code"] in ("AuthenticationFailed", "InvalidAuthenticationToken")
    assert f'authorization_uri="{server.base}/{server.tenant}"' in answered["WWW-Authenticate"]


def test_a_token_for_another_audience_is_refused(server: ArmServer) -> None:
    status, body, _ = server.ask("GET", f"/subscriptions?{VERSION}", token=server.token("https://vault.azure.net"))
    assert (status, body["error"]["code"]) == (401, "InvalidAuthenticationTokenAudience")


def test_a_token_that_somebody_else_signed_is_refused(server: ArmServer) -> None:
    head, claims, signature = server.token().split(".")
    forged = f"{head}.{claims}.{signature[:-6]}AAAAAA"
    status, body, _ = server.ask("GET", f"/subscriptions?{VERSION}", token=forged)
    assert (status, body["error"]["code"]) == (401, "InvalidAuthenticationToken")
    nobody = jwt.encode(jwt.decode(server.token(), options={"verify_signature": False}), "x" * 32, "HS256")
    assert server.ask("GET", f"/subscriptions?{VERSION}", token=nobody)[0] == 401


def test_without_the_certificate_authority_nobody_is_connected(server: ArmServer) -> None:
    with socket.create_connection(server.address, timeout=10) as plain, pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(plain, server_hostname=server.address[0])


def test_subscriptions_tenants_and_providers_are_told(server: ArmServer) -> None:
    token = server.token()
    _, listed, _ = server.ask("GET", f"/subscriptions?{VERSION}", token=token)
    assert server.subscription in [one["subscriptionId"] for one in listed["value"]]
    _, tenants, _ = server.ask("GET", f"/tenants?{VERSION}", token=token)
    assert [one["tenantId"] for one in tenants["value"]] == [server.tenant]
    client = server.resources()
    namespaces = {one.namespace for one in client.providers.list()}
    assert {"Microsoft.Resources", "Microsoft.KeyVault"} <= namespaces
    assert client.providers.register("Microsoft.KeyVault").registration_state == "Registered"
    group = client.resource_groups.create_or_update("sign-in", {"location": LOCATION})
    assert json.dumps(group.as_dict())
