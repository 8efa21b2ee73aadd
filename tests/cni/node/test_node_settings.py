"""network.json is read whole, or refused by the key that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni.node.errors import NodeNetworkError
from cni.node.settings import Settings, Shaping, parse, read

SHAPING: dict[str, Any] = {
    "machine_mbit": 1000,
    "floor_mbit": 5,
    "ceiling_mbit": 1000,
    "weights": {"vision": 4},
    "default_weight": 1,
    "connections_per_pod": 4000,
}
DOCUMENT: dict[str, Any] = {
    "version": 1,
    "mode": "native",
    "internal": ["10.0.0.0/8"],
    "not_masqueraded": ["10.0.0.0/8", "172.16.0.0/12", "fd00::/8"],
    "service_cidr": "10.255.0.0/16",
    "snat": True,
    "mtu": 1500,
    "planned_pods": 30,
    "host_network_pods": 3,
    "shaping": SHAPING,
}


def refusal(document: object) -> str:
    with pytest.raises(NodeNetworkError) as refused:
        parse(document, "network.json")
    return str(refused.value)


def test_every_key_is_read() -> None:
    assert parse(DOCUMENT, "network.json") == Settings(
        mode="native",
        internal=("10.0.0.0/8",),
        not_masqueraded=("10.0.0.0/8", "172.16.0.0/12", "fd00::/8"),
        service_cidr="10.255.0.0/16",
        snat=True,
        mtu=1500,
        planned_pods=30,
        host_network_pods=3,
        shaping=Shaping(1000, 5, 1000, {"vision": 4}, 1, 4000),
    )


@pytest.mark.parametrize("key", DOCUMENT)
def test_a_missing_key_is_named(key: str) -> None:
    assert f"{key} is missing" in refusal({name: value for name, value in DOCUMENT.items() if name != key})


@pytest.mark.parametrize(
    ("key", "value", "bound"),
    [
        ("version", 2, "from 1 to 1"),
        ("mode", "cilium", "native or azure-vnet"),
        ("internal", "10.0.0.0/8", "a list"),
        ("internal", ["10.0.0.1/8"], "without host bits"),
        ("not_masqueraded", ["10.0.0.0"], "ADDRESS/LENGTH"),
        ("service_cidr", 10, "ADDRESS/LENGTH"),
        ("snat", 1, "true or false"),
        ("mtu", 100, "from 1280 to 65535"),
        ("planned_pods", 0, "from 1 to 255"),
        ("planned_pods", True, "from 1 to 255"),
        ("host_network_pods", -1, "from 0 to 255"),
        ("shaping", {}, "every key is there"),
        ("shaping", SHAPING | {"machine_mbit": 0}, "from 1 to 1000000"),
        ("shaping", SHAPING | {"weights": {"vision": 0}}, "from 1 to 10000"),
        ("shaping", SHAPING | {"burst": 1}, "unknown key 'burst'"),
        ("bandwidth", 1, "unknown key 'bandwidth'"),
    ],
)
def test_a_wrong_value_is_refused_with_its_bound(key: str, value: object, bound: str) -> None:
    said = refusal(DOCUMENT | {key: value})
    assert bound in said
    assert "\n" not in said


@given(st.sampled_from(sorted(DOCUMENT)), st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5))
def test_no_value_ends_in_a_traceback(key: str, value: object) -> None:
    try:
        found = parse(DOCUMENT | {key: value}, "network.json")
    except NodeNetworkError:
        return
    assert found == parse(json.loads(json.dumps(DOCUMENT | {key: value})), "network.json")


def test_a_file_that_is_missing_or_no_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "network.json"
    with pytest.raises(NodeNetworkError, match=r"network\.json: No such file"):
        read(path)
    path.write_bytes(b"\xff{")
    with pytest.raises(NodeNetworkError, match=r"network\.json: no JSON"):
        read(path)
    path.write_text(json.dumps(DOCUMENT))
    assert read(path).planned_pods == 30
