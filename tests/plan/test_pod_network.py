"""The pod network follows from the region file, and impossible values are rejected with a remedy."""

from __future__ import annotations

import copy
import ipaddress
import json
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from components.plan.pod_network import PodNetworkPlan
from components.plan.region import plan_region
from components.plan.validation import validate_region
from components.spec.pod_network import Cni
from components.spec.region import Region
from stacks.load import REGIONS, load_catalog, load_plan

CATALOG = load_catalog()
NORDIC: dict[str, Any] = yaml.safe_load((REGIONS / "swedencentral.yaml").read_text())


def with_network(result: dict[str, Any], **pool: Any) -> dict[str, Any]:
    """Sweden Central with such a pod_network, and with changes to its first pool."""
    document = copy.deepcopy(NORDIC)
    document["clusters"][0]["pod_network"] = result
    document["clusters"][0]["pools"][0] |= pool
    return document


def planned(**result: Any) -> PodNetworkPlan:
    """Plan of Sweden Central's cluster with such a pod_network."""
    region = Region.model_validate_json(json.dumps(with_network(result)), strict=True)
    return plan_region(region, CATALOG).clusters[0].pod_network


def faults(result: dict[str, Any], **pool: Any) -> list[tuple[str, str]]:
    """Path and reason of each invalid value of Sweden Central with such a pod_network, and with changes to its first pool."""
    found = validate_region(with_network(result, **pool), "swedencentral", CATALOG, {})
    return [("/".join(map(str, one.path[2:])), f"{one.value} {one.reason}; {one.remedy}") for one in found]


def test_internal_addresses_come_first_and_peered_ranges_and_services_keep_theirs() -> None:
    hub = load_plan("swedencentral").hub
    found = planned(not_masqueraded=["192.168.0.0/16"])
    assert found.not_masqueraded[0] == found.internal[0] == "10.0.0.0/8"
    assert {hub.address_prefix, hub.client_pool, found.service_cidr, "192.168.0.0/16"} < set(found.not_masqueraded)
    assert len(set(found.not_masqueraded)) == len(found.not_masqueraded)
    assert all(ipaddress.ip_network(one) for one in found.not_masqueraded)


def test_a_cluster_that_its_hub_does_not_reach_names_no_range_of_the_hub() -> None:
    plan = load_plan("southcentralus")
    private = next(cluster for cluster in plan.clusters if cluster.network.peering_name is None)
    assert not {plan.hub.address_prefix, plan.hub.client_pool} & set(private.pod_network.not_masqueraded)


def test_traffic_is_only_counted_until_a_line_of_the_file_shapes_it() -> None:
    assert planned().shaping is None
    assert planned(internet={"machine_mbit": 100, "floor_mbit": 1}).shaping is None
    shaping = planned(internet={"shaping": True}).shaping
    assert shaping is not None
    assert (shaping.machine_mbit, shaping.floor_mbit, shaping.ceiling_mbit, shaping.weights) == (1_000, 5, 1_000, {})


def test_sweden_central_shapes_by_its_own_numbers() -> None:
    shaping = load_plan("swedencentral").clusters[0].pod_network.shaping
    assert shaping is not None
    assert (shaping.machine_mbit, shaping.floor_mbit, shaping.ceiling_mbit) == (2_000, 50, 1_000)
    assert (shaping.weights, shaping.default_weight, shaping.connections_per_pod) == ({"alignment": 2}, 1, 4_000)


def test_the_native_plugins_are_what_nobody_chose() -> None:
    assert planned().cni is Cni.NATIVE
    assert {cluster.pod_network.cni for name in ("dev", "southcentralus") for cluster in load_plan(name).clusters} == {Cni.NATIVE}


@pytest.mark.parametrize(
    ("internet", "place", "line"),
    [
        (
            {"floor_mbit": 200, "machine_mbit": 1_000},
            "floor_mbit",
            "200 times 7 pods of a machine of pool h100 is more than machine_mbit, 1000; use 142 at most, or raise machine_mbit to 1400",
        ),
        (
            {"floor_mbit": 1, "machine_mbit": 5},
            "floor_mbit",
            "1 times 7 pods of a machine of pool h100 is more than machine_mbit, 5; raise machine_mbit to 7",
        ),
        (
            {"floor_mbit": 20_000, "machine_mbit": 5},
            "floor_mbit",
            "20000 times 7 pods of a machine of pool h100 is more than machine_mbit, 5; use 1, and raise machine_mbit to 7",
        ),
        ({"floor_mbit": 50, "ceiling_mbit": 40}, "ceiling_mbit", "40 is less than floor_mbit, 50; raise it, or lower floor_mbit"),
        (
            {"ceiling_mbit": 3_000, "machine_mbit": 2_000},
            "ceiling_mbit",
            "3000 is more than machine_mbit, 2000, which all pods of a machine share; use 2000 at most, or raise machine_mbit",
        ),
        (
            {"machine_mbit": 90_000},
            "machine_mbit",
            "90000 is more than the 80,000 Mbit/s of Standard_ND96isr_H100_v5 in pool h100; use 80000 at most",
        ),
        ({"weights": {"aligment": 3}}, "weights/aligment", "aligment is no team of this cluster; did you mean alignment?"),
    ],
)
def test_rates_and_weights_that_cannot_be_are_refused(internet: dict[str, Any], place: str, line: str) -> None:
    assert faults({"internet": internet}) == [(f"pod_network/internet/{place}", line)]


def test_shares_that_just_fit_are_taken() -> None:
    assert faults({"internet": {"floor_mbit": 142, "machine_mbit": 1_000, "ceiling_mbit": 1_000}}) == []
    assert faults({"internet": {"machine_mbit": 80_000, "weights": {"alignment": 1, "multimodal": 100}}}) == []


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("10.9.0.0/16", "overlaps 10.0.0.0/8, which is never translated"),
        ("0.0.0.0/0", "overlaps 10.0.0.0/8"),
        ("128.0.0.0/1", "is larger than a /8, and most of the internet would not answer"),
        ("172.16.0.1/12", "write 172.16.0.0/12"),
        ("site", "is no IPv4 network"),
    ],
)
def test_ranges_that_would_break_the_way_out_are_refused(value: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        planned(not_masqueraded=[value])


def test_microsofts_plugins_need_an_image_that_has_them_and_no_more_pods_than_they_make_at_once() -> None:
    found = faults({"cni": "azure-vnet"}, pods_per_node=151)
    image = (
        "nd-h100@2026.11.0 carries no azure_cni, which cni: azure-vnet needs; "
        "pin an image with packages.azure_cni, or build one: node-images/nd-h100.yaml"
    )
    pods = (
        "151 is more pods than azure-vnet makes at once: beyond 150 its calls give up waiting for its lock; "
        "use at most 110, to which Kubernetes is tested"
    )
    assert {("pools/0/image", image), ("pools/1/image", image), ("pools/0/pods_per_node", pods)} <= set(found)
    assert not [line for _, line in faults({"cni": "azure-vnet"}, pods_per_node=150) if "azure-vnet makes at once" in line]
