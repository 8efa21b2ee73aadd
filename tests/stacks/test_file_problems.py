"""Text of problems of a file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stacks.file_problems import MAX_PROBLEMS, InvalidFileError, Position, invalid_file, path_text, problem, shown


def test_a_problem_is_one_line_with_file_line_path_reason_and_remedy() -> None:
    result = problem(
        "r/x.yaml", ("clusters", 1, "pools", 0, "nodes"), Position(41, 9), "7501", "7501 is more than 7500", "give at most 7500"
    )
    assert str(result) == "r/x.yaml:41: clusters[1].pools[0].nodes: 7501 is more than 7500; give at most 7500"
    assert (result.line, result.column, result.value) == (41, 9, "7501")


def test_a_problem_of_the_text_itself_names_the_column() -> None:
    assert str(problem("x.yaml", (), Position(3, 7), None, "is wrong", "mend it")) == "x.yaml:3:7: is wrong; mend it"


def test_a_problem_of_the_file_itself_names_the_file_alone() -> None:
    assert str(problem("x.yaml", (), None, None, "is wrong", "")) == "x.yaml: is wrong"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        ((0,), "[0]"),
        (("a", "b-c", 2, "d_e"), "a.b-c[2].d_e"),
        (("labels", "gpufleet.io/team"), "labels['gpufleet.io/team']"),
        (("a\n\x1b[2J", "x"), "['a\\n\\x1b[2J'].x"),
    ],
)
def test_a_path_is_written_as_people_write_it(path: tuple[str | int, ...], text: str) -> None:
    assert path_text(path) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7501, "7501"),
        (1.5, "1.5"),
        ("a\nb\x1b", "'a\\nb\\x1b'"),
        ("a\u202eb", "'a\\u202eb'"),
        ("x" * 1000, "'" + "x" * 59 + "…'"),
        (10**300, "1" + "0" * 58 + "…"),
        ([1, 2], "a list of 2"),
        ({}, "a mapping of 0 keys"),
        ({"a": 1}, "a mapping of 1 key"),
    ],
)
def test_a_value_is_written_as_in_yaml_on_one_line_and_cut(value: object, text: str) -> None:
    assert shown(value) == text


@settings(deadline=None)
@given(st.text(), st.text(), st.text(), st.lists(st.text() | st.integers(0)), st.text())
def test_no_text_makes_a_problem_longer_than_one_line(file: str, reason: str, remedy: str, path: list[str | int], value: str) -> None:
    line = str(problem(file, tuple(path), Position(1, 1), shown(value), reason, remedy))
    assert line.isprintable()


def test_a_long_message_keeps_its_beginning_and_end() -> None:
    result = problem("x.yaml", (), None, None, f"value {'x' * 100_000} is too long", "shorten it")
    assert len(str(result)) < 500
    assert str(result).startswith("x.yaml: value xxx")
    assert str(result).endswith("xxx is too long; shorten it")


def test_a_refusal_tells_each_problem_once_in_the_order_of_the_file() -> None:
    late, early = (problem("x.yaml", ("a",), Position(line, 1), None, "is wrong", "mend it") for line in (9, 2))
    refused = invalid_file([late, early, late])
    assert refused.problems == (early, late)
    assert str(refused) == "x.yaml:2: a: is wrong; mend it\nx.yaml:9: a: is wrong; mend it"


def test_a_refusal_of_very_many_problems_tells_the_first_and_says_so() -> None:
    refused = invalid_file(problem("x.yaml", (), Position(line, 1), None, "is wrong", "mend it") for line in range(1, 10_000))
    assert isinstance(refused, InvalidFileError)
    assert len(refused.problems) == MAX_PROBLEMS + 1
    assert str(refused.problems[-1]) == f"x.yaml: has more than {MAX_PROBLEMS} problems; correct those above first"
