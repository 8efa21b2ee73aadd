"""Scalars without quotes that are rejected, with their remedies."""

from __future__ import annotations

import pytest

from stacks.strict_yaml import read

TRAPS = {
    "no": "write true or false, or quote it",
    "yes": "write true or false, or quote it",
    "on": "write true or false, or quote it",
    "Off": "write true or false, or quote it",
    "y": "write true or false, or quote it",
    "N": "write true or false, or quote it",
    "True": "write true or false in lower case, or quote it",
    "FALSE": "write true or false in lower case, or quote it",
    "~": "write a value, quote it, or leave the key out where it may be",
    "Null": "write a value, quote it, or leave the key out where it may be",
    "1:30": "quote it",
    "190:20:30": "quote it",
    "8080:80": "quote it",
    "1:30.5": "quote it",
    "1e3": "write all digits, or quote it",
    "1234e56": "write all digits, or quote it",
    "1.5e-3": "write all digits, or quote it",
    "1.30": "quote it, or write 1.3",
    "1.": "quote it, or write 1.0",
    ".5": "quote it, or write 0.5",
    "+1.5": "quote it, or write 1.5",
    "0755": "write it without leading zero, or quote it",
    "007": "write it without leading zero, or quote it",
    "0o17": "write it in decimal, or quote it",
    "0x1F": "write it in decimal, or quote it",
    "0b101": "write it in decimal, or quote it",
    "1_000": "write a number in digits alone, or quote it",
    "+5": "write it without the sign, or quote it",
    "-0": "write it without the sign, or quote it",
    ".inf": "write a number, or quote it",
    "-.Inf": "write a number, or quote it",
    ".nan": "write a number, or quote it",
    "2026-11-21": "quote it",
    "2026-11-21T10:00:00Z": "quote it",
    "9" * 41: "write at most 40 digits, or quote it",
    "": "write one, or leave the key out where it may be (what follows a # is a comment)",
}


@pytest.mark.parametrize(("word", "remedy"), TRAPS.items(), ids=lambda word: word[:20])
def test_a_word_that_readers_disagree_on_is_refused_with_what_to_write(word: str, remedy: str) -> None:
    (problem,) = read(f"a:\n  - b\n  - c: {word}\n".encode(), "x.yaml").problems
    assert (problem.path, problem.line, problem.remedy) == ("a[1].c", 3, remedy)


@pytest.mark.parametrize("word", [word for word in TRAPS if word], ids=lambda word: word[:20])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_quoted_word_is_text(word: str, quote: str) -> None:
    document = read(f"a: {quote}{word}{quote}\n{quote}{word}{quote}: b\n".encode(), "x.yaml")
    assert document.problems == ()
    assert document.data == {"a": word, word: "b"}
