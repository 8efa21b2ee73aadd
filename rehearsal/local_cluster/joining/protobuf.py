"""Kubernetes' protobuf, which kubelets and the API server exchange: encode a Node, and decode an error.

Kubelets post Nodes in protobuf, and so do the clients of the bare cluster in the benchmark. Joins must do the same to be comparable
(docs/real-control-plane.md).

https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding. Field numbers are those of generated.proto in
https://github.com/kubernetes/api/blob/v0.36.3/core/v1/generated.proto and of k8s.io/apimachinery's meta/v1, api/resource and runtime.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto  # type: ignore[import-untyped]
from google.protobuf.descriptor_pool import DescriptorPool  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

Json = dict[str, Any]
CONTENT = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
_PACKAGE = "kubernetes"
_TEXT, _BYTES, _NUMBER = "text", "bytes", "number"
_PRIMITIVES = {_TEXT: FieldDescriptorProto.TYPE_STRING, _BYTES: FieldDescriptorProto.TYPE_BYTES, _NUMBER: FieldDescriptorProto.TYPE_INT64}
_MANY, _BY_NAME = "many ", "by name "
_SYSTEM = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion"),
    *("operatingSystem", "architecture"),
)
MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "TypeMeta": {"apiVersion": (1, _TEXT), "kind": (2, _TEXT)},
    "Unknown": {"typeMeta": (1, "TypeMeta"), "raw": (2, _BYTES)},
    "Status": {"message": (3, _TEXT)},
    "ObjectMeta": {"name": (1, _TEXT), "labels": (11, f"{_BY_NAME}{_TEXT}"), "annotations": (12, f"{_BY_NAME}{_TEXT}")},
    "Taint": {"key": (1, _TEXT), "value": (2, _TEXT), "effect": (3, _TEXT)},
    "NodeSpec": {"providerID": (3, _TEXT), "taints": (5, f"{_MANY}Taint")},
    "Quantity": {"string": (1, _TEXT)},
    "Time": {"seconds": (1, _NUMBER)},
    "NodeCondition": {
        "type": (1, _TEXT),
        "status": (2, _TEXT),
        "lastHeartbeatTime": (3, "Time"),
        "lastTransitionTime": (4, "Time"),
        "reason": (5, _TEXT),
        "message": (6, _TEXT),
    },
    "NodeAddress": {"type": (1, _TEXT), "address": (2, _TEXT)},
    "DaemonEndpoint": {"Port": (1, _NUMBER)},
    "NodeDaemonEndpoints": {"kubeletEndpoint": (1, "DaemonEndpoint")},
    "NodeSystemInfo": {name: (number, _TEXT) for number, name in enumerate(_SYSTEM, 1)},
    "NodeStatus": {
        "capacity": (1, f"{_BY_NAME}Quantity"),
        "allocatable": (2, f"{_BY_NAME}Quantity"),
        "conditions": (4, f"{_MANY}NodeCondition"),
        "addresses": (5, f"{_MANY}NodeAddress"),
        "daemonEndpoints": (6, "NodeDaemonEndpoints"),
        "nodeInfo": (7, "NodeSystemInfo"),
    },
    "Node": {"metadata": (1, "ObjectMeta"), "spec": (2, "NodeSpec"), "status": (3, "NodeStatus")},
}
"""Field numbers and types, by message and field."""


def node_bytes(node: Json) -> bytes:
    """Return an encoded Node. Raises ValueError for a field that MESSAGES lacks."""
    unlisted = sorted(node.keys() - {"apiVersion", "kind"} - MESSAGES["Node"].keys())
    if unlisted:
        raise ValueError(f"Node has no field {', '.join(unlisted)} in MESSAGES; add it with its number from generated.proto")
    status = node["status"]
    node_status = {
        **status,
        "capacity": _quantities(status["capacity"]),
        "allocatable": _quantities(status["allocatable"]),
        "conditions": [_condition(one) for one in status["conditions"]],
    }
    raw = _class("Node")(metadata=node["metadata"], spec=node["spec"], status=node_status).SerializeToString()
    envelope = _class("Unknown")(typeMeta={"apiVersion": node["apiVersion"], "kind": node["kind"]}, raw=raw)
    return MAGIC + bytes(envelope.SerializeToString())


def status_message(body: bytes) -> str:
    """Return the message of a Status. Raises ValueError for other bytes."""
    if not body.startswith(MAGIC):
        raise ValueError(f"{body[:4]!r} is not what Kubernetes' protobuf begins with, {MAGIC!r}")
    try:
        envelope = _class("Unknown").FromString(body[len(MAGIC) :])
        return str(_class("Status").FromString(envelope.raw).message)
    except DecodeError as error:
        raise ValueError(f"{len(body)} bytes that begin as Kubernetes' protobuf hold no Status: {error}") from error


def _quantities(given: Mapping[str, str]) -> dict[str, Json]:
    return {name: {"string": text} for name, text in given.items()}


def _condition(given: Json) -> Json:
    moments = {name: {"seconds": _seconds(given[name])} for name in ("lastHeartbeatTime", "lastTransitionTime")}
    return {**given, **moments}


@cache
def _seconds(moment: str) -> int:
    """Return the seconds since 1970 of a time in RFC 3339."""
    return int(datetime.datetime.fromisoformat(moment).timestamp())


@cache
def _class(name: str) -> Any:
    """Return the class of a message."""
    return GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@cache
def _pool() -> DescriptorPool:
    file = FileDescriptorProto(name="kubernetes.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, holds) in fields.items():
            _add(message, field, number, holds)
    pool = DescriptorPool()
    pool.Add(file)
    return pool


def _add(message: DescriptorProto, name: str, number: int, holds: str) -> None:
    """Add a field to a message, with the entry type that protobuf requires for a map."""
    label = FieldDescriptorProto.LABEL_REPEATED if holds.startswith((_MANY, _BY_NAME)) else FieldDescriptorProto.LABEL_OPTIONAL
    held = holds.removeprefix(_MANY).removeprefix(_BY_NAME)
    if holds.startswith(_BY_NAME):
        entry = message.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
        entry.options.map_entry = True
        _add(entry, "key", 1, _TEXT)
        _add(entry, "value", 2, held)
        held = f"{message.name}.{entry.name}"
    field = message.field.add(name=name, number=number, label=label)
    if held in _PRIMITIVES:
        field.type = _PRIMITIVES[held]
    else:
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{_PACKAGE}.{held}"
