"""The scenarios that are shipped are what their schema and their first lines say, and come to the region's quotas."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from components.plan.subscription_limits import vcpus
from rehearsal.azure.capacity import capacity_of
from rehearsal.azure.persistence import dump, load
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.scenario import Grant, Quotas, Scenario, Shortage, scenario_of
from rehearsal.azure.scenario_files import SCENARIOS, SCHEMA, in_region, load_scenario, scenario_names, schema_text
from stacks.file_problems import InvalidFileError
from stacks.load import load_plan

NAMES = ("allocation-3-percent", "bad-week", "calm", "quota-one-short", "throttled")


def test_the_shipped_scenarios_are_these() -> None:
    assert scenario_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_scenario_is_read_and_fits_the_schema_that_it_names(name: str) -> None:
    text = (SCENARIOS / f"{name}.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=schema.json\n# ")
    jsonschema.validate(yaml.safe_load(text), json.loads(SCHEMA.read_text()))
    assert load_scenario(name) == Scenario.model_validate_json(json.dumps(yaml.safe_load(text)))
    assert load_scenario(str(SCENARIOS / f"{name}.yaml")) == load_scenario(name)


def test_the_schema_of_scenarios_is_fresh() -> None:
    assert SCHEMA.read_text() == schema_text()


def test_an_unknown_scenario_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(InvalidFileError, match=r"did you mean bad-week\?"):
        load_scenario("bad-weak")


def test_a_mistake_in_a_scenario_file_is_told_with_its_place_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "outages:\n  - {starts: 2h, ends: 90}\nallocation_failure:\n  - {rate: 0.1}\nmaintenance:\n  - {at: 1h90m, share: 0.1}\n"
    )
    with pytest.raises(InvalidFileError) as refused:
        load_scenario(str(path))
    lines = str(refused.value)
    assert "mine.yaml:2: outages[0].ends" in lines
    assert "mine.yaml:3: allocation_failure" in lines
    assert "mine.yaml:6: maintenance[0].at" in lines
    assert "write 2h30m and not 1h90m" in lines


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "outages: [{services: [Microsoft.Compte]}]",
            "'Microsoft.Compte' is not a resource provider of the model; did you mean Microsoft.Compute?",
        ),
        ("bad_hosts: [{share: 1, vm_size: Standard_Nope}]", "'Standard_Nope' is not a VM size of the model; "),
        (
            "evictions: [{per_instance_day: 1, vm_size: Standard_ND96isr_H100_v55}]",
            "'Standard_ND96isr_H100_v55' is not a VM size of the model; did you mean Standard_ND96isr_H100_v5?",
        ),
        (
            "outages: [{starts: 5 days}]",
            "'5 days' has ' ' as character 2, unlike the required form; write a span of time without spaces, larger units first: 1d",
        ),
        ("maintenance: [{share: 1, at: ''}]", "maintenance[0].at"),
        ("outages: [{starts: 5}]", "write a span of time"),
        ("quotas: {granted: [{family: no-family, vcpus: 1}]}", "write a VM family as `az vm list-usage` names it: standardNDSH100v5Family"),
    ],
)
def test_what_would_never_be_met_is_refused_in_words(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(InvalidFileError) as refused:
        load_scenario(str(path))
    assert told in str(refused.value)
    assert "[0-9]" not in str(refused.value)


def test_sizes_and_services_are_named_in_any_capitals() -> None:
    scenario = Scenario.model_validate(
        {"bad_hosts": ({"share": 1, "vm_size": "Standard_nd96ISR_h100_v5"},), "outages": ({"services": ("Microsoft.compute",)},)}
    )
    assert scenario.bad_hosts[0].takes("Standard_ND96isr_H100_v5")


def test_an_interval_that_ends_before_it_starts_is_told_as_that(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("outages:\n  - {starts: 2h, ends: 1h}\n")
    with pytest.raises(InvalidFileError, match="ends at 1h, not after it starts at 2h; give a later end"):
        load_scenario(str(path))


def test_grants_are_those_of_the_region_file_where_the_scenario_names_none() -> None:
    plan = load_plan("southcentralus")
    granted = {row.family: row.vcpus for row in in_region(Scenario(), plan).quotas.granted}
    assert granted == {row.family: row.vcpus for row in plan.spec.quotas}
    mine = Scenario(quotas=Quotas(granted=(Grant(family="STANDARDlsv3family", vcpus=8),)))
    rows = [row for row in in_region(mine, plan).quotas.granted if row.family.lower() == "standardlsv3family"]
    assert [row.vcpus for row in rows] == [8]


@pytest.mark.parametrize(
    ("region", "family", "machine"), [("dev", "lowPriorityCores", 24), ("southcentralus", "standardNDSH100v5Family", 96)]
)
def test_one_machine_short_is_one_machine_less_than_the_region_needs(region: str, family: str, machine: int) -> None:
    plan = load_plan(region)
    needs = {family: number for (_, family), number in vcpus(plan).items()}
    scenario = in_region(load_scenario("quota-one-short"), plan)
    assert scenario.quotas.short == ()
    assert [row.vcpus for row in scenario.quotas.granted if row.family == family] == [needs[family] - machine]
    others = {row.family: row.vcpus for row in scenario.quotas.granted if row.family != family}
    assert others == {row.family: row.vcpus for row in plan.spec.quotas if row.family != family}


def test_a_shortage_of_a_family_that_the_region_does_not_use_is_refused() -> None:
    scenario = Scenario(quotas=Quotas(short=(Shortage(family="standardXYZFamily"),)))
    with pytest.raises(InvalidFileError, match=r"is not used in dev; families that dev uses: .*lowPriorityCores"):
        in_region(scenario, load_plan("dev"))


def test_a_model_in_a_scenario_is_saved_and_read_back_with_all_that_it_keeps() -> None:
    plan = load_plan("dev")
    scenario = in_region(load_scenario("bad-week"), plan)
    cloud = new_cloud([plan.spec.subscription], plan.spec.access.tenant, seed=scenario.seed, scenario=scenario)
    capacity_of(cloud).reserve(
        cloud, subscription=plan.spec.subscription, location="swedencentral", size="Standard_D2s_v5", spot=False, machines=3
    )
    cloud.advance(cloud.now + 1_000)
    saved = json.loads(json.dumps(dump(cloud)))
    back = load(saved, lambda data: new_cloud(data["subscriptions"], data["tenant"], seed=data["seed"], scenario=Scenario()))
    assert scenario_of(back) == scenario
    assert dump(back) == saved
