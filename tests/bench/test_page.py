"""The page of the benchmarks is the one that the recorded results render."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import page, results
from bench.figures import Figure
from bench.results import Result, ResultTable


def test_the_page_is_rendered_from_the_recorded_results() -> None:
    recorded = (results.read(path) for path in sorted(results.FOLDER.glob("*.json")))
    assert page.PAGE.read_text() == page.page(recorded), "run make bench-page"


def test_a_result_is_read_as_it_was_written_and_shown_with_its_ratio(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    figures = [Figure("scrape", 14, "ms", 20, "median"), Figure("load", 3, "", None, "explains")]
    tables = [ResultTable("", ["a"], [["b|c"]])]
    result = Result("one", "One", "python -m bench.one", "2026-11-23", {"cores": "2"}, figures, tables, ["A note."])
    path = results.write(result)
    assert results.read(path) == result
    text = page.page([result])
    assert "| scrape | 14 ms | 20 ms | 0.7 | median |" in text
    assert "| b\\|c |" in text
    assert "`python -m bench.one`, 2026-11-23. Machine: cores 2." in text


def test_a_machine_has_cores_memory_kernel_and_versions() -> None:
    assert {"cores", "memory", "kernel", "Python", "pulumi"} <= results.machine().keys()
