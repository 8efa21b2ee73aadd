"""The default cloud gives every resource the id that Azure or Kubernetes would, and says so where it cannot tell."""

import importlib
import re
from typing import Any

import pytest
from programs import OTHER_SUBSCRIPTION, SUBSCRIPTION
from pulumi import _types

from rehearsal.azure.azure_native_ids import GROUP_PATHS, SCOPE_PATHS, MissingInputError, UnknownTypeError
from rehearsal.program.accepting_cloud import AcceptingCloud, UnknownFunctionError

BACKEND = AcceptingCloud(subscription=SUBSCRIPTION)
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg"
NO_PROVIDER: dict[str, Any] = {}


def azure(module_type: str, **inputs: Any) -> tuple[str, Any]:
    return BACKEND.create(f"azure-native:{module_type}", "logical", {"resourceGroupName": "rg", **inputs}, NO_PROVIDER)


@pytest.mark.parametrize(
    ("module_type", "parameters"),
    [
        *((module_type, ["resourceGroupName", *re.findall(r"\{(\w+)\}", path)]) for module_type, path in GROUP_PATHS.items()),
        *((module_type, [scope, *re.findall(r"\{(\w+)\}", path)]) for module_type, (scope, path) in SCOPE_PATHS.items()),
    ],
)
def test_every_path_is_made_of_inputs_that_the_sdk_has(module_type: str, parameters: list[str]) -> None:
    module, _, name = module_type.partition(":")
    package = importlib.import_module(f"pulumi_azure_native.{module}")
    # Where a nested type has the name, the SDK calls the resource's own arguments InitArgs.
    arguments = getattr(package, f"{name}InitArgs", None) or getattr(package, f"{name}Args")
    assert set(parameters) <= set(_types.input_type_py_to_pulumi_names(arguments).values())


def test_an_azure_resource_has_its_arm_id_and_name() -> None:
    created = azure("network:Subnet", virtualNetworkName="net", subnetName="nodes")
    assert created == (f"{GROUP}/providers/Microsoft.Network/virtualNetworks/net/subnets/nodes", {"name": "nodes"})


def test_a_role_assignment_lives_below_its_scope() -> None:
    name = "0b1f6471-1bf0-4dda-aec3-111122223333"
    created = azure("authorization:RoleAssignment", scope=f"{GROUP}/providers/Microsoft.KeyVault/vaults/kv", roleAssignmentName=name)
    assert created[0] == f"{GROUP}/providers/Microsoft.KeyVault/vaults/kv/providers/Microsoft.Authorization/roleAssignments/{name}"


def test_the_providers_subscription_goes_before_the_default() -> None:
    arm_id, _ = BACKEND.create(
        "azure-native:resources:ResourceGroup", "x", {"resourceGroupName": "rg"}, {"subscriptionId": OTHER_SUBSCRIPTION}
    )
    assert arm_id == f"/subscriptions/{OTHER_SUBSCRIPTION}/resourceGroups/rg"


def test_a_resource_without_a_name_gets_the_same_made_up_one_every_time() -> None:
    first, second = (azure("network:NatGateway") for _ in range(2))
    assert first == second
    assert re.fullmatch(r"logical[0-9a-f]{8}", first[1]["name"])


def test_an_identity_has_principal_client_and_tenant() -> None:
    _, outputs = azure("managedidentity:UserAssignedIdentity", resourceName="api")
    _, other = azure("managedidentity:UserAssignedIdentity", resourceName="node")
    assert all(re.fullmatch(r"[0-9a-f-]{36}", outputs[key]) for key in ("principalId", "clientId", "tenantId"))
    assert len({outputs["principalId"], outputs["clientId"], other["principalId"], other["clientId"]}) == 4
    assert (
        outputs["tenantId"]
        == other["tenantId"]
        == BACKEND.invoke("azure-native:authorization:getClientConfig", {}, NO_PROVIDER)["tenantId"]
    )


def test_a_load_balancers_parts_have_ids_of_their_own() -> None:
    arm_id, outputs = azure(
        "network:LoadBalancer", loadBalancerName="api", backendAddressPools=[{"name": "api"}], probes=[{"name": "readyz"}]
    )
    assert outputs["backendAddressPools"] == [{"name": "api", "id": f"{arm_id}/backendAddressPools/api"}]
    assert outputs["probes"] == [{"name": "readyz", "id": f"{arm_id}/probes/readyz"}]


def test_a_vault_its_secrets_and_a_storage_account_have_their_addresses() -> None:
    _, vault = azure("keyvault:Vault", vaultName="kv", properties={"tenantId": "t"})
    _, secret = azure("keyvault:Secret", vaultName="kv", secretName="join", properties={"value": "s3cret"})
    _, account = azure("storage:StorageAccount", accountName="backup")
    assert vault["properties"] == {"tenantId": "t", "vaultUri": "https://kv.vault.azure.net/"}
    assert secret["properties"]["secretUri"] == "https://kv.vault.azure.net/secrets/join"
    assert "s3cret" not in str(secret)
    assert account["primaryEndpoints"]["blob"] == "https://backup.blob.core.windows.net/"


@pytest.mark.parametrize(
    ("metadata", "object_id"),
    [
        ({"name": "coredns", "namespace": "kube-system"}, "kube-system/coredns"),
        ({"name": "node-reader"}, "node-reader"),
    ],
)
def test_a_kubernetes_object_is_known_by_namespace_and_name(metadata: dict[str, str], object_id: str) -> None:
    created_id, outputs = BACKEND.create("kubernetes:apps/v1:Deployment", "logical", {"metadata": metadata}, NO_PROVIDER)
    assert created_id == object_id
    assert outputs["metadata"].items() >= metadata.items()


def test_a_kubernetes_object_without_a_name_gets_one_of_its_logical_name() -> None:
    object_id, outputs = BACKEND.create("kubernetes:core/v1:ConfigMap", "settings", {}, NO_PROVIDER)
    assert re.fullmatch(r"settings-[0-9a-f]{8}", object_id)
    assert outputs["metadata"]["name"] == object_id


@pytest.mark.parametrize(
    ("resource_type", "inputs", "refusal", "text"),
    [
        (
            "azure-native:sql:Server",
            {"resourceGroupName": "rg"},
            UnknownTypeError,
            "azure-native:sql:Server has no rule for its id; add its",
        ),
        ("random:index:RandomPet", {}, UnknownTypeError, "random:index:RandomPet has no rule for its id; use a backend"),
        ("azure-native:network:NatGateway", {}, MissingInputError, "resourceGroupName is missing"),
        ("azure-native:network:Subnet", {"resourceGroupName": "rg"}, MissingInputError, "virtualNetworkName is missing"),
    ],
)
def test_a_resource_whose_id_cannot_be_told_is_refused(
    resource_type: str, inputs: dict[str, Any], refusal: type[Exception], text: str
) -> None:
    with pytest.raises(refusal, match=re.escape(text)):
        BACKEND.create(resource_type, "logical", inputs, NO_PROVIDER)


def test_a_resource_without_a_subscription_is_refused() -> None:
    with pytest.raises(MissingInputError, match="subscriptionId is missing"):
        AcceptingCloud().create("azure-native:resources:ResourceGroup", "x", {"resourceGroupName": "rg"}, NO_PROVIDER)


def test_a_function_that_needs_a_cloud_is_refused() -> None:
    with pytest.raises(UnknownFunctionError, match="azure-native:compute:getGallery needs a real cloud"):
        BACKEND.invoke("azure-native:compute:getGallery", {}, NO_PROVIDER)
