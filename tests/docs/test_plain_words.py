"""The documentation uses plain words: sentences of at most 30 words, and none of the phrases that readers stumble over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from doc_pages import Page, pages

LONGEST = 30
"""Words in a sentence. A code span is one word, a link counts by its text."""
BANNED = {
    r"\b(told|tells?|telling)\b": "report, print, return, show",
    r"\b(asks|asked|asking)\b": "request, query",
    r"\b(whoever|whomever|whatever|nobody|somebody|no one|someone)\b": "a caller, an operator, another process",
    r"\bof (ours|theirs|its own sort)\b": "of gpufleet",
    r"\bshall\b": "must, will",
    r"\brings?\b": "etcd cluster",
    r"\b(goes|going|went) on\b|\bgo on\b": "continue, resume",
    r"\b(stands?|stood|standing)\b": "is, exists; replaces; means",
    r"\bbefalls?\b|\bbefell\b": "happens to",
    r"\b(anew|afresh)\b": "again",
    r"\bcome[s]? to\b|\bcame to\b": "results in, reaches",
    r"\bas fast as\b.*\breckon\b": "virtual clock",
    r"\b(its like|their like|misfits?)\b": "the exact term",
    r"\b(take|takes|took|taken) up\b(?! to)": "load, resume, open",
    r"\bput aside\b": "move, store",
    r"\bhears?\b": "receives",
    r"\b(guardian|fabric|happenings|ledger)\b": "reaper, network model, fault injection, store",
}
"""Regular expressions of banned phrases, each with the words to use in its place."""


def errors(page: Page) -> list[str]:
    """Return one line per long sentence and per banned phrase of a page."""
    found = []
    for sentence in page.sentences():
        words = len([word for word in sentence.text.split() if re.search(r"\w|…", word)])
        if words > LONGEST:
            found.append(f"{page.name}:{sentence.line}: {words} words: {sentence.text}")
        for phrase, better in BANNED.items():
            if hit := re.search(phrase, sentence.text, re.IGNORECASE):
                found.append(f"{page.name}:{sentence.line}: '{hit[0]}': write {better}: {sentence.text}")
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_uses_plain_words(page: Page) -> None:
    assert errors(page) == []


def test_long_sentences_and_banned_phrases_are_reported() -> None:
    long = "One " + "word " * 30 + "is too much."
    text = f"Short.\n{long}\n\n- A list item that nobody reads.\n\n| a cell | {long} |\n\n```sh\necho nobody\n```\n`nobody` is code.\n"
    found = errors(Page(Path("page.md"), text))
    assert [line.partition(": ")[2][:10] for line in found] == ["34 words: ", "'nobody': ", "34 words: "]
