"""Input that the strict reader accepts or rejects, and positions of problems."""

from __future__ import annotations

import codecs
import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from stacks import strict_yaml
from stacks.file_problems import MAX_PROBLEMS, FileProblem, InvalidFileError, Position
from stacks.strict_yaml import MAX_BYTES, MAX_DEPTH, read

UNTIMED = settings(deadline=None)


def problems_of(text: str | bytes) -> tuple[FileProblem, ...]:
    """Return all problems of a text, with or without a document."""
    content = text.encode() if isinstance(text, str) else text
    try:
        return read(content, "x.yaml").problems
    except InvalidFileError as refused:
        return refused.problems


def only_problem(text: str | bytes) -> FileProblem:
    """The one problem of a text."""
    problems = problems_of(text)
    assert len(problems) == 1, problems
    return problems[0]


def test_words_are_read_as_every_reader_of_yaml_reads_them() -> None:
    document = read(
        b"""\
# a comment
text: training
block: 10.64.0.0/10
version: 1.36.2
pin: h100@1.4.0
duration: 1h30m
count: 7500
none: 0
below: -5
share: 0.5
yes it is: true
off it is not: false
absent: null
list: [1, a, {b: c}]
folded: >-
  one
  two
""",
        "x.yaml",
    )
    assert document.problems == ()
    assert document.data == {
        "text": "training",
        "block": "10.64.0.0/10",
        "version": "1.36.2",
        "pin": "h100@1.4.0",
        "duration": "1h30m",
        "count": 7500,
        "none": 0,
        "below": -5,
        "share": 0.5,
        "yes it is": True,
        "off it is not": False,
        "absent": None,
        "list": [1, "a", {"b": "c"}],
        "folded": "one two",
    }


@pytest.mark.parametrize("word", ["true", "null", "5", "1.5", "no", "~", "2026-11-21"])
def test_a_key_that_is_no_text_is_refused(word: str) -> None:
    problem = only_problem(f"a:\n  {word}: b\n")
    assert (problem.line, problem.column, problem.remedy) == (2, 3, "quote it")
    assert problem.reason.startswith("as a key, ")


def test_a_list_or_mapping_as_a_key_is_refused() -> None:
    assert str(only_problem("a: {{ region }}\n")) == (
        "x.yaml:1:5: {{ opens a placeholder of a template, which nothing replaces here; write the value itself"
    )
    assert str(only_problem("a: {[b]: c}\n")) == (
        "x.yaml:1:5: a list or mapping is used as a key; write the key as text; quote what begins with { or ["
    )


def test_a_long_line_without_end_of_a_quote_is_refused_without_delay() -> None:
    started = time.process_time()
    assert only_problem('a: b: "' + '\\"' * 50_000 + "\n").line == 1
    assert time.process_time() - started < 5


def test_a_duplicate_key_names_both_lines_and_keeps_the_first() -> None:
    document = read(b"a:\n  b: 1\n  c: 2\n  b: 3\n", "x.yaml")
    assert [str(problem) for problem in document.problems] == [
        "x.yaml:4: a.b: the key is given twice: in line 2 and here; keep one of the two"
    ]
    assert document.data == {"a": {"b": 1, "c": 2}}
    assert str(only_problem("a:\n  - 1\nb: 2\na:\n  - 3\n")) == (
        "x.yaml:4: a: the key is given twice: in line 1 and here; "
        "keep one of the two, or move the entries below this one to line 1's and delete this line"
    )


def test_a_merge_key_is_refused_and_the_same_letters_in_quotes_are_not() -> None:
    assert "copies the keys" in only_problem("a: {<<: {b: 1}}\n").reason
    assert read(b"'<<': 1\n", "x.yaml").data == {"<<": 1}


def test_every_anchor_and_alias_is_refused_so_that_none_can_explode() -> None:
    laughs = "a: &a [x, x]\n" + "".join(
        f"{new}: &{new} [*{old}, *{old}, *{old}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    problems = problems_of(laughs)
    assert len(problems) == 9 + 3 * 8
    assert str(problems[0]) == "x.yaml:1: a: &a is an anchor for references, which are not allowed; remove the anchor"
    assert str(problems[2]) == (
        "x.yaml:2: b[0]: *a refers to another part of the file, which can grow without bound; write the value itself"
    )


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!!str", "!!binary", "!own", "!"])
def test_a_tag_is_refused(tag: str) -> None:
    problem = only_problem(f"a: {tag} [ls]\n")
    assert problem.path == "a"
    assert problem.reason == f"{tag} gives the value a type, but the schema sets types"


def test_a_value_over_several_lines_needs_quotes() -> None:
    problem = only_problem("nodes: 5\n  vm_size\nb: 1\n")
    assert (problem.path, problem.line, problem.reason) == ("nodes", 1, "'5 vm_size' spans several lines without quotes")


SYNTAX = {
    "a:\n\tb: 1\n": "2:1: a tab is used where YAML requires spaces",
    "a:\n  - b:\tc\n": "2:7: a tab is used where YAML requires spaces",
    "a: 1\nb c\nd: 2\n": "2:1: this line is not a key and a value",
    "a: b: c\n": "1:5: a colon and a space are inside a value, or the line is indented wrongly",
    "a: - b\n": "1:4: a list entry cannot start here",
    "a:\n  b: 1\n c: 2\n": "3:2: this does not continue what stands above it",
    "a: 'b\nc: d\n": "1:4: the quote that opens here is not closed",
    'a: "b\nc: d\n': "1:4: the quote that opens here is not closed",
    "a: [b,\nc: d\n": "1:4: the [ that opens here has no ] or lacks a comma",
    "a: {b: c\n": "1:4: the { that opens here has no } or lacks a comma",
    "a: b: c}\n": "1:8: this } has no { before it",
    "a: [b]]\n": "1:7: this ] has no [ before it",
    "a:\n  -b: 1\n  c: 2\n  - d\n": "2:3: a list entry starts with a dash and a space",
    "a: 1\nb:2\nc: 3\n": "2:1: the colon has no space after it, so this is no key",
    "a: 1\nb = 2\nc: 3\n": "2:1: an equals sign separates no key from its value",
    "a: 1\nb:\u00a02\nc: 3\n": "2:3: character U+00A0 looks like a space and is none",
    "a:\n    b: 1\n    c: 2\n  - b: 3\n": "2:5: line 4 is a list entry, so this line should begin one too",
    "a:\n  b: 1\n  c: 2\n  - b: 3\n": "2:3: line 4 is a list entry, so this line should begin one too",
    "a: 1\n  - b: 3\nc: 2\n": "2:3: line 1 has a value, so that no list entry can follow it",
    "a:\nb: 1\n  c: 2\n": "2:1: this key is as deep as line 1, which has no value, and the lines after it are deeper",
    "a: 1\n  b: 2\nc: 3\n": "2:3: this key is deeper than that of line 1, which has a value",
    "a:\n  b: 1\nc: 2\n  d: 3\n": "3:1: this key is less deep than the lines before and after it",
    "a: 1\n<<<<<<< ours\nb: 2\n=======\nb: 3\n>>>>>>> theirs\n": "2:1: a merge conflict is not resolved here",
    "a: 1\nb: 2\n>>>>>>> theirs\n": "3:1: a merge conflict is not resolved here",
    "a: 1\n---\nb: 2\n": "2:1: a second document begins here",
    "a: [b,,c]\n": "1:7: a value is missing here",
    'a: "\\q"\n': "1:6: a backslash in double quotes starts no known escape here",
    'a: "\\xg0"\n': "1:7: a backslash in double quotes starts no known escape here",
    'a: "\\UFFFFFFFF"\n': "1:7: a number here is too large",
    "a: @b\n": "1:4: this character cannot start a value",
    "a: | b\n": "1:6: a | or > is not followed by a line break",
    "a: !<b\n": "1:7: a ! starts a type",
    "a: !b!c d\n": "1:4: a ! starts a type",
    "a: & b\n": "1:5: a & starts an anchor for references",
    "a: * b\n": "1:5: a * starts a reference to another part of the file",
    "%YAML 1.2\n---\na: 1\n": "1:1: a line that starts with % is a directive",
    "%YAML 2.0\n---\na: 1\n": "1:1: a line that starts with % is a directive",
    "%YAML x\n---\na: 1\n": "1:7: a line that starts with % is a directive",
    "a: 1\n...\nb: 2\n": "3:1: the document ends above",
}


@pytest.mark.parametrize(("text", "result"), SYNTAX.items())
def test_broken_syntax_is_told_with_line_and_column(text: str, result: str) -> None:
    line = str(only_problem(text))
    assert line.startswith(f"x.yaml:{result}; ")
    assert "\n" not in line


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "---\n...\n"])
def test_an_empty_file_is_refused_as_empty(text: str) -> None:
    assert str(only_problem(text)) == "x.yaml: is empty; write at least one key"


UNREADABLE = {
    b"a: 1\nb: caf\xe9\n": "2:7: byte 0xe9 is not UTF-8; save the file as UTF-8",
    codecs.BOM_UTF8 + b"a: \xe9\n": "1:4: byte 0xe9 is not UTF-8; save the file as UTF-8",
    "a: 1\n".encode("utf-16"): "1:1: byte 0xff is not UTF-8; save the file as UTF-8",
    b"a: 1\nb: \x00\n": "2:4: character U+0000 cannot be seen; delete it",
    b"a: 1\rb: 2\n": "1:5: character U+000D cannot be seen; delete it",
    "a: 1\nb: x\u202ey\n".encode(): "2:5: character U+202E cannot be seen; delete it",
    "a: 1\nb: x\u2028y\n".encode(): "2:5: character U+2028 cannot be seen; delete it",
    "a: 1\n\ufeffb: 2\n".encode(): "2:1: character U+FEFF cannot be seen; delete it",
}


@pytest.mark.parametrize(("content", "result"), UNREADABLE.items(), ids=range(len(UNREADABLE)))
def test_bytes_that_are_no_visible_text_are_refused_with_their_place(content: bytes, result: str) -> None:
    assert str(only_problem(content)) == f"x.yaml:{result}"


@pytest.mark.parametrize("escape", ["\\0", "\\e", "\\ud800", "\\u202e"])
def test_an_escape_cannot_bring_an_invisible_character_in(escape: str) -> None:
    assert only_problem(f'a: "x{escape}y"\n').reason.endswith("which cannot be seen")
    assert only_problem(f'"x{escape}y": a\n').reason.endswith("which cannot be seen")


def test_a_byte_order_mark_and_windows_line_ends_change_nothing() -> None:
    windows = codecs.BOM_UTF8 + b"a: 1\r\nb:\r\n  - x\r\n"
    assert read(windows, "x.yaml") == read(b"a: 1\nb:\n  - x\n", "x.yaml")


@pytest.mark.parametrize("brackets", ["[", "{a: ", "- ", "[\n"])
def test_a_thousand_levels_are_refused_at_the_bound(brackets: str) -> None:
    problem = only_problem(brackets * 1000)
    assert problem.reason == f"lists and mappings are nested more than {MAX_DEPTH} deep here"
    assert problem.line is not None


def test_the_deepest_allowed_document_is_read() -> None:
    assert read(b"[" * MAX_DEPTH + b"1" + b"]" * MAX_DEPTH, "x.yaml").problems == ()


def test_ten_megabytes_are_refused_before_they_are_parsed() -> None:
    assert str(only_problem(b"[" * 10_000_000)) == f"x.yaml: has more than {MAX_BYTES} bytes; use a smaller file"


def test_a_file_of_very_many_values_is_refused_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_yaml, "MAX_VALUES", 100)
    assert read(b"- 1\n" * 99, "x.yaml").problems == ()
    assert str(only_problem("- 1\n" * 100)) == "x.yaml:100:3: the file holds more than 100 values; use a smaller file"


def test_a_file_full_of_problems_is_refused_after_a_bounded_number() -> None:
    problems = problems_of("- ~\n" * 10_000)
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1].reason == f"has more than {MAX_PROBLEMS} problems"


def test_positions_are_those_of_keys_and_list_entries() -> None:
    document = read(b"a: 1\nb:\n  - c: x\n    d: [y,\n      z]\n", "x.yaml")
    assert document.positions == {
        (): Position(1, 1),
        ("a",): Position(1, 1),
        ("b",): Position(2, 1),
        ("b", 0): Position(3, 5),
        ("b", 0, "c"): Position(3, 5),
        ("b", 0, "d"): Position(4, 5),
        ("b", 0, "d", 0): Position(4, 9),
        ("b", 0, "d", 1): Position(5, 7),
    }


def test_all_doubtful_words_of_a_file_are_told_at_once() -> None:
    assert [problem.line for problem in problems_of("a: no\nb: 1:30\nc:\n  - ~\nd: [x, 1e3]\nd: 2\n")] == [1, 2, 4, 5, 6]


def test_problems_found_before_broken_syntax_are_told_with_it() -> None:
    assert [problem.line for problem in problems_of("a: no\nb: c: d\n")] == [1, 2]


WORDS = st.text(st.characters(blacklist_categories=["Cc", "Cs", "Cf", "Zl", "Zp", "Cn", "Co"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**39), 10**39) | st.sampled_from([0.5, 1.25, -3.75]) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


class Quoting(yaml.SafeDumper):
    """Writes every text in double quotes, and nothing twice."""

    def ignore_aliases(self, _: object) -> bool:
        return True

    def quoted(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style='"')


Quoting.add_representer(str, Quoting.quoted)


@UNTIMED
@given(st.dictionaries(WORDS, VALUES, min_size=1, max_size=4), st.booleans())
def test_plain_data_written_by_another_program_is_read_back(data: dict[str, object], flow: bool) -> None:
    text = yaml.dump(data, Dumper=Quoting, allow_unicode=True, width=10**6, default_flow_style=flow)
    document = read(text.encode(), "x.yaml")
    assert document.problems == ()
    assert document.data == data


@UNTIMED
@given(st.binary(max_size=200))
def test_any_bytes_are_data_or_refused(content: bytes) -> None:
    for problem in problems_of(content):
        assert len(str(problem).splitlines()) == 1


YAML_PIECES = st.sampled_from(
    [*"abn019.:-?,[]{}#&*!|>'\"%@`~ \n\t\\_+<=", ": ", "\n  ", "- ", "\r\n", "<<: ", "!!", "---\n", "...\n", "\\x", "é", "\0"]
)


@UNTIMED
@given(st.lists(YAML_PIECES, max_size=40).map("".join))
def test_any_text_is_data_or_refused(text: str) -> None:
    for problem in problems_of(text):
        assert len(str(problem).splitlines()) == 1
        assert "Traceback" not in str(problem)
