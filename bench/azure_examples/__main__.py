"""Command: replay published examples of Azure against the embedded Azure."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bench.azure_examples.example import read_examples
from bench.azure_examples.replay import DIFFERENT, MATCHED, MISSING, NOT_MODELLED, NOT_SENT, REFUSED, WRONG_STATUS, Outcome, replay
from bench.azure_examples.served import served

CATEGORIES = (MATCHED, MISSING, NOT_SENT, DIFFERENT, REFUSED, WRONG_STATUS, NOT_MODELLED)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", type=click.Path(dir_okay=False, path_type=Path), default=None, help="Write every outcome to this file.")
@click.option("--only", default="", help="Replay only the files whose path contains this text.")
@click.option("--list", "listed", is_flag=True, help="Print every outcome that is not a match.")
def main(folder: Path, as_json: Path | None, only: str, listed: bool) -> None:
    """Replay the examples in FOLDER, which have the form of the `examples` folders of azure-rest-api-specs plus an operationId.

    Each example gets an empty embedded Azure with the resources that it presupposes. Its request is sent over HTTP in the API version of
    the pinned client. The answer matches if the client accepts its status, it has every property that the example shows, and it has the
    values that the request determines.
    """
    examples, errors = read_examples(folder)
    with served() as server:
        outcomes = [replay(server, one) for one in examples if only in one.file]
    console = Console(width=160, highlight=False)
    for error in errors:
        console.print(str(error), markup=False)
    if listed:
        for one in outcomes:
            if one.category not in (MATCHED, NOT_MODELLED):
                what = ", ".join(one.paths) or f"{one.status} {one.code} {one.message}"
                console.print(f"{one.category}: {one.file}: {what}", markup=False)
    console.print(_summary(outcomes))
    if as_json:
        as_json.write_text(json.dumps([one.row() for one in outcomes], indent=1))


def _summary(outcomes: list[Outcome]) -> Table:
    """Return the counts by service and category."""
    table = Table(*("service", *CATEGORIES, "matched of modelled"))
    services: dict[str, Counter[str]] = {}
    for one in outcomes:
        services.setdefault(one.file.partition("/")[0], Counter())[one.category] += 1
    services["all"] = sum(services.values(), Counter())
    for name, counts in services.items():
        modelled = counts.total() - counts[NOT_MODELLED]
        share = f"{counts[MATCHED] / modelled:.1%}" if modelled else "–"
        table.add_row(name, *(str(counts[category]) for category in CATEGORIES), share)
    return table


if __name__ == "__main__":
    main()
