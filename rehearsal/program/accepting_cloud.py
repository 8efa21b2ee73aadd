"""A cloud that accepts every request: ids as Azure and Kubernetes assign them, and the outputs that programs read."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from components.errors import GpufleetError
from rehearsal.azure.azure_native_ids import AZURE, MissingInputError, UnknownTypeError, arm_id, stable_uuid
from rehearsal.program.dispatch import CreatedResource

KUBERNETES, DYNAMIC = "kubernetes:", "pulumi-python:dynamic"
GET_CLIENT_CONFIG = "azure-native:authorization:getClientConfig"


class UnknownFunctionError(GpufleetError):
    """A provider function whose result depends on a real cloud."""

    def __init__(self, token: str) -> None:
        self.token = token
        super().__init__(f"{token} needs a real cloud; give the program the value as configuration")


class AcceptingCloud:
    """A `CloudBackend` without a model: it refuses nothing for quota, capacity or conflict, and every request ends at once.

    `subscription` and `tenant` (UUIDs) are the defaults for resources whose provider does not set them.
    """

    def __init__(self, *, subscription: str | None = None, tenant: str | None = None) -> None:
        self._subscription = subscription
        self._tenant = tenant

    def create(self, resource_type: str, name: str, inputs: Mapping[str, Any], provider: Mapping[str, Any], /) -> CreatedResource:
        """Return the id and the computed outputs; raise UnknownTypeError or MissingInputError."""
        if resource_type.startswith(AZURE):
            return self._azure(resource_type, name, inputs, provider)
        if resource_type.startswith(KUBERNETES):
            return create_kubernetes_object(name, inputs)
        if resource_type.startswith(DYNAMIC):
            return CreatedResource(stable_uuid(resource_type, name), {})
        raise UnknownTypeError(resource_type)

    def invoke(self, token: str, _args: Mapping[str, Any], provider: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Return the identity that is signed in; raise UnknownFunctionError for any other function."""
        if token != GET_CLIENT_CONFIG:
            raise UnknownFunctionError(token)
        subscription = self._subscription_of(provider)
        client, principal = stable_uuid(subscription, "client"), stable_uuid(subscription, "object")
        return {"subscriptionId": subscription, "tenantId": self._tenant_of(provider), "clientId": client, "objectId": principal}

    def _azure(self, resource_type: str, name: str, inputs: Mapping[str, Any], provider: Mapping[str, Any]) -> CreatedResource:
        module_type = resource_type.removeprefix(AZURE)
        resource_id = arm_id(resource_type, name, inputs, provider.get("subscriptionId") or self._subscription)
        arm_name = resource_id.rpartition("/")[2]
        computed = COMPUTED_OUTPUTS.get(module_type)
        outputs = {"name": arm_name, **(computed(resource_id, arm_name, inputs) if computed else {})}
        if module_type == "managedidentity:UserAssignedIdentity":
            outputs["tenantId"] = self._tenant_of(provider)
        return CreatedResource(resource_id, outputs)

    def _subscription_of(self, provider: Mapping[str, Any]) -> str:
        subscription = provider.get("subscriptionId") or self._subscription
        if not subscription:
            raise MissingInputError("subscriptionId", "give the resource a provider that names its subscription")
        return str(subscription)

    def _tenant_of(self, provider: Mapping[str, Any]) -> str:
        return str(provider.get("tenantId") or self._tenant or stable_uuid(self._subscription_of(provider), "tenant"))


def create_kubernetes_object(name: str, inputs: Mapping[str, Any]) -> CreatedResource:
    """Return the id and metadata that an API server assigns to an object; a missing name derives from the logical name."""
    metadata = inputs.get("metadata") or {}
    object_name = metadata.get("name") or f"{name}-{stable_uuid(name)[:8]}"
    object_id = f"{metadata['namespace']}/{object_name}" if metadata.get("namespace") else object_name
    return CreatedResource(object_id, {"metadata": {**metadata, "name": object_name, "uid": stable_uuid("kubernetes", object_id)}})


def _identity(resource_id: str, _name: str, _inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"principalId": stable_uuid(resource_id, "principal"), "clientId": stable_uuid(resource_id, "client")}


def _vault(_resource_id: str, name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"properties": {**inputs["properties"], "vaultUri": f"https://{name}.vault.azure.net/"}}


def _vault_secret(_resource_id: str, name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    uri = f"https://{inputs['vaultName']}.vault.azure.net/secrets/{name}"
    return {"properties": {"attributes": {}, "secretUri": uri, "secretUriWithVersion": f"{uri}/{stable_uuid(uri).replace('-', '')}"}}


def _storage_account(_resource_id: str, name: str, _inputs: Mapping[str, Any]) -> dict[str, Any]:
    services = ("blob", "dfs", "file", "queue", "table", "web")
    return {"primaryEndpoints": {service: f"https://{name}.{service}.core.windows.net/" for service in services}}


def _load_balancer(resource_id: str, _name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    parts = ("frontendIPConfigurations", "backendAddressPools", "probes", "loadBalancingRules", "outboundRules")
    return {
        part: [{**item, "id": f"{resource_id}/{part}/{item.get('name')}"} for item in inputs[part]] for part in parts if inputs.get(part)
    }


def _machine_identity(_resource_id: str, _name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    # Azure reads the ids as keys of an object and returns each principal; the SDK sends a list and expects the object back.
    identity = inputs.get("identity") or {}
    ids = identity.get("userAssignedIdentities")
    if not ids:
        return {}
    return {"identity": {**identity, "userAssignedIdentities": {one: _identity(one, "", {}) for one in ids}}}


COMPUTED_OUTPUTS: Mapping[str, Callable[[str, str, Mapping[str, Any]], dict[str, Any]]] = MappingProxyType(
    {
        "compute:VirtualMachine": _machine_identity,
        "compute:VirtualMachineScaleSet": _machine_identity,
        "keyvault:Secret": _vault_secret,
        "keyvault:Vault": _vault,
        "managedidentity:UserAssignedIdentity": _identity,
        "network:LoadBalancer": _load_balancer,
        "storage:StorageAccount": _storage_account,
    }
)
"""Functions that compute the outputs of a type from id, ARM name and inputs."""
