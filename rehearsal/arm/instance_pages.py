"""Pages of a scale set's instances. The JSON of each instance is stored until something changes that it depends on."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from rehearsal.arm.paging import page_of
from rehearsal.arm.responses import encode
from rehearsal.arm.url_paths import ListPath
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instance_network import INSTANCE
from rehearsal.azure.compute.instance_types import answered_instance
from rehearsal.azure.compute.instances import Instance, Model, state_of
from rehearsal.azure.compute.scale_set import SCALE_SET
from rehearsal.azure.compute.views import view_inputs
from rehearsal.azure.resource import Resource

STORED = 60_000
"""Instances whose JSON is stored at most, by query, at about 1.5 kB each."""
PARAMETERS = frozenset({"api-version", "$expand", "$skiptoken"})
"""Query parameters of pages that are stored; a page with another one is computed each time."""
# Text that no client can send, because it is new in each process and never leaves it.
_MARK = uuid.uuid4().hex
_NOW = f"{_MARK}-now"

Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Network:
    """Network configuration of a model's instances, which is most of their JSON: the mark in its place, and its own JSON."""

    model: Model
    value: object
    mark: bytes
    content: bytes


@dataclass(frozen=True, slots=True)
class _Stored:
    """JSON of an instance, with marks for the present time and the network configuration (None if it has none), and its inputs."""

    inputs: tuple[object, ...]
    content: bytes
    network: _Network | None


class InstancePages:
    """Pages of instances, equal to those of `page_body`, from stored JSON."""

    def __init__(self) -> None:
        self._stored: dict[tuple[str, int, Query], _Stored] = {}
        self._networks: dict[int, _Network] = {}
        self._bodies: dict[str, str] = {}

    def page(self, cloud: Cloud, path: ListPath, query: Mapping[str, str], url: str) -> bytes | None:
        """Return a page as JSON; None for another list than that of a scale set's instances. Raises AzureError for an invalid token."""
        if path.type.lower() != INSTANCE.lower() or not PARAMETERS.issuperset(query):
            return None
        resource = cloud.resources.get(path.scope.lower())
        if resource is None or resource.id.type != SCALE_SET:
            return None
        below = f"{resource.key}/virtualmachines/"
        shown, link = page_of(state_of(resource).instances.values(), query, url, lambda one: f"{below}{one.id}")
        parameters = tuple((name, value) for name, value in query.items() if name != "$skiptoken")
        body = self._body(resource)
        found = [self._instance(cloud, resource, one, body, parameters) for one in shown]
        content = b",".join(one.content for one in found)
        for network in {id(one.network): one.network for one in found}.values():
            if network is not None:
                content = content.replace(network.mark, network.content)
        content = content.replace(_NOW.encode(), stamp(cloud.now).encode())
        return b'{"value":[%b]%b}' % (content, f',"nextLink":{encode(link)}'.encode() if link else b"")

    def _body(self, resource: Resource) -> str:
        """Return the scale set's body as JSON without its capacity and provisioning state, which change with every delete of an instance.

        It is the same object as long as it is equal, so that it is stored once.
        """
        properties = {name: value for name, value in resource.properties.items() if name != "provisioningState"}
        sku = {name: value for name, value in resource.body["sku"].items() if name != "capacity"}
        body, stored = encode({**resource.body, "sku": sku, "properties": properties}), self._bodies.get(resource.key)
        if body == stored:
            return stored
        self._bodies[resource.key] = body
        return body

    def _instance(self, cloud: Cloud, resource: Resource, one: Instance, body: str, query: Query) -> _Stored:
        key, inputs = (resource.key, one.id, query), (resource.id.text, body, *view_inputs(cloud, resource, one))
        stored = self._stored.get(key)
        if stored is None or stored.inputs != inputs:
            if len(self._stored) >= STORED:
                self._stored.clear()
                self._networks.clear()
                self._bodies.clear()
            stored = self._stored[key] = self._encoded(cloud, resource, one, inputs, query)
        return stored

    def _encoded(self, cloud: Cloud, resource: Resource, one: Instance, inputs: tuple[object, ...], query: Query) -> _Stored:
        answer = answered_instance(cloud, resource, one, dict(query), reported=_NOW)
        properties = answer["properties"]
        network = self._network(state_of(resource).models[one.model], properties.get("networkProfileConfiguration"))
        if network is not None:
            answer = {**answer, "properties": {**properties, "networkProfileConfiguration": network.mark[1:-1].decode()}}
        return _Stored(inputs, encode(answer).encode(), network)

    def _network(self, model: Model, value: object) -> _Network | None:
        """Return the network configuration that a model's instances share; None if this instance has another one."""
        found = self._networks.get(id(model))
        if found is None or found.model is not model:
            mark = f'"{_MARK}-{uuid.uuid4().hex}"'.encode()
            found = self._networks[id(model)] = _Network(model, value, mark, encode(value).encode())
        return found if found.value == value else None
