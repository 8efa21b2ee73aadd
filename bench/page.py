"""Page of the benchmarks, docs/benchmarks.md, rendered from the recorded results: `python -m bench.page`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench import results
from bench.figures import Figure, rounded
from bench.results import Result

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
INTRODUCTION = """\
# Benchmarks

`make bench` runs the benchmarks. Each command measures on your machine and exits with status 1 if a figure exceeds its bound. With
`--record` it writes its figures to `bench/results/`, and `make bench-page` renders this page from those files. Do not edit this page.
*Ratio* is the figure divided by its bound.

Figures with wall time depend on the machine and on other programs that run on it. Compare ratios rather than seconds.
"""


def page(found: Iterable[Result]) -> str:
    """Return the page as Markdown: one section per result."""
    return "\n\n".join((INTRODUCTION.strip(), *("\n\n".join(_section(one)) for one in found))) + "\n"


def _section(result: Result) -> Iterator[str]:
    yield f"## {result.title}"
    machine = ", ".join(f"{name} {value}" for name, value in result.machine.items())
    yield f"`{result.command}`, {result.date}" + (f". Machine: {machine}." if machine else ".")
    if result.figures:
        yield _table(("figure", "value", "bound", "ratio", "method"), (_row(one) for one in result.figures))
    for table in result.tables:
        if table.title:
            yield f"**{table.title}**"
        yield _table(table.headings, table.rows)
    if result.notes:
        yield "\n".join(f"- {note}" for note in result.notes)


def _row(figure: Figure) -> Sequence[str]:
    name, value, bound, _, how = figure.cells()
    ratio = rounded(figure.value / figure.bound) if figure.bound else ""
    return name, value, bound, ratio, how


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, tuple("---" for _ in headings), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(results.read(path) for path in sorted(results.FOLDER.glob("*.json"))), encoding="utf-8")
    print(PAGE, file=sys.stderr)


if __name__ == "__main__":
    main()
