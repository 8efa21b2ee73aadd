"""Files become typed values, or problems with positions."""

from __future__ import annotations

import copy
import json
import os
import pathlib
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from stacks.file_problems import FileProblem, InvalidFileError, path_text
from stacks.load import read_model
from stacks.strict_yaml import MAX_BYTES

Path = tuple[str | int, ...]
UNTIMED = settings(deadline=None)


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Zone(StrEnum):
    ONE = "1"
    TWO = "2"


class Pool(Strict):
    name: Annotated[str, StringConstraints(pattern=r"^[a-z]{1,8}$")]
    nodes: Annotated[int, Field(ge=0, le=7500)]
    spot: bool
    zone: Zone
    labels: dict[str, str]


class Cluster(Strict):
    slot: Annotated[int, Field(ge=0, le=62)]
    pools: tuple[Pool, ...] = Field(min_length=1)


class Region(Strict):
    name: Annotated[str, StringConstraints(pattern=r"^[a-z]{1,8}$")]
    clusters: tuple[Cluster, ...] = Field(min_length=1)


NAMES = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
POOLS = st.fixed_dictionaries(
    {
        "name": NAMES,
        "nodes": st.integers(0, 7500),
        "spot": st.booleans(),
        "zone": st.sampled_from(["1", "2"]),
        "labels": st.dictionaries(NAMES, st.sampled_from(["no", "1.30", "a b", ""]), max_size=2),
    }
)
CLUSTERS = st.fixed_dictionaries({"slot": st.integers(0, 62), "pools": st.lists(POOLS, min_size=1, max_size=2)})
REGIONS = st.fixed_dictionaries({"name": NAMES, "clusters": st.lists(CLUSTERS, min_size=1, max_size=2)})


def written(value: Any, path: Path = ()) -> Iterator[tuple[Path | None, str]]:
    """Return a document with one key per line, each with its path; the dash of a list entry has its own line."""
    indent = "  " * len(path)
    for key, below in value.items() if isinstance(value, dict) else enumerate(value):
        inner = (*path, key)
        result = None if isinstance(key, int) else inner
        head = f"{indent}-" if isinstance(key, int) else f"{indent}{json.dumps(key)}:"
        if isinstance(below, dict | list) and below:
            yield result, head
            yield from written(below, inner)
        else:
            yield result, f"{head} {json.dumps(below)}"


def line_of(lines: list[tuple[Path | None, str]], path: Path) -> int:
    """Line of a path, or of the first key below it where it is a list entry."""
    return next(number for number, (result, _) in enumerate(lines, 1) if result is not None and result[: len(path)] == path)


def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every path of a document with its value."""
    yield path, value
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(below, (*path, key))


def put(document: Any, path: Path, value: Any) -> Any:
    """A document with another value at a path."""
    changed = copy.deepcopy(document)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("regions") / "x.yaml"


def refused(file: pathlib.Path, text: str) -> tuple[FileProblem, ...]:
    """Return the problems of a text that is no region; each is one printable line."""
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidFileError) as caught:
        read_model(file, Region)
    assert all(str(problem).isprintable() and len(str(problem)) < 1200 for problem in caught.value.problems)
    assert str(caught.value).count("\n") == len(caught.value.problems) - 1
    return caught.value.problems


def refused_once(file: pathlib.Path, lines: list[tuple[Path | None, str]], path: Path, line: int) -> FileProblem:
    """The only problem of a document, which stands at a path and line."""
    problems = refused(file, "".join(f"{text}\n" for _, text in lines))
    assert [(problem.path, problem.line) for problem in problems] == [(path_text(path), line)]
    return problems[0]


@UNTIMED
@given(region=REGIONS)
def test_a_valid_file_is_read_back_as_it_was_written(file: pathlib.Path, region: dict[str, Any]) -> None:
    file.write_text("".join(f"{text}\n" for _, text in written(region)), encoding="utf-8")
    assert read_model(file, Region).model_dump(mode="json") == region


@UNTIMED
@given(region=REGIONS, data=st.data())
def test_a_deleted_key_is_told_at_what_lacks_it(file: pathlib.Path, region: dict[str, Any], data: st.DataObject) -> None:
    keys = [path for path, _ in places(region) if path and isinstance(path[-1], str) and "labels" not in path[:-1]]
    path = data.draw(st.sampled_from(keys))
    changed: Any = copy.deepcopy(region)
    at = changed
    for key in path[:-1]:
        at = at[key]
    del at[path[-1]]
    lines = list(written(changed))
    assert refused_once(file, lines, path, line_of(lines, path[:-1])).reason == "is missing"


@UNTIMED
@given(region=REGIONS, data=st.data())
def test_a_value_of_another_type_is_told_at_its_line(file: pathlib.Path, region: dict[str, Any], data: st.DataObject) -> None:
    path, value = data.draw(st.sampled_from([entry for entry in places(region) if entry[0] and not isinstance(entry[0][-1], int)]))
    wrong = data.draw(st.sampled_from([other for other in (5.5, "X", None, ["a"], {"a": 1}) if type(other) is not type(value)]))
    lines = list(written(put(region, path, wrong)))
    refused_once(file, lines, path, line_of(lines, path))


@UNTIMED
@given(region=REGIONS, data=st.data())
def test_a_value_out_of_range_or_enormous_is_told_at_its_line(file: pathlib.Path, region: dict[str, Any], data: st.DataObject) -> None:
    wrong: dict[str | int, list[Any]] = {
        "nodes": [-1, 7501, 10**39],
        "slot": [-1, 63, 10**39],
        "name": ["", "A", "a" * 5_000, "\n" * 500],
        "zone": ["3", "x" * 5_000],
    }
    path = data.draw(st.sampled_from([path for path, _ in places(region) if path and path[-1] in wrong and "labels" not in path]))
    lines = list(written(put(region, path, data.draw(st.sampled_from(wrong[path[-1]])))))
    refused_once(file, lines, path, line_of(lines, path))


@UNTIMED
@given(
    region=REGIONS,
    data=st.data(),
    key=st.text(min_size=1, max_size=300).filter(lambda key: key != "labels"),
    value=st.sampled_from([1, None, "x" * 999]),
)
def test_an_unknown_key_is_told_at_its_line(
    file: pathlib.Path, region: dict[str, Any], data: st.DataObject, key: str, value: object
) -> None:
    mappings = [
        path for path, entry in places(region) if isinstance(entry, dict) and (not path or path[-1] != "labels") and key not in entry
    ]
    path = (*data.draw(st.sampled_from(mappings)), key)
    lines = list(written(put(region, path, value)))
    text = "".join(f"{text}\n" for _, text in lines)
    assert line_of(lines, path) in [problem.line for problem in refused(file, text)]


@UNTIMED
@given(region=REGIONS, data=st.data())
def test_a_key_given_twice_is_told_at_its_second_line(file: pathlib.Path, region: dict[str, Any], data: st.DataObject) -> None:
    scalars = [path for path, value in places(region) if path and isinstance(path[-1], str) and not isinstance(value, dict | list)]
    path = data.draw(st.sampled_from(scalars))
    lines = list(written(region))
    first = line_of(lines, path)
    lines.insert(first, lines[first - 1])
    assert f"in line {first}" in refused_once(file, lines, path, first + 1).reason


@UNTIMED
@given(content=st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_arbitrary_content_is_refused_and_nothing_else(file: pathlib.Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(InvalidFileError) as caught:
        read_model(file, Region)
    assert all(str(problem).isprintable() for problem in caught.value.problems)


def test_a_missing_file_is_told_in_one_line(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InvalidFileError) as caught:
        read_model(tmp_path / "no.yaml", Region)
    assert str(caught.value) == f"{tmp_path}/no.yaml: there is no such file; check the name"


def test_a_directory_is_told_in_one_line(tmp_path: pathlib.Path) -> None:
    with pytest.raises(InvalidFileError) as caught:
        read_model(tmp_path, Region)
    assert str(caught.value) == f"{tmp_path}: is a directory; name a file in it"


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(InvalidFileError, match=r"is no regular file; name a file with text in it$"):
        read_model(tmp_path / "pipe.yaml", Region)


def test_a_file_without_permission_is_told_in_one_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("name: a\n", encoding="utf-8")
    path.chmod(0)
    user = os.geteuid()
    # Root may read anything.
    os.seteuid(user or 65534)
    try:
        with pytest.raises(InvalidFileError, match=r"may not be read; request permission to read it$"):
            read_model(path, Region)
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("name", ["x\0.yaml", "x" * 5_000, "x.yaml/y.yaml"])
def test_a_name_that_no_file_can_have_is_told_in_one_line(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "x.yaml").write_text("name: a\n", encoding="utf-8")
    with pytest.raises(InvalidFileError) as caught:
        read_model(tmp_path / name, Region)
    assert "cannot be read: " in str(caught.value)
    assert str(caught.value).isprintable()


def test_ten_megabytes_are_refused_without_being_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.yaml"
    with path.open("wb") as stream:
        stream.truncate(10_000_000)
    with pytest.raises(InvalidFileError, match=f"has more than {MAX_BYTES} bytes"):
        read_model(path, Region)
