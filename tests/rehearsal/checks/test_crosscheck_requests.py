"""Requests that Azure would refuse for their size are found, and so are network writes that the plan did not count."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from rehearsed_regions import rehearsed

from components.boot.machine import CUSTOM_DATA_BYTES
from components.plan import azure_limits
from rehearsal.checks import Finding, from_graph
from rehearsal.checks.request_bodies import TAKEN
from rehearsal.checks.usage import COUNTED


def of_check(findings: tuple[Finding, ...], check: str) -> list[Finding]:
    return [finding for finding in findings if finding.check == check]


def test_the_longest_document_that_boot_writes_is_the_longest_that_azure_takes() -> None:
    assert azure_limits.CUSTOM_DATA.bound == len(base64.b64encode(bytes(CUSTOM_DATA_BYTES)))


@pytest.mark.parametrize(("extra", "found"), [(0, 0), (1, 1)])
@pytest.mark.parametrize("name", ["near-gpu-000", "far-etcd-1"])
def test_custom_data_is_refused_from_the_first_character_too_many(name: str, extra: int, found: int) -> None:
    def fill(inputs: dict[str, Any]) -> None:
        profile = inputs.get("virtualMachineProfile", inputs)["osProfile"]
        profile["customData"] = "A" * (87_380 + extra)

    region = rehearsed("pair").changed(name, fill)
    findings = of_check(from_graph(region.plan, region.base, region.clusters), TAKEN)
    assert len(findings) == found
    for finding in findings:
        assert finding.where.endswith(f"/{name}: custom data of a machine")
        assert (finding.planned, finding.found) == ("at most 87,380", "87,381 base64 characters")


def test_a_body_over_four_mebibytes_is_refused() -> None:
    region = rehearsed("pair").changed("near-nsg-nodes", lambda inputs: inputs.update(tags={"note": "x" * 4_194_304}))
    (finding,) = of_check(from_graph(region.plan, region.base, region.clusters), TAKEN)
    assert finding.where.endswith("/near-nsg-nodes: request body")
    assert finding.planned == "at most 4,194,304"


@pytest.mark.parametrize(("name", "stack"), [("near-snet-etcd", "pair"), ("pair-hub-resolver", "pair-base")])
def test_a_network_resource_too_few_or_too_many_differs_from_the_plans_count(name: str, stack: str) -> None:
    region = rehearsed("pair")
    lacking = region.without(name)
    (fewer,) = [
        finding
        for finding in of_check(from_graph(lacking.plan, lacking.base, lacking.clusters), COUNTED)
        if finding.where.endswith(azure_limits.NETWORK_WRITES.name)
    ]
    assert f"update of {stack}:" in fewer.where
    assert int(fewer.planned) - int(fewer.found) == 1
    twin = replace(region.resource("near-snet-etcd"), urn="urn:twin", name="twin")
    more = region.joined_by(twin)
    (over,) = [
        finding
        for finding in of_check(from_graph(more.plan, more.base, more.clusters), COUNTED)
        if finding.where.endswith(azure_limits.NETWORK_WRITES.name)
    ]
    assert int(over.found) - int(over.planned) == 1
