"""Every row of the table of restrictions refuses what breaks it, in a PUT and in a PATCH, and accepts the values at its bounds."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_calls import Calls
from restriction_cases import VALUES, base_of, calls_with_parents, cases_of, write

from rehearsal.azure.arm_id import parse
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Request
from rehearsal.azure.restrictions.machines import MACHINE, SCALE_SET
from rehearsal.azure.restrictions.page import page
from rehearsal.azure.restrictions.restriction import Restriction, Subject, values_at
from rehearsal.azure.restrictions.table import LISTED_IN, RESTRICTIONS, RestrictionCheck

PAGE = Path(__file__).parents[3] / "docs" / "azure-restrictions.md"
ROWS = {row.key: row for row in RESTRICTIONS}


@cache
def azure() -> Calls:
    return calls_with_parents()


def mutated(row: Restriction, kind: str, where: str, data: st.DataObject, *, broken: bool) -> tuple[str, Json]:
    """Return the id and the body of a type with a value that breaks a row, or that does not."""
    case = data.draw(cases_of(row)[0 if broken else 1])
    text, body = base_of(kind)
    if where == "name":
        return f"{azure().full(text).rpartition('/')[0]}/{case.value}", body
    for other, value in case.also.items():
        write(kind, body, other, value)
    write(kind, body, where, case.value)
    return azure().full(text), body


def named_value(row: Restriction, text: str, body: Json, where: str) -> str:
    """Return what the message of a refusal must name."""
    arm_id = parse(text)
    subject = Subject(azure().cloud, arm_id, body, None)
    values = [arm_id.name] if where == "name" else values_at(body, tuple(where.split(".")))
    found = next(fields for value in values if (fields := row.rule.broken(value, subject)) is not None)
    return str(found["value"]) if "{value}" in row.message else ""


def refusal(method: str, text: str, body: Json) -> AzureError:
    with pytest.raises(AzureError) as refused:
        azure().cloud.handle(Request(method, parse(text), body=body))
    return refused.value


@pytest.mark.parametrize("key", ROWS)
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(st.data())
def test_a_row_refuses_what_breaks_it_and_accepts_its_bounds(key: str, data: st.DataObject) -> None:
    row = ROWS[key]
    kind, where = data.draw(st.sampled_from(sorted(row.places.items())))
    text, body = mutated(row, kind, where, data, broken=True)
    found = refusal("PUT", text.replace("/single", "/new").replace("/pool", "/new") if where != "name" else text, body)
    assert (found.status, found.code) == (row.status, row.code), found
    assert named_value(row, text, body, where) in found.message
    if kind in (MACHINE, SCALE_SET) and where != "name" and not row.creation_only:
        assert (patched := refusal("PATCH", text, body)).code in (row.code, "PropertyChangeNotAllowed"), patched
    text, body = mutated(row, kind, where, data, broken=False)
    RestrictionCheck().check(azure().cloud, parse(text), body, None)


def test_rules_of_a_child_hold_in_the_body_of_its_parent() -> None:
    group, whole = base_of("Microsoft.Network/networkSecurityGroups")
    whole["properties"]["securityRules"][0]["properties"] |= {"priority": 99}
    assert refusal("PUT", azure().full(group), whole).code == "SecurityRuleInvalidPriority"
    assert {kind for row in RESTRICTIONS for kind in row.places} >= set(LISTED_IN)


def test_the_page_of_the_restrictions_is_rendered_from_the_table() -> None:
    assert PAGE.read_text() == page(), "run gpufleet schema"


def test_each_row_has_a_key_of_its_own_and_a_source() -> None:
    assert len(ROWS) == len(RESTRICTIONS)
    assert set(VALUES) <= set(ROWS)
    assert all(row.source.startswith(("https://learn.microsoft.com/", "https://github.com/")) for row in RESTRICTIONS)
