"""Recorded results of the benchmarks: one JSON file per benchmark, from which `bench.page` renders docs/benchmarks.md."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from bench.figures import Figure

FOLDER = Path(__file__).parent / "results"
VERSIONS = ("pulumi", "pulumi-azure-native", "pulumi-kubernetes", "kubernetes", "aiohttp")
GIB = 2**30


@dataclass(frozen=True)
class ResultTable:
    """One more table of a result, such as CPU seconds by process; rows contain text."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Result:
    """The figures of one benchmark; date is ISO 8601, machine contains cores, memory, kernel and versions, where they are known."""

    name: str
    title: str
    command: str
    date: str
    machine: Mapping[str, str]
    figures: Sequence[Figure] = ()
    tables: Sequence[ResultTable] = ()
    notes: Sequence[str] = field(default_factory=tuple)


def record_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --record to a command."""
    return click.option("--record", is_flag=True, help="Write the figures to bench/results, the source of docs/benchmarks.md.")(command)


def write(result: Result) -> Path:
    """Write a result's file; return its path."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{result.name}.json"
    path.write_text(json.dumps(asdict(result), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def write_now(name: str, title: str, command: str, figures: Iterable[Figure], tables: Iterable[ResultTable] = ()) -> Path:
    """Write a result of this machine with today's date; return its path."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return write(Result(name, title, command, today, machine(), tuple(figures), tuple(tables)))


def read(path: Path) -> Result:
    """Return the result in a file."""
    document = json.loads(path.read_text(encoding="utf-8"))
    figures = [Figure(**one) for one in document.pop("figures")]
    tables = [ResultTable(**one) for one in document.pop("tables")]
    return Result(**document, figures=figures, tables=tables)


def machine() -> dict[str, str]:
    """Return the machine's cores, memory, kernel, load and versions."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    found = {
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "kernel": platform.release(),
        "load": ", ".join(f"{value:.1f}" for value in os.getloadavg()),
        "Python": platform.python_version(),
    }
    found |= {name: metadata.version(name) for name in VERSIONS}
    commit = subprocess.run(("git", "rev-parse", "--short", "HEAD"), cwd=FOLDER.parent, capture_output=True, text=True, check=False)  # noqa: S607 the user's git
    return found | ({"commit": commit.stdout.strip()} if commit.returncode == 0 else {})
