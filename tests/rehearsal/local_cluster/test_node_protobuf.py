"""A Node in Kubernetes' protobuf: each field under its number, and what has no number there is refused."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.local_cluster.joining.protobuf import MAGIC, node_bytes, status_message

MOMENT = "2026-01-01T00:00:00Z"
REFUSAL = MAGIC + bytes.fromhex("0a0c0a0276311206537461747573") + b"\x12\x0a" + b"\x1a\x08no entry"
"""A Status of apiVersion v1 whose message, the third field, is "no entry"."""


def node(**changed: Any) -> dict[str, Any]:
    """A small Node."""
    condition = {"type": "Ready", "status": "False", "reason": "Why", "message": "text", "lastHeartbeatTime": MOMENT}
    status = {
        "capacity": {"cpu": "96"},
        "allocatable": {"cpu": "95"},
        "conditions": [{**condition, "lastTransitionTime": MOMENT}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.4"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {"architecture": "amd64"},
    }
    metadata = {"name": "a", "labels": {"pool": "gpu"}, "annotations": {}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"providerID": "azure:///a"}, "status": status, **changed}


def test_an_envelope_with_kind_and_version_goes_around_the_object() -> None:
    assert node_bytes(node()).startswith(MAGIC + b"\x0a\x0a\x0a\x02v1\x12\x04Node\x12")


def test_every_field_goes_under_its_number_and_moments_are_seconds() -> None:
    found = node_bytes(node())
    moment = "0880f2d6ca06"  # 1767225600 as a varint in the first field of a Time
    expected = (
        b"\x0a\x01aZ\x0b\x0a\x04pool\x12\x03gpu",  # ObjectMeta: 1 name, 11 labels
        b"\x1a\x0aazure:///a",  # NodeSpec: 3 providerID
        b"\x0a\x0b\x0a\x03cpu\x12\x04\x0a\x0296",  # NodeStatus: 1 capacity, of Quantity: 1 string
        b"\x12\x0b\x0a\x03cpu\x12\x04\x0a\x0295",  # 2 allocatable
        b"\x0a\x05Ready\x12\x05False\x1a\x06" + bytes.fromhex(f"{moment}2206{moment}") + b"*\x03Why2\x04text",  # NodeCondition: 1 to 6
        b"*\x16\x0a\x0aInternalIP\x12\x0810.0.0.4",  # 5 addresses
        b"2\x05\x0a\x03\x08\x8aP",  # 6 daemonEndpoints
        b":\x07R\x05amd64",  # 7 nodeInfo: 10 architecture
    )
    for part in expected:
        assert part in found


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"unheard": {}}, "Node has no field unheard in MESSAGES"),
        ({"spec": {"podCIDR": "10.0.0.0/24"}}, "podCIDR"),
        ({"metadata": {"name": "a", "finalizers": ["x"]}}, "finalizers"),
    ],
)
def test_a_field_without_a_number_is_refused_by_name(changed: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        node_bytes(node(**changed))


def test_a_refusal_is_read_from_its_status() -> None:
    assert status_message(REFUSAL) == "no entry"
    with pytest.raises(ValueError, match="is not what Kubernetes' protobuf begins with"):
        status_message(b"<html>")
    with pytest.raises(ValueError, match="hold no Status"):
        status_message(REFUSAL[:-3])
