"""Nodes and records of issued first certificates on the API server; each record is a ConfigMap with the vmId as its name."""

from __future__ import annotations

import datetime
import json
import logging
import re
from typing import Any

import urllib3
from kubernetes import client

from components.plan.access import IDENTITY_NAMESPACE, REIMAGED_AT
from services.csr_approver.approval_loop import RequestChangedError, ServiceUnreachableError
from services.csr_approver.first_requests import IssueRecord, NodeState

LOG = logging.getLogger("gpufleet.csr-approver")
REQUEST_SECONDS = 30
PAGE = 500
NOT_FOUND, CONFLICT = 404, 409
VM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LABELS = {"app.kubernetes.io/managed-by": "gpufleet-csr-approver"}

Json = dict[str, Any]


def _call(function: Any, *arguments: Any, **options: Any) -> Json:
    """Call the API server and return its JSON; ApiException for a status, ServiceUnreachableError without a response."""
    try:
        response = function(*arguments, **options, _request_timeout=REQUEST_SECONDS, _preload_content=False)
        body: Json = json.loads(response.data)
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        raise ServiceUnreachableError(type(error).__name__) from error
    return body


def _unreachable(error: client.ApiException) -> ServiceUnreachableError:
    return ServiceUnreachableError(f"HTTP {error.status} {error.reason}")


def time_of(text: object) -> datetime.datetime | None:
    """Return a time in RFC 3339 with an offset, None for another text."""
    try:
        found = datetime.datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else None


def node_state(item: Json) -> NodeState:
    """Convert a Node from JSON."""
    metadata, conditions = item["metadata"], (item.get("status") or {}).get("conditions") or ()
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    created = time_of(metadata["creationTimestamp"])
    if created is None:
        raise ServiceUnreachableError("a Node without a creation time")
    return NodeState(ready, created, time_of((metadata.get("annotations") or {}).get(REIMAGED_AT)))


def record_of(item: Json) -> IssueRecord | None:
    """Convert a ConfigMap from JSON; None for one that is not a record."""
    metadata, data = item["metadata"], item.get("data") or {}
    issued = time_of(data.get("issued-at"))
    if issued is None or not all(data.get(key) for key in ("node", "scale-set", "key")):
        return None
    return IssueRecord(metadata["name"], data["node"], data["scale-set"], data["key"], issued, metadata["resourceVersion"])


class ApiNodes:
    """Reader of Nodes, one request each."""

    def __init__(self, api: client.CoreV1Api) -> None:
        self._api = api

    def state(self, node: str) -> NodeState | None:
        """Return the state of a Node, None if there is none; raise ServiceUnreachableError."""
        try:
            return node_state(_call(self._api.read_node, node))
        except client.ApiException as error:
            if error.status == NOT_FOUND:
                return None
            raise _unreachable(error) from error


class ConfigMapRecords:
    """Records as ConfigMaps: their creation is atomic, so that of two approvers only one records an issue."""

    def __init__(self, api: client.CoreV1Api) -> None:
        self._api = api
        self._known: dict[str, IssueRecord] = {}

    def load(self) -> None:
        """Read all records; raise ServiceUnreachableError."""
        self._known.clear()
        following: str | None = None
        while following != "":
            try:
                page = _call(self._api.list_namespaced_config_map, IDENTITY_NAMESPACE, limit=PAGE, _continue=following)
            except client.ApiException as error:
                raise _unreachable(error) from error
            for record in filter(None, map(record_of, page["items"])):
                self._known[record.vm_id] = record
            following = page["metadata"].get("continue") or ""

    def all(self) -> tuple[IssueRecord, ...]:
        """Return all known records."""
        return tuple(self._known.values())

    def find(self, vm_id: str) -> IssueRecord | None:
        """Return the record of a machine."""
        return self._known.get(vm_id)

    def write(self, record: IssueRecord) -> None:
        """Create a record, or replace the version that it names; raise RequestChangedError if another approver was faster."""
        if not VM_ID.fullmatch(record.vm_id):
            raise ServiceUnreachableError(f"{record.vm_id!a} is not a vmId")
        data = {"node": record.node, "scale-set": record.scale_set, "key": record.key, "issued-at": record.issued.isoformat()}
        metadata: Json = {"name": record.vm_id, "labels": LABELS}
        try:
            if record.version:
                body = {"metadata": {**metadata, "resourceVersion": record.version}, "data": data}
                stored = _call(self._api.replace_namespaced_config_map, record.vm_id, IDENTITY_NAMESPACE, body)
            else:
                stored = _call(self._api.create_namespaced_config_map, IDENTITY_NAMESPACE, {"metadata": metadata, "data": data})
        except client.ApiException as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise _unreachable(error) from error
            self._read_again(record.vm_id)
            raise RequestChangedError(f"another approver changed the record of {record.vm_id}") from error
        written = record_of(stored)
        if written is None:
            raise ServiceUnreachableError("the API server did not store the record")
        self._known[record.vm_id] = written

    def remove(self, record: IssueRecord) -> None:
        """Remove a record, if it has not changed; raise ServiceUnreachableError."""
        condition = client.V1DeleteOptions(preconditions=client.V1Preconditions(resource_version=record.version))
        try:
            _call(self._api.delete_namespaced_config_map, record.vm_id, IDENTITY_NAMESPACE, body=condition)
        except client.ApiException as error:
            if error.status == CONFLICT:
                self._read_again(record.vm_id)
                return
            if error.status != NOT_FOUND:
                raise _unreachable(error) from error
        self._known.pop(record.vm_id, None)
        LOG.info("removed the record of vmId %s: Azure does not list machine %s", record.vm_id, record.node)

    def _read_again(self, vm_id: str) -> None:
        """Read one record after a conflict."""
        self._known.pop(vm_id, None)
        try:
            found = record_of(_call(self._api.read_namespaced_config_map, vm_id, IDENTITY_NAMESPACE))
        except client.ApiException as error:
            if error.status != NOT_FOUND:
                raise _unreachable(error) from error
            return
        if found is not None:
            self._known[vm_id] = found
