"""A key vault through the official client: written, read, listed over pages, deleted, recovered, purged."""

from __future__ import annotations

import pytest
from arm_server import LOCATION, ArmServer
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.keyvault.secrets import SecretClient

VERSION = "api-version=7.6"


@pytest.fixture(scope="module")
def vault(server: ArmServer) -> str:
    """A vault's name."""
    server.resources().resource_groups.create_or_update("vaults", {"location": LOCATION})
    path = (
        f"/subscriptions/{server.subscription}/resourceGroups/vaults/providers/Microsoft.KeyVault/vaults/arm-vault?api-version=2026-05-15"
    )
    body = {"location": LOCATION, "properties": {"tenantId": server.tenant, "sku": {"family": "A", "name": "standard"}}}
    assert server.ask("PUT", path, body, token=server.token())[0] in (200, 201)
    server.ask("POST", "/admin/clock", {"settle": True}, token=server.token())
    return "arm-vault"


@pytest.fixture
def client(server: ArmServer, vault: str) -> SecretClient:
    return SecretClient(
        f"{server.base}/keyvault/{vault}", server.credential(), verify_challenge_resource=False, connection_verify=server.authority
    )


def test_a_secret_keeps_its_versions_and_is_read_by_each(client: SecretClient) -> None:
    first = client.set_secret("join-token", "one", content_type="text/plain", tags={"for": "nodes"})
    second = client.set_secret("join-token", "two")
    assert client.get_secret("join-token").value == "two"
    assert client.get_secret("join-token", first.properties.version).value == "one"
    versions = [one.version for one in client.list_properties_of_secret_versions("join-token")]
    assert set(versions) == {first.properties.version, second.properties.version}
    changed = client.update_secret_properties("join-token", second.properties.version, enabled=False)
    assert changed.enabled is False
    with pytest.raises(HttpResponseError) as disabled:
        client.get_secret("join-token")
    assert disabled.value.status_code == 403


def test_many_secrets_are_listed_over_pages_without_their_values(client: SecretClient) -> None:
    names = {f"many-{number:02}" for number in range(60)}
    for name in names:
        client.set_secret(name, "value")
    pages = [list(page) for page in client.list_properties_of_secrets().by_page()]
    assert len(pages) >= 3
    assert names <= {one.name for page in pages for one in page}


def test_a_deleted_secret_keeps_its_name_until_it_is_purged(client: SecretClient) -> None:
    client.set_secret("gone", "value")
    client.begin_delete_secret("gone").result()
    with pytest.raises(ResourceNotFoundError):
        client.get_secret("gone")
    with pytest.raises(ResourceExistsError):
        client.set_secret("gone", "other")
    client.begin_recover_deleted_secret("gone").wait()
    assert client.get_secret("gone").value == "value"
    client.begin_delete_secret("gone").wait()
    assert client.get_deleted_secret("gone").name == "gone"
    client.purge_deleted_secret("gone")
    assert client.set_secret("gone", "fresh").value == "fresh"


def test_resource_manager_sees_the_secret_without_its_value(server: ArmServer, client: SecretClient, vault: str) -> None:
    client.set_secret("seen", "hidden value")
    path = f"/subscriptions/{server.subscription}/resourceGroups/vaults/providers/Microsoft.KeyVault/vaults/{vault}/secrets/seen"
    status, body, _ = server.ask("GET", f"{path}?api-version=2026-05-15", token=server.token())
    assert (status, body["name"]) == (200, "seen")
    assert "hidden value" not in str(body)


def test_without_a_token_for_vaults_the_vault_says_where_to_get_one(server: ArmServer, vault: str) -> None:
    for token in (None, server.token()):
        status, _, headers = server.ask("GET", f"/keyvault/{vault}/secrets?{VERSION}", token=token)
        assert status == 401
        assert 'resource="https://vault.azure.net"' in headers["WWW-Authenticate"]


@pytest.mark.parametrize(
    ("method", "tail", "body", "status", "code"),
    [
        ("PUT", "/secrets/a_b", {"value": "x"}, 400, "BadParameter"),
        ("PUT", "/secrets/a", {}, 400, "BadParameter"),
        ("PUT", "/secrets/a", {"value": 1}, 400, "BadParameter"),
        ("PUT", "/secrets/a", {"value": "x", "tags": ["t"]}, 400, "BadParameter"),
        ("PUT", "/secrets/a", {"value": "x", "attributes": {"exp": "soon"}}, 400, "BadParameter"),
        ("PUT", "/secrets/a", {"value": "x", "colour": 1}, 400, "BadParameter"),
        ("PUT", "/secrets/a", {"value": "x" * 30_000}, 400, "BadParameter"),
        ("GET", "/secrets/never-made", None, 404, "SecretNotFound"),
        ("GET", "/secrets?maxresults=0", None, 400, "BadParameter"),
        ("GET", "/secrets?maxresults=1&$skiptoken=x", None, 400, "BadParameter"),
        ("GET", "/keys", None, 404, "NotFound"),
        ("PATCH", "/secrets/never-made", {}, 405, "MethodNotAllowed"),
        ("DELETE", "/deletedsecrets/never-made", None, 404, "SecretNotFound"),
    ],
)
def test_what_a_vault_cannot_mean_is_refused_and_changes_nothing(
    server: ArmServer, vault: str, method: str, tail: str, body: object, status: int, code: str
) -> None:
    token = server.token("https://vault.azure.net")
    before = server.ask("GET", f"/keyvault/{vault}/secrets?{VERSION}", token=token)[1]
    answer = server.ask(method, f"/keyvault/{vault}{tail}{'&' if '?' in tail else '?'}{VERSION}", body, token=token)
    assert (answer[0], answer[1]["error"]["code"]) == (status, code)
    assert server.ask("GET", f"/keyvault/{vault}/secrets?{VERSION}", token=token)[1] == before


def test_a_vault_that_is_not_there_and_a_version_that_is_not_known_are_told(server: ArmServer, vault: str) -> None:
    token = server.token("https://vault.azure.net")
    assert server.ask("GET", f"/keyvault/nobodys/secrets?{VERSION}", token=token)[0] == 404
    assert server.ask("GET", f"/keyvault/{vault}/secrets", token=token)[0] == 400
    assert server.ask("GET", f"/keyvault/{vault}/secrets?api-version=1.0", token=token)[0] == 400
