"""Answers for a cloud that accepts everything: the ids that Azure and Kubernetes would give and the outputs that programs read."""

import re
import uuid
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from rehearsal.answers import Created
from rehearsal.arm_paths import GROUP_PATHS, SCOPE_PATHS

AZURE, KUBERNETES, DYNAMIC = "azure-native:", "kubernetes:", "pulumi-python:dynamic"
WHO_IS_SIGNED_IN = "azure-native:authorization:getClientConfig"
RESOURCE_GROUP = "resources:ResourceGroup"
PLACEHOLDER = re.compile(r"\{(\w+)\}")


class UnknownType(Exception):
    """The type has no rule for its id."""

    def __init__(self, resource_type: str) -> None:
        self.resource_type = resource_type
        remedy = "add its path to rehearsal/arm_paths.py" if resource_type.startswith(AZURE) else "use a cloud face that knows it"
        super().__init__(f"no rule says what id {resource_type} gets; {remedy}")


class UnknownFunction(Exception):
    """A provider function that cannot be answered without a cloud."""

    def __init__(self, token: str) -> None:
        self.token = token
        super().__init__(f"{token} needs a cloud to answer; give the program the value as configuration")


class MissingInput(Exception):
    """An input that is part of the resource's id is absent."""

    def __init__(self, name: str, remedy: str) -> None:
        self.name = name
        super().__init__(f"{name} is missing, so the resource has no id; {remedy}")


class RegisteredFace:
    """A `CloudFace` without a model behind it: nothing is refused for quota, capacity or conflict, and nothing takes time.

    `subscription` and `tenant` (UUIDs) serve resources that have no explicit provider, or one that names none.
    """

    def __init__(self, *, subscription: str | None = None, tenant: str | None = None) -> None:
        self._subscription = subscription
        self._tenant = tenant

    def create(self, resource_type: str, name: str, inputs: Mapping[str, Any], provider: Mapping[str, Any], /) -> Created:
        """The id and computed outputs; UnknownType or MissingInput where there is no telling."""
        if resource_type.startswith(AZURE):
            return self._azure(resource_type, name, inputs, provider)
        if resource_type.startswith(KUBERNETES):
            return _kubernetes(name, inputs)
        if resource_type.startswith(DYNAMIC):
            return Created(_stable_uuid(resource_type, name), {})
        raise UnknownType(resource_type)

    def invoke(self, token: str, _args: Mapping[str, Any], provider: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Who is signed in; UnknownFunction for anything else."""
        if token != WHO_IS_SIGNED_IN:
            raise UnknownFunction(token)
        subscription = self._subscription_of(provider)
        client, person = _stable_uuid(subscription, "client"), _stable_uuid(subscription, "object")
        return {"subscriptionId": subscription, "tenantId": self._tenant_of(provider), "clientId": client, "objectId": person}

    def _azure(self, resource_type: str, name: str, inputs: Mapping[str, Any], provider: Mapping[str, Any]) -> Created:
        module_type = resource_type.removeprefix(AZURE)
        arm_id = self._arm_id(module_type, name, inputs, provider)
        arm_name = arm_id.rpartition("/")[2]
        computed = COMPUTED.get(module_type)
        outputs = {"name": arm_name, **(computed(arm_id, arm_name, inputs) if computed else {})}
        if module_type == "managedidentity:UserAssignedIdentity":
            outputs["tenantId"] = self._tenant_of(provider)
        return Created(arm_id, outputs)

    def _arm_id(self, module_type: str, name: str, inputs: Mapping[str, Any], provider: Mapping[str, Any]) -> str:
        if module_type in SCOPE_PATHS:
            scope, path = SCOPE_PATHS[module_type]
            return f"{_required(inputs, scope)}/providers/{_filled(path, name, inputs)}"
        subscription = f"/subscriptions/{self._subscription_of(provider)}/resourceGroups"
        if module_type == RESOURCE_GROUP:
            return f"{subscription}/{_filled('{resourceGroupName}', name, inputs)}"
        if module_type not in GROUP_PATHS:
            raise UnknownType(AZURE + module_type)
        return f"{subscription}/{_required(inputs, 'resourceGroupName')}/providers/{_filled(GROUP_PATHS[module_type], name, inputs)}"

    def _subscription_of(self, provider: Mapping[str, Any]) -> str:
        subscription = provider.get("subscriptionId") or self._subscription
        if not subscription:
            raise MissingInput("subscriptionId", "give the resource a provider that names its subscription")
        return str(subscription)

    def _tenant_of(self, provider: Mapping[str, Any]) -> str:
        return str(provider.get("tenantId") or self._tenant or _stable_uuid(self._subscription_of(provider), "tenant"))


def _filled(path: str, name: str, inputs: Mapping[str, Any]) -> str:
    """The path with its names put in; the resource's own, the last, may be left to the provider, which makes one of the logical name."""
    names = PLACEHOLDER.findall(path)
    values = {key: _required(inputs, key) for key in names[:-1]}
    values[names[-1]] = inputs.get(names[-1]) or f"{name}{_stable_uuid(path, name)[:8]}"
    return path.format_map(values)


def _required(inputs: Mapping[str, Any], key: str) -> str:
    if not inputs.get(key):
        raise MissingInput(key, "give it a value")
    return str(inputs[key])


def _stable_uuid(*parts: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts)))


def _kubernetes(name: str, inputs: Mapping[str, Any]) -> Created:
    metadata = inputs.get("metadata") or {}
    object_name = metadata.get("name") or f"{name}-{_stable_uuid(name)[:8]}"
    object_id = f"{metadata['namespace']}/{object_name}" if metadata.get("namespace") else object_name
    return Created(object_id, {"metadata": {**metadata, "name": object_name, "uid": _stable_uuid("kubernetes", object_id)}})


def _identity(arm_id: str, _name: str, _inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"principalId": _stable_uuid(arm_id, "principal"), "clientId": _stable_uuid(arm_id, "client")}


def _vault(_arm_id: str, name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"properties": {**inputs["properties"], "vaultUri": f"https://{name}.vault.azure.net/"}}


def _vault_secret(_arm_id: str, name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    uri = f"https://{inputs['vaultName']}.vault.azure.net/secrets/{name}"
    return {"properties": {"attributes": {}, "secretUri": uri, "secretUriWithVersion": f"{uri}/{_stable_uuid(uri).replace('-', '')}"}}


def _storage_account(_arm_id: str, name: str, _inputs: Mapping[str, Any]) -> dict[str, Any]:
    services = ("blob", "dfs", "file", "queue", "table", "web")
    return {"primaryEndpoints": {service: f"https://{name}.{service}.core.windows.net/" for service in services}}


def _load_balancer(arm_id: str, _name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    parts = ("frontendIPConfigurations", "backendAddressPools", "probes", "loadBalancingRules", "outboundRules")
    return {part: [{**item, "id": f"{arm_id}/{part}/{item.get('name')}"} for item in inputs[part]] for part in parts if inputs.get(part)}


def _machine_identity(_arm_id: str, _name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    # Azure takes the ids as keys of an object and answers who each is; the SDK takes them as a list and expects the object back.
    identity = inputs.get("identity") or {}
    ids = identity.get("userAssignedIdentities")
    if not ids:
        return {}
    who = {arm_id: {"principalId": _stable_uuid(arm_id, "principal"), "clientId": _stable_uuid(arm_id, "client")} for arm_id in ids}
    return {"identity": {**identity, "userAssignedIdentities": who}}


COMPUTED: Mapping[str, Callable[[str, str, Mapping[str, Any]], dict[str, Any]]] = MappingProxyType(
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
"""Outputs by type, from id, ARM name and inputs."""
