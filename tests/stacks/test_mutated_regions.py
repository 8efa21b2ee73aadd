"""Each problem of a mutated region file is one line with its path."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import yaml
from drafts import DOCUMENTS, problems
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stacks.file_problems import path_text
from stacks.load import region_names

Path_ = tuple[str | int, ...]


def places(node: Any, path: Path_ = ()) -> list[Path_]:
    """Every path of a document."""
    below: list[Path_] = []
    if isinstance(node, dict):
        below = [place for key, value in node.items() for place in places(value, (*path, key))]
    elif isinstance(node, list):
        below = [place for index, value in enumerate(node) for place in places(value, (*path, index))]
    return [path, *below] if path else below


def at(document: Any, path: Path_) -> Any:
    """Return the value at a path."""
    for part in path:
        document = document[part]
    return document


WRONG: dict[type, list[Any]] = {
    int: ["seven", -1, 10**30, 1.5, True, None, [], {}],
    str: [5, None, True, ["x"], {"x": "y"}, "\u0000", "x" * 100_000, "Standard_Nope"],
    bool: ["yes", 2, None, []],
    list: ["x", 5, {"a": 1}],
    dict: ["x", 5, ["a"]],
}
BEYOND = {"nodes": 7_501, "slot": 31, "pods_per_node": 256, "count": 10_001, "percent": 51, "hours": 25, "vcpus": 100_000_001}
"""The first number beyond what a key accepts anywhere."""
NULLABLE = ("largest_gang", "ceiling_mbit", "per_pool_percent", "per_team_percent")
"""Keys of the shipped files that may as well be null."""
FREE_TEXT = ("domain", "labels", "name", "team")
"""Places where another text is as good; a changed team or pool name is a problem only where others speak of it."""


def fits(item: object, key: str | int) -> bool:
    """Return True if a key accepts a value that is invalid elsewhere, or has no specific message for it."""
    return (item is None and key in NULLABLE) or (item == "Standard_Nope" and key != "vm_size")


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, str, Path_]:
    """A shipped region with one mutation that must be refused: name, text, and the place of the problem."""
    name = draw(st.sampled_from(region_names()))
    document = copy.deepcopy(DOCUMENTS[name])
    kind = draw(st.sampled_from(["retype", "inject", "slot", "overlap", "size", "range"]))
    path = draw(st.sampled_from(places(document)))
    if kind == "inject":
        nodes = [
            place for place in places(document) if isinstance(at(document, place), dict) and place[-1] not in ("labels", "deadline_minutes")
        ]
        path = draw(st.sampled_from(nodes))
        key = draw(st.sampled_from(["nodez", "x", "__class__", "nodes\n", "é"]))
        at(document, path)[key] = 1
        path = (*path, key)
    elif kind == "retype":
        value = at(document, path)
        wrong = draw(st.sampled_from([item for item in WRONG[type(value)] if not fits(item, path[-1])]))
        if path[-1] in FREE_TEXT and isinstance(wrong, str):
            wrong = 5
        at(document, path[:-1])[path[-1]] = wrong
    elif kind == "slot":
        clusters = document["clusters"]
        clusters.append(dict(copy.deepcopy(clusters[0]), name="twin"))
        path = ("clusters", len(clusters) - 1, "slot")
    elif kind == "overlap":
        others = [other["address_space"] for region, other in DOCUMENTS.items() if region != name]
        document["address_space"] = draw(st.sampled_from(others))
        path = ("address_space",)
    elif kind == "range":
        path = draw(st.sampled_from([place for place in places(document) if place[-1] in BEYOND]))
        at(document, path[:-1])[path[-1]] = draw(st.one_of(st.integers(max_value=-1), st.integers(min_value=BEYOND[str(path[-1])])))
    else:
        path = ("clusters", 0, "pools", 0, "vm_size")
        at(document, path[:-1])["vm_size"] = draw(st.from_regex(r"Standard_[A-Z]{9}", fullmatch=True))
    return name, yaml.safe_dump(document, sort_keys=False, allow_unicode=True), path


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=mutated())
def test_a_mutated_region_is_refused_line_by_line_and_never_with_a_traceback(tmp_path: Path, case: tuple[str, str, Path_]) -> None:
    name, text, path = case
    lines = problems(tmp_path, text, name)
    assert all(re.match(rf"{name}\.yaml(:\d+)?(:\d+)?: ", line) for line in lines), lines
    assert all(line.isprintable() and len(line) < 1_200 for line in lines)
    assert any(f": {path_text(path)}" in line or f": {path_text(path[:-1])}: " in line for line in lines), (path, lines)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(region_names()), data=st.data())
def test_a_deleted_required_key_is_named(tmp_path: Path, name: str, data: st.DataObject) -> None:
    document = copy.deepcopy(DOCUMENTS[name])
    required = {
        "location",
        "subscription",
        "address_space",
        "access",
        "hub",
        "clusters",
        "slot",
        "purpose",
        "control_plane",
        "pools",
        "rotation",
        "vm_size",
        "budget",
    }
    path = data.draw(st.sampled_from([place for place in places(document) if place[-1] in required]))
    del at(document, path[:-1])[path[-1]]
    lines = problems(tmp_path, yaml.safe_dump(document, sort_keys=False), name)
    assert any(str(path[-1]) in line and "is missing" in line for line in lines), lines
