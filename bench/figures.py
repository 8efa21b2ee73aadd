"""Figures of a benchmark and their bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One figure: value and bound in unit, and how it was measured; bound is None for a figure that explains others.

    at_least: the bound is a minimum.
    """

    name: str
    value: float
    unit: str
    bound: float | None
    how: str
    at_least: bool = False

    @property
    def kept(self) -> bool:
        """Return whether the value is within the bound."""
        return self.bound is None or (self.value >= self.bound if self.at_least else self.value <= self.bound)

    def cells(self) -> tuple[str, str, str, str, str]:
        """Return the figure as a row of a table."""
        verdict = "" if self.bound is None else "kept" if self.kept else "MISSED"
        bound = "" if self.bound is None else f"{'≥ ' if self.at_least else ''}{self.bound:,.6g} {self.unit}"
        return self.name, f"{rounded(self.value)} {self.unit}".strip(), bound.strip(), verdict, self.how


def figures_table(figures: Iterable[Figure]) -> Table:
    """Return a table of figures with their bounds."""
    table = Table(title="figures", title_justify="left")
    for heading, side in (("figure", "left"), ("value", "right"), ("bound", "right"), ("", "left"), ("how", "left")):
        table.add_column(heading, justify="right" if side == "right" else "left")
    for figure in figures:
        table.add_row(*figure.cells())
    return table


def rounded(value: float) -> str:
    """Return a value with three significant digits and thousands separators."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2g}"
