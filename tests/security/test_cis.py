"""The rendered files of all clusters satisfy the benchmark as documented."""

from __future__ import annotations

import ast
import os

import pytest
from cis_point import DEVIATES, LIVE, MET, NOT_APPLICABLE, Point
from cis_points import NUMBERS, POINTS, tables
from cis_rendered import rendered

from stacks.load import ROOT

DOCUMENT = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- points: begin -->\n", "\n<!-- points: end -->"


@pytest.mark.parametrize("cluster", list(rendered()))
@pytest.mark.parametrize("point", [one for one in POINTS if one.checks], ids=lambda one: one.number)
def test_point(point: Point, cluster: str) -> None:
    for check in point.checks:
        check(rendered()[cluster])


def test_the_table_has_every_number_once() -> None:
    assert len(POINTS) == len(NUMBERS)
    assert {one.number for one in POINTS} == set(NUMBERS)


def test_what_is_met_is_checked_and_what_is_not_says_why() -> None:
    for one in POINTS:
        assert one.state in (MET, DEVIATES, NOT_APPLICABLE), one.number
        assert one.checks or one.live or one.state == NOT_APPLICABLE, one.number
        assert one.state == MET or len(one.how) > len("flag not given"), one.number


def test_every_test_on_servers_exists() -> None:
    module = ast.parse((ROOT / LIVE).read_text())
    there = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    named = {one.live for one in POINTS if one.live}
    assert named <= there


def test_the_document_has_the_table() -> None:
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    found, after = rest.split(END)
    if os.environ.get("GPUFLEET_UPDATE_GOLDEN"):
        DOCUMENT.write_text(before + BEGIN + tables() + END + after)
        return
    assert found == tables(), "GPUFLEET_UPDATE_GOLDEN=1 pytest tests/security/test_cis.py writes it anew"
