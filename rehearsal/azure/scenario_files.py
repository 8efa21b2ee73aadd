"""Scenario files, and their quotas in a region: those of the region file unless the scenario replaces them."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from difflib import get_close_matches

from components.plan.model import RegionPlan
from components.plan.subscription_limits import SPOT_FAMILY, vcpus
from components.spec.pool import Capacity
from rehearsal.azure.scenario import Grant, Scenario, Shortage
from stacks.file_problems import invalid_file, problem, shown
from stacks.load import ROOT, read_model

SCENARIOS = ROOT / "rehearsal" / "scenarios"
SCHEMA = SCENARIOS / "schema.json"


def scenario_names() -> tuple[str, ...]:
    """Return the names of the shipped scenarios, sorted."""
    return tuple(sorted(path.stem for path in SCENARIOS.glob("*.yaml")))


def load_scenario(scenario: str) -> Scenario:
    """Return a scenario by its name under rehearsal/scenarios or by a path. Raises InvalidFileError."""
    if "/" in scenario or scenario.endswith((".yaml", ".yml")):
        return read_model(pathlib.Path(scenario), Scenario)
    names = scenario_names()
    if scenario not in names:
        near = get_close_matches(scenario, names, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}; or give a path to a file"
        raise invalid_file([problem("rehearsal/scenarios", (), None, scenario, f"{shown(scenario)} is no scenario", remedy)])
    return read_model(SCENARIOS / f"{scenario}.yaml", Scenario)


def in_region(scenario: Scenario, plan: RegionPlan) -> Scenario:
    """Return the scenario with all grants of the region file that it does not replace, and with its shortages as grants.

    Raises InvalidFileError if a shortage names a family that the region does not use.
    """
    own = scenario.quotas.granted
    taken = {(row.subscription, row.family.lower()) for row in own}
    anywhere = {family for subscription, family in taken if subscription is None}
    filed = (
        Grant(
            family=row.family,
            vcpus=row.vcpus,
            subscription=row.subscription or plan.spec.subscription,
            location=plan.spec.location,
        )
        for row in plan.spec.quotas
    )
    from_file = [row for row in filed if row.family.lower() not in anywhere and (row.subscription, row.family.lower()) not in taken]
    short = [_short(row, number, plan) for number, row in enumerate(scenario.quotas.short)]
    replaced = {(row.subscription, row.family.lower()) for row in short}
    grants = [row for row in (*own, *from_file) if (row.subscription, row.family.lower()) not in replaced]
    quotas = scenario.quotas.model_copy(update={"granted": (*grants, *short), "short": ()})
    return scenario.model_copy(update={"quotas": quotas})


def schema_text() -> str:
    """Return the JSON schema of a scenario file as it is shipped."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Scenario.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _short(row: Shortage, number: int, plan: RegionPlan) -> Grant:
    """Return the insufficient grant, in the subscription that uses the family most."""
    needs = vcpus(plan)
    requested = row.family or max(needs, key=lambda key: needs[key])[1]
    found = [key for key in needs if key[1].lower() == requested.lower()]
    if not found:
        remedy = f"families that {plan.name} uses: {', '.join(sorted({family for _, family in needs}))}"
        path = ("quotas", "short", number, "family")
        raise invalid_file([problem("scenario", path, None, shown(requested), f"{shown(requested)} is not used in {plan.name}", remedy)])
    subscription, family = max(found, key=lambda key: needs[key])
    missing = row.machines * max(_machine_vcpus(plan, subscription, family))
    return Grant(family=family, vcpus=max(0, needs[subscription, family] - missing), subscription=subscription, location=plan.spec.location)


def _machine_vcpus(plan: RegionPlan, subscription: str, family: str) -> Iterator[int]:
    """Yield the vCPUs of each machine group in a subscription that counts under a family."""
    for cluster in plan.clusters:
        if cluster.subscription != subscription:
            continue
        plane = (cluster.api_servers.size, cluster.etcd.size, cluster.events_etcd.size)
        yield from (size.vcpus for size in plane if size.family == family)
        for pool in cluster.pools:
            if (SPOT_FAMILY if pool.spec.capacity is Capacity.SPOT else pool.size.family) == family:
                yield pool.size.vcpus
