"""Problems from each type of pydantic error."""

from __future__ import annotations

import datetime
import ipaddress
import pathlib
from enum import StrEnum
from typing import Annotated, Literal, Self

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from stacks.file_problems import MAX_PROBLEMS, FileProblem, InvalidFileError
from stacks.load import read_model


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"
    ONE = "1"


def even(value: int) -> int:
    """Refuse odd numbers."""
    if value % 2:
        raise ValueError("is odd; give an even number")
    return value


class Circle(Strict):
    kind: Literal["circle"]
    radius: Annotated[int, Field(gt=0)]


class Square(Strict):
    kind: Literal["square"]
    side: int
    circle: int = 1


class Item(Strict):
    name: Annotated[str, StringConstraints(pattern=r"^[a-z]+$", max_length=8)]
    """Name of the item,
    in lower case."""
    count: Annotated[int, Field(ge=1, le=7500)] = 1
    """Machines."""
    colour: Colour = Colour.RED
    pairs: Annotated[int, AfterValidator(even)] = 0
    shape: Annotated[Circle | Square, Field(discriminator="kind")] | None = None


class Store(Strict):
    items: tuple[Item, ...] = Field(default=(), max_length=3)
    by_colour: dict[Colour, int] = {}
    words: dict[str, dict[str, int]] = {}
    size: int | list[int] | Circle | Square = 1
    ratio: Annotated[float, Field(lt=1)] = 0.5
    open: bool = True
    block: ipaddress.IPv4Address | None = None
    """Address of the store."""
    since: datetime.date | None = None
    tags: frozenset[str] = frozenset()
    zones: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(1, 2), min_length=2)
    box_width: int = Field(default=1, alias="width", multiple_of=2)

    @model_validator(mode="after")
    def names_differ(self) -> Self:
        """Refuse two items of one name, each at its place."""
        names = [item.name for item in self.items]
        repeated = [index for index, name in enumerate(names) if name in names[:index]]
        if repeated:
            problem = PydanticCustomError("repeated_name", "the name is taken; choose another")
            raise ValidationError.from_exception_data(
                "Store", [InitErrorDetails(type=problem, loc=("items", index, "name"), input=names[index]) for index in repeated]
            )
        if self.items and not self.open:
            raise ValueError("a closed store holds items; open it")
        return self


def problems_of(tmp_path: pathlib.Path, text: str) -> tuple[FileProblem, ...]:
    """Every problem of a text as a store."""
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidFileError) as refused:
        read_model(path, Store)
    return refused.value.problems


NOT_WHOLE = "not a whole number; write digits alone, without quotes"

TOLD = {
    "items:\n  - name: a\n    count: 7501\n": "3: items[0].count: 7501 is more than 7500; give at most 7500 (Machines)",
    "items:\n  - name: a\n    count: 0\n": "3: items[0].count: 0 is less than 1; give at least 1 (Machines)",
    f"items:\n  - {{name: a, count: {'9' * 40}}}\n": f"2: items[0].count: {'9' * 40} is more than 7500; give at most 7500 (Machines)",
    "items:\n  - name: a\n    shape: {kind: circle, radius: 0}\n": "3: items[0].shape.radius: 0 must be more than 0; give more than 0",
    "ratio: 1\n": "1: ratio: 1 must be less than 1; give less than 1",
    "width: 3\n": "1: width: 3 is no multiple of 2; give a multiple of 2",
    "items:\n  - count: 1\n": "2: items[0].name: is missing; add it (Name of the item, in lower case)",
    "items:\n  - name: a\n    cuont: 5\n": "3: items[0].cuont: is not a known key; did you mean count?",
    "items:\n  - Name: a\n": "2: items[0].Name: is not a known key; did you mean name?",
    "items:\n  - name: a\n    zzz: [1]\n": ("3: items[0].zzz: is not a known key; the keys here are name, count, colour, pairs, shape"),
    "items:\n  - {name: a, shape: circle}\n": "2: items[0].shape: 'circle' is text, not a mapping; write {kind: circle}",
    "items:\n  - {name: a, colour: [red]}\n": ("2: items[0].colour: a list of 1 is not one of red, green, 1; write 'red' without brackets"),
    "items:\n  - title: a\n": "2: items[0].title: is not a known key; did you mean name?",
    "items:\n  - \u00a0name: a\n    name: a\n": "2: items[0]['\\xa0name']: is not a known key; write a space in place of character U+00A0",
    "items:\n  - {name: a, radius: {kind: circle}}\n": (
        "2: items[0].radius: is not a known key; the keys here are name, count, colour, pairs, shape"
    ),
    "items:\n  - {name: {a}}\n": "2: items[0].name: a mapping of 1 key is not text; write it without { } (Name of the item, in lower case)",
    "items:\n  - {name: a, shape: [kind: circle, radius: 1]}\n": (
        "2: items[0].shape: a list of 2 is not a mapping; write { } in place of [ ], or leave the dashes out"
    ),
    "tags: blue\n": "1: tags: 'blue' is text, not a list; write [blue]",
    "zones: {2, 3}\n": "1: zones: a mapping of 2 keys is not a list; write [ ] in place of { }",
    "items:\n  - {name: a, count: 5 // five}\n": (
        "2: items[0].count: '5 // five' is text, not a whole number; write 5, and begin a comment with a space and # (Machines)"
    ),
    "box_width: 2\n": "1: box_width: is not a known key; did you mean width?",
    "items:\n  - name: AB\n": (
        "2: items[0].name: 'AB' does not have the required form; write what matches ^[a-z]+$ (Name of the item, in lower case)"
    ),
    "items:\n  - name: abcdefghi\n": ("2: items[0].name: has 9 characters, more than 8; give at most 8 (Name of the item, in lower case)"),
    "items:\n  - name: 1.36\n": '2: items[0].name: 1.36 is a number, not text; quote it: "1.36" (Name of the item, in lower case)',
    "items:\n  - name: true\n": '2: items[0].name: true is not text; quote it: "true" (Name of the item, in lower case)',
    "items:\n  - {name: a, count: '5'}\n": f"2: items[0].count: '5' is text, {NOT_WHOLE} (Machines)",
    "items:\n  - {name: a, count: 5.5}\n": f"2: items[0].count: 5.5 is a number, {NOT_WHOLE} (Machines)",
    "items:\n  - {name: a, count: null}\n": f"2: items[0].count: null is {NOT_WHOLE} (Machines)",
    "items:\n  - {name: a, count: [1]}\n": f"2: items[0].count: a list of 1 is {NOT_WHOLE} (Machines)",
    "items:\n  name: a\n": "1: items: a mapping of 1 key is not a list; put a dash and a space before the first key of each entry",
    "items:\n  - name:a\n": "2: items[0]: 'name:a' is text, not a mapping; put a space after the colon",
    "items:\n  - a\n": "2: items[0]: 'a' is text, not a mapping; write one `key: value` a line",
    "open: 'true'\n": "1: open: 'true' is text, not true or false; write true or false, without quotes",
    "ratio: '0.5'\n": "1: ratio: '0.5' is text, not a number; write a number, without quotes",
    "items: [{name: a}, {name: b}, {name: c}, {name: d}]\n": "1: items: has 4 entries, more than 3; give at most 3",
    "zones: [1]\n": "1: zones: has 1 entry, fewer than 2; give at least 2",
    "zones: [1, 0]\n": "1: zones[1]: 0 is less than 1; give at least 1",
    "items:\n  - {name: a, colour: gren}\n": "2: items[0].colour: 'gren' is not one of red, green, 1; did you mean green?",
    "items:\n  - {name: a, colour: GREEN}\n": "2: items[0].colour: 'GREEN' is not one of red, green, 1; did you mean green?",
    "items:\n  - {name: a, colour: violet}\n": "2: items[0].colour: 'violet' is not one of red, green, 1; write one of them",
    "items:\n  - {name: a, colour: 1}\n": '2: items[0].colour: 1 is a whole number, not text; quote it: "1"',
    "by_colour:\n  red: 1\n  blue: 2\n": "3: by_colour.blue: 'blue' is not one of red, green, 1; write one of them",
    "by_colour:\n  red: x\n": f"2: by_colour.red: 'x' is text, {NOT_WHOLE}",
    "items:\n  - {name: a, pairs: 3}\n": "2: items[0].pairs: 3 is odd; give an even number",
    "open: false\nitems:\n  - name: a\n": "1:1: a closed store holds items; open it",
    "block: 10.0.0\n": "1: block: '10.0.0': Expected 4 octets in '10.0.0'; correct it (Address of the store)",
    "since: '2026-11-31'\n": (
        "1: since: '2026-11-31' is refused: Input should be a valid date in the format YYYY-MM-DD, day value is outside expected range; "
        "correct it"
    ),
    "items:\n  - {name: a, shape: {kind: circel, radius: 1}}\n": (
        "2: items[0].shape.kind: 'circel' is not one of circle, square; did you mean circle?"
    ),
    "items:\n  - {name: a, shape: {radius: 1}}\n": "2: items[0].shape.kind: is missing; write one of circle, square",
    "items:\n  - {name: a, shape: {kind: square, side: 1, circle: x}}\n": (f"2: items[0].shape.circle: 'x' is text, {NOT_WHOLE}"),
    "size: x\n": f"1: size: 'x' is text, {NOT_WHOLE}",
    "size: [1, x]\n": f"1: size[1]: 'x' is text, {NOT_WHOLE}",
    "size: {kind: square, side: x}\n": f"1: size.side: 'x' is text, {NOT_WHOLE}",
    "tags: [a, 5]\n": '1: tags[1]: 5 is a whole number, not text; quote it: "5"',
    'words:\n  a/b: {"[key]": "x\\ty"}\n': f"2: words['a/b']['[key]']: 'x\\ty' is text, {NOT_WHOLE}",
    "- a\n": "1:1: a list of 1 is not a mapping; write one `key: value` a line",
    "hello\n": "1:1: 'hello' is text, not a mapping; write one `key: value` a line",
}


@pytest.mark.parametrize(("text", "result"), TOLD.items())
def test_each_error_is_one_line_with_its_place_and_what_is_right(tmp_path: pathlib.Path, text: str, result: str) -> None:
    assert [str(problem).removeprefix(f"{tmp_path}/x.yaml:") for problem in problems_of(tmp_path, text)] == [result]


def test_every_error_of_a_file_is_told_at_once(tmp_path: pathlib.Path) -> None:
    problems = problems_of(
        tmp_path,
        """\
items:
  - name: no
    count: 0
  - count: 1e3
    wrong: [x]
  - name: c
    count: 7501
    shape: {kind: circle, side: 1}
open: maybe
ratio: 0.5
ratio: 0.6
""",
    )
    assert [(problem.line, problem.path) for problem in problems] == [
        (2, "items[0].name"),
        (3, "items[0].count"),
        (4, "items[1].name"),
        (4, "items[1].count"),
        (5, "items[1].wrong"),
        (7, "items[2].count"),
        (8, "items[2].shape.side"),
        (9, "open"),
        (11, "ratio"),
    ]


def test_errors_that_a_validator_places_itself_are_told_there(tmp_path: pathlib.Path) -> None:
    problems = problems_of(tmp_path, "items:\n  - name: a\n  - name: a\n  - name: a\n")
    assert [str(problem).removeprefix(f"{tmp_path}/") for problem in problems] == [
        "x.yaml:3: items[1].name: the name is taken; choose another",
        "x.yaml:4: items[2].name: the name is taken; choose another",
    ]


def test_a_misspelt_key_is_not_told_again_as_a_missing_one(tmp_path: pathlib.Path) -> None:
    assert [problem.path for problem in problems_of(tmp_path, "items:\n  - nmae: a\n")] == ["items[0].nmae"]


def test_a_word_that_means_two_things_is_told_once(tmp_path: pathlib.Path) -> None:
    (problem,) = problems_of(tmp_path, "open: no\n")
    assert problem.remedy == "write true or false"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("items:\n  - name: no\n", "quote it"),
        ("items:\n  - {name: a, count: 010}\n", "write it without leading zero"),
        ("items:\n  - {name: a, count: 4:00}\n", "write digits alone, without quotes (Machines)"),
        ("items:\n  - name: 0x1f\n", "write what matches ^[a-z]+$ (Name of the item, in lower case)"),
        ("opens: no\n", "did you mean open?"),
    ],
)
def test_the_remedy_of_a_word_that_means_two_things_is_that_of_its_key(tmp_path: pathlib.Path, text: str, remedy: str) -> None:
    (problem,) = problems_of(tmp_path, text)
    assert problem.remedy == remedy


def test_a_file_of_nothing_but_unknown_keys_is_refused_after_a_bounded_number(tmp_path: pathlib.Path) -> None:
    problems = problems_of(tmp_path, "".join(f"key{index}: 1\n" for index in range(1_000)))
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1].reason == f"has more than {MAX_PROBLEMS} problems"


def test_a_very_long_unknown_key_is_cut(tmp_path: pathlib.Path) -> None:
    (problem,) = problems_of(tmp_path, f"? {'k' * 500_000}\n: 1\n")
    assert len(str(problem)) < 500 + len(str(tmp_path))
