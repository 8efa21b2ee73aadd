"""Mistakes that engineers make in region files: reported once at the place where a person looks, and accepted when mended."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.plan.limits import check
from components.plan.region import plan_region
from stacks import load
from stacks.file_problems import FileProblem, InvalidFileError
from stacks.notes import notes
from tests.stacks.drafts import CATALOG, TEXTS

MISTAKES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())
ENCODINGS = {"utf-16": codecs.BOM_UTF16_LE, "bom": codecs.BOM_UTF8}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for stacks/regions."""
    monkeypatch.setattr(load, "REGIONS", tmp_path)
    return tmp_path


def edits(row: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Text to find, text to put and occurrence of each edit."""
    return [(old, new, 1) for old, new in row.get("edits", [])] or [(row["find"], row.get("put", ""), row.get("nth", 1))]


def replaced(text: str, old: str, new: str, nth: int) -> tuple[str, int]:
    """A text with one occurrence replaced, and the line of the occurrence."""
    start = -1
    for _ in range(nth):
        start = text.index(old, start + 1)
    return text[:start] + new + text[start + len(old) :], text.count("\n", 0, start) + 1


def edited(row: dict[str, Any]) -> tuple[bytes, int]:
    """The content of the file with the mistake, and the first line with it."""
    text, line = TEXTS[row["base"]], 1
    match row.get("whole"):
        case "crlf":
            return text.replace("\n", "\r\n").encode(), 1
        case "bom":
            return codecs.BOM_UTF8 + text.encode(), 1
        case "utf-16":
            return text.encode("utf-16"), 1
        case "latin-1":
            text, line = replaced(text, *edits(row)[0])
            return text.encode("latin-1"), line
        case "empty":
            return b"", 1
        case "cut":
            stop = text.index("\n", text.index(row["find"])) + 1
            return text[:stop].encode(), text.count("\n", 0, stop)
        case "rename":
            return text.encode(), 1
    lines = []
    for edit in edits(row):
        text, line = replaced(text, *edit)
        lines.append(line)
    return text.encode(), min(lines)


def mended(row: dict[str, Any]) -> str:
    """The file after the edit that a good remedy leads to."""
    old, _, nth = edits(row)[0]
    return replaced(TEXTS[row["base"]], old, row["fix"], nth)[0]


def problems(folder: Path, row: dict[str, Any], content: bytes) -> list[FileProblem]:
    """The problems of a file; if there are none, one for each exceeded limit or expected note."""
    for name, text in TEXTS.items() if row.get("across") else ():
        (folder / f"{name}.yaml").write_text(text)
    path = folder / (row["put"] if row.get("whole") == "rename" else f"{row['base']}.yaml")
    path.write_bytes(content)
    try:
        region = load.load_region(str(path), CATALOG)
    except InvalidFileError as error:
        return list(error.problems)
    plan = plan_region(region, CATALOG)
    if "note" in row:
        siblings = load.load_siblings(str(path)).plans
        lines = notes(str(path), plan, siblings)
        return [FileProblem("note", "", None, None, None, line, "") for line in lines if row["note"] in line]
    rows = check(plan, ())
    return [FileProblem("limit", "", None, None, None, row.sentence(), "") for row in rows if row.broken]


def misreported(row: dict[str, Any], found: list[FileProblem], first: int) -> str:
    """What is wrong with the report of a mistake; empty if nothing is."""
    outcome = row.get("outcome", "reported")
    if outcome == "accepted" and found:
        return "it is refused"
    if "note" in row:
        return "" if len(found) == 1 and found[0].file == "note" else "no note names it"
    if not found:
        return "" if outcome in ("accepted", "either") else "it is accepted"
    if everything := row.get("all"):
        return "" if sorted(one.path for one in found) == sorted(everything) else "not each once"
    if found[0].file == "limit" or "limit" in row:
        words = row.get("limit", [])
        return "" if len(words) == len(found) and all(any(word in one.reason for one in found) for word in words) else "not these limits"
    if len(found) > row.get("most", 2):
        return f"it has {len(found)} errors"
    line = first + row.get("line", 0)
    places = row.get("at", [])
    places = [places] if isinstance(places, str) else places
    if places:
        named = any(f".{one.path}".endswith(f".{place}") or (not one.path and one.line == line) for one in found for place in places)
        return "" if named else "not at its place"
    return "" if any(one.line in ((line, None) if "whole" in row else (line,)) for one in found) else f"not in line {line}"


@pytest.mark.parametrize("row", MISTAKES, ids=lambda row: row["id"])
def test_a_mistake_is_reported_at_its_place(folder: Path, row: dict[str, Any]) -> None:
    content, first = edited(row)
    found = problems(folder, row, content)
    wrong = misreported(row, found, first)
    assert not wrong, "\n".join([wrong, *map(str, found)])


@pytest.mark.parametrize("row", [row for row in MISTAKES if "fix" in row], ids=lambda row: row["id"])
def test_a_mended_file_is_accepted(folder: Path, row: dict[str, Any]) -> None:
    assert [str(one) for one in problems(folder, row, mended(row).encode())] == []
